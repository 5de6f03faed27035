"""The workflow end to end: what runs, what runs again, and that bytes repeat."""

import json
import os
import re
import signal
import subprocess
import sys
import time

import pandas as pd
import pytest

from .conftest import Study


def test_the_default_study_has_at_most_150_jobs(study: Study) -> None:
    (study.folder / "tiny.yaml").write_text("{}")
    jobs = study.jobs()
    assert 50 < jobs["total"] <= 150


@pytest.mark.parametrize(
    "stage",
    [
        "data",
        "policies",
        "clicks",
        "propensity",
        "ranking",
        "evaluation",
        "identifiability",
        "metrics",
        "trec",
        "paper",
        "claims",
        "report",
        "expected",
    ],
)
def test_every_stage_is_a_target(study: Study, stage: str) -> None:
    assert study.jobs(stage)["total"] >= 2


def test_the_finished_study_has_all_its_tables_and_figures(finished: Study) -> None:
    tables = {path.name for path in (finished.folder / "results/tables/tiny").iterdir()}
    assert tables == {
        f"weak.{setting}.{candidates}.{validation}.{ending}"
        for setting in ("static", "dynamic")
        for candidates in ("truncated", "full")
        for validation in ("grades", "clicks")
        for ending in ("csv", "md", "tex")
    } | {
        "identifiability.csv",
        "identifiability.md",
        *(f"propensity_error.{ending}" for ending in ("csv", "md", "tex")),
    } | {
        f"weak.{setting}.{table}.{ending}"
        for setting in ("static", "dynamic")
        for table in (
            "truncated.grades.metrics",
            "full.grades.metrics",
            "power",
            "counterfactual",
            "exposure",
        )
        for ending in ("csv", "md", "tex")
    }
    catalogue = {path.name for path in (finished.folder / "results/tables/catalogue").iterdir()}
    assert catalogue == {
        f"{table}.{ending}" for table in ("sampled", "exposure") for ending in ("csv", "md", "tex")
    }
    figures = {path.stem for path in (finished.folder / "results/figures/tiny").glob("*.pdf")}
    assert figures == {
        "grades",
        "propensity.static",
        "propensity.dynamic",
        "spread.static",
        "spread.dynamic",
        "rounds.dynamic",
        "propensity_error",
        "counterfactual.static",
        "counterfactual.dynamic",
        "exposure.dynamic",
    }
    summary = (finished.folder / "results/summary.md").read_text()
    assert "fewer than five replicates" in summary.lower()
    assert "nan" not in summary


def test_nothing_is_left_to_do_after_a_run(finished: Study) -> None:
    assert finished.jobs() == {}


def test_a_table_or_figure_that_was_deleted_is_made_again(rerun: Study) -> None:
    (rerun.folder / "results/tables/tiny/weak.static.full.grades.tex").unlink()
    (rerun.folder / "results/figures/tiny/grades.pdf").unlink()
    assert {"write_tables", "draw_figures"} <= set(rerun.jobs())


def edit(study: Study, module: str) -> None:
    path = study.folder / "src/ultrbench" / module
    path.write_text(path.read_text() + "\n# an edit\n")


def rerun_rules(study: Study) -> set[str]:
    # The provenance of a study is noted after whatever ran.
    return set(study.jobs()) - {"all", "total", "write_provenance"}


AFTER_RANKING = {
    "evaluate_rankers",
    "compare_rankers",
    "evaluate_from_clicks",
    "judge_claims",
    "write_tables",
    "write_metrics_tables",
    "draw_figures",
    "write_summary",
}
DIAGNOSES = {"measure_propensities", "report_identifiability"}


def test_editing_an_estimator_estimates_with_it_again_and_no_other(rerun: Study) -> None:
    edit(rerun, "propensity/dla.py")
    output = rerun.run("-n")
    estimated = set(re.findall(r"Estimate propensities: (\w+) on", output))
    assert estimated == {"dla"}
    # The dynamic rounds of dla are shown by its rankers, so their clicks are drawn again.
    assert rerun_rules(rerun) == AFTER_RANKING | DIAGNOSES | {
        "estimate_propensity",
        "train_ranker",
        "simulate_clicks",
    }


def test_editing_the_tables_writes_them_again_and_nothing_before(rerun: Study) -> None:
    edit(rerun, "reporting/tables.py")
    assert rerun_rules(rerun) == DIAGNOSES | {
        "write_tables",
        "write_metrics_tables",
        "draw_figures",
        "write_summary",
        "judge_claims",
    }


def test_editing_the_tests_of_significance_measures_nothing_again(rerun: Study) -> None:
    edit(rerun, "evaluation/significance.py")
    assert "train_ranker" not in rerun_rules(rerun)
    assert "compare_rankers" in rerun_rules(rerun)


def test_a_config_value_runs_again_what_depends_on_it(rerun: Study) -> None:
    rerun.configure({"evaluation": {"bootstraps": 150}})
    assert rerun_rules(rerun) == {
        "compare_rankers",
        "evaluate_from_clicks",
        "judge_claims",
        "write_tables",
        "write_metrics_tables",
        "write_summary",
    }


def test_the_finished_study_judges_its_claims(finished: Study) -> None:
    claims = pd.read_csv(finished.folder / "results/claims.csv", keep_default_na=False)
    correction = claims[claims["claim"] == "correction"]
    # Two settings, two kinds of candidates, two validations, two methods to stand against.
    assert len(correction) == 2 * 2 * 2 * 2
    lacking = correction[correction["against"] == "upe"]
    assert set(lacking["verdict"]) == {"not run"}
    assert set(lacking["note"]) == {
        f"the study lacks method upe in setting {setting}" for setting in ("static", "dynamic")
    }
    assert set(correction["claim_verdict"]) == {"not run"}
    made = claims[claims["verdict"] != "not run"]
    assert len(made) == 2 * 2 * 2 + 1
    assert set(made["note"].str.partition(";")[0]) == {"fewer than five replicates"}
    assert "nan" not in (finished.folder / "results/claims.md").read_text()


def test_a_claim_runs_again_alone_when_it_is_edited(rerun: Study) -> None:
    claims = rerun.folder / "tiny-claims.yaml"
    claims.write_text(claims.read_text().replace("0.005", "0.01"))
    assert rerun_rules(rerun) == {"judge_claims"}


def test_an_interface_is_tested_and_described_anew_but_nothing_is_trained(rerun: Study) -> None:
    rerun.configure({"interface": "single_answer"})
    assert rerun_rules(rerun) == AFTER_RANKING - {"evaluate_from_clicks"}
    rerun.run("--cores", "2")
    tables = rerun.folder / "results/tables/tiny"
    text = (tables / "weak.static.full.grades.md").read_text()
    assert "Headline metric: RR@5, whose assumed user reads down and stops at the first" in text
    assert "| Method | RR@5 | nDCG@1 |" in text
    text = (tables / "weak.dynamic.truncated.grades.md").read_text()
    assert "| Exposure: Gini | Exposure: Cov. |" in text and "Exposure, on the displayed" in text


def test_nothing_learns_from_the_held_out_log(finished: Study) -> None:
    summary = finished.run("--detailed-summary")
    readers = {
        line.split("\t")[0].rpartition("/")[2]
        for line in summary.splitlines()
        if line.count("\t") > 4 and "test.clicks.parquet" in line.split("\t")[4]
    }
    assert readers == {"counterfactual.csv", "exposure.csv"}


def test_exported_runs_give_the_numbers_of_the_tables(rerun: Study) -> None:
    rerun.run("--cores", "2", "trec")
    folder = rerun.folder / "results/trec/tiny"
    assert len(list(folder.glob("weak.static/*.run"))) == 7 * 2 * 2 + 2
    measured = pd.read_csv(rerun.folder / "results/evaluation/tiny/weak/static/rounds.csv")
    for method, seed, validation in (("naive", 1, "grades"), ("logging_policy", 2, None)):
        run = ".".join([method, *([validation] if validation else []), f"seed{seed}", "run"])
        names = ["nDCG@5", "ERR@3", "AP", "RBP(p=.8)@10"]
        arguments = [folder / "weak.static" / run, folder / "qrels.txt", "--ymax", "4"]
        command = [sys.executable, "-m", "ultrbench.evaluation", *map(str, arguments)]
        done = subprocess.run(
            [*command, "--metrics", *names],
            env=rerun.environment,
            text=True,
            capture_output=True,
            check=True,
        )
        printed = done.stdout.splitlines()[-1].split("\t")[1:]
        [row] = measured.query(
            "candidates == 'full' and validation == 'grades' and method == @method"
            " and seed == @seed"
        )[names].to_numpy()
        assert [float(value) for value in printed] == pytest.approx(row, abs=5e-7)


def test_a_click_model_value_of_one_setting_leaves_the_other_alone(rerun: Study) -> None:
    rerun.configure({"settings": {"static": {"eta": 0.5}}})
    output = rerun.run("-n")
    assert "Simulate clicks: tiny, weak, static" in output
    assert "Simulate clicks: tiny, weak, dynamic" not in output
    assert "train_policy" not in rerun_rules(rerun)


def test_two_cores_and_interrupts_give_the_bytes_of_one_core(study: Study, finished: Study) -> None:
    process = study.start("--cores", "2")
    time.sleep(8)
    study.kill(process, signal.SIGINT)
    process = study.start("--cores", "2")
    time.sleep(8)
    study.kill(process, signal.SIGKILL)
    study.run("--unlock")
    study.run("--cores", "2")
    assert study.hashes() == finished.hashes()


def test_a_log_of_ones_own_takes_the_place_of_the_simulation(rerun: Study) -> None:
    source = rerun.folder / "results/runs/tiny/weak/static/seed1/initial/round0"
    own = rerun.folder / "own-log"
    own.mkdir()
    for file in source.glob("*.parquet"):
        (own / file.name).write_bytes(file.read_bytes())
    (own / "truth.csv").write_bytes((source / "truth.csv").read_bytes())
    rerun.configure(
        {
            "study": {"settings": ["own"]},
            "settings": {"own": {"click_log": "own-log", "methods": ["naive", "oracle", "dla"]}},
        }
    )
    rerun.run("--cores", "2")
    table = "results/evaluation/tiny/weak/{}/comparisons.csv"
    own_numbers = pd.read_csv(rerun.folder / table.format("own"))
    numbers = pd.read_csv(rerun.folder / table.format("static"))
    assert set(own_numbers["method"]) >= {"naive", "oracle", "dla"}
    assert len(numbers) > len(own_numbers)
    clicks = rerun.folder / "results/tables/tiny/weak.own.counterfactual.md"
    assert "There is no truth to compare with" in clicks.read_text()
    results = "results/tables/tiny/weak.{}.truncated.grades.md"
    said = ["learn from the same click log" in (rerun.folder / results.format(s)).read_text()
            for s in ("own", "static")]  # fmt: skip
    assert said == [True, False]


def test_click_logs_may_go_and_come_again_where_they_are_needed(study: Study) -> None:
    study.configure(
        {
            "study": {"settings": ["static"], "seeds": [1]},
            "settings": {"static": {"methods": ["naive", "randomization"]}},
        }
    )
    arguments = ("metrics", "--config", "keep_click_logs=False")
    study.run("--cores", "2", *arguments)
    results = study.hashes()
    assert not [file for file in results if file.endswith(".clicks.parquet")]
    assert "results/evaluation/tiny/weak/static/counterfactual.csv" in results
    assert study.jobs(*arguments) == {}
    edit(study, "propensity/randomization.py")
    jobs = study.jobs(*arguments)
    assert jobs["simulate_clicks"] == jobs["simulate_initial_clicks"] == 1
    assert not {"prepare_dataset", "train_policy"} & set(jobs)
    study.run("--cores", "2", *arguments)
    assert study.hashes() == results


def test_errors_of_theta_are_measured_where_there_are_some(finished: Study) -> None:
    table = pd.read_csv(finished.folder / "results/tables/tiny/propensity_error.csv")
    static = table[table["setting"] == "static"].set_index("method")
    assert set(static.index) == {"naive", "randomization", "dla", "paird", "affine"}
    assert static.loc["affine", "note"] == "gives no propensity by position"
    assert static.drop("affine")["error"].between(0.01, 3).all()
    assert (static["replicates"] == 2).all()


def test_the_ledger_splits_the_gap_on_request(rerun: Study) -> None:
    assert "The ledger needs a setting" in rerun.run("--cores", "1", "ledger", ok=False)
    methods = ["naive", "oracle", "randomization", "paird", "affine", "labeled"]
    rerun.configure({"settings": {"static": {"methods": methods}}})
    rerun.run("--cores", "2", "ledger")
    table = pd.read_csv(rerun.folder / "results/tables/tiny/ledger.csv")
    assert list(table["method"].unique()) == ["naive", "oracle", "randomization"]
    steps = table.set_index(["candidates", "validation", "method", "step"])["value"]
    first = steps.loc[("truncated", "grades")]
    assert first["naive", "correction"] == first["oracle", "theta"] == 0
    assert first["naive", "theta"] == pytest.approx(-first["oracle", "correction"])


def test_the_report_and_the_expected_results_are_made_on_request(rerun: Study) -> None:
    (rerun.folder / "CHANGELOG.md").write_text("")
    said = rerun.run("--cores", "2", "report", "expected")
    assert re.search(r"- Expected results: none -> [0-9a-f]{12} \(mean nDCG@5 0\.\d{4}\)", said)
    page = (rerun.folder / "results/report.html").read_text()
    assert "decide nothing" in page and "Errors of the propensities" in page
    assert page.count("data:image/svg+xml;base64,") == 11
    (rerun.folder / "results/report.html").unlink()
    rerun.run("--cores", "1", "report")
    assert (rerun.folder / "results/report.html").read_text() == page
    rerun.run("--report", "snakemake.html")
    assert "counterfactual.static.svg" in (rerun.folder / "snakemake.html").read_text()

    def check() -> subprocess.CompletedProcess:
        command = [sys.executable, "-m", "ultrbench.stages.expected"]
        return subprocess.run(
            command, cwd=rerun.folder, env=rerun.environment, text=True, capture_output=True
        )

    assert check().returncode == 0
    table = rerun.folder / "results/expected/propensity_error.csv"
    lines = table.read_text().splitlines()
    fields = lines[1].split(",")
    fields[4] = str(float(fields[4]) + 0.01)
    table.write_text("\n".join([lines[0], ",".join(fields), *lines[2:], ""]))
    done = check()
    assert done.returncode == 1
    assert "1 differ:\n  tiny, weak, static, naive: error is" in done.stdout


def test_a_mistake_in_the_config_is_a_sentence_and_no_traceback(study: Study) -> None:
    study.configure({"settings": {"static": {"eta": "abc"}}})
    output = study.run("-n", ok=False)
    assert "settings.static.eta" in output
    assert "Traceback" not in output


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"registry": 5}, "registry: the path of a YAML file is wanted"),
        ({"downloads": "data {2020}"}, "data {2020}: the path of a file must not hold a brace"),
        ({"registry": "x" * 300}, "File name too long"),
        ({"claims": "x" * 300}, "File name too long"),
        (
            {
                "study": {"settings": ["own"]},
                "settings": {"own": {"click_log": "x" * 300, "methods": ["naive"]}},
            },
            "File name too long; put the configuration right",
        ),
    ],
)
def test_a_path_that_cannot_be_is_a_sentence(study: Study, change: dict, words: str) -> None:
    study.configure(change)
    output = study.run("-n", ok=False)
    assert words in output
    assert "Traceback" not in output and "Error in file" not in output


def test_a_folder_without_the_default_config_is_a_sentence(study: Study) -> None:
    (study.folder / "config").rename(study.folder / "elsewhere")
    assert "there is no config/config.yaml in" in study.run("-n", ok=False)


def test_a_file_in_place_of_the_results_is_a_sentence(study: Study) -> None:
    (study.folder / "results").write_text("mine")
    printed = study.run("--cores", "1", ok=False)
    assert "ultrbench: results is a file" in printed
    assert "Traceback" not in printed
    assert (study.folder / "results").read_text() == "mine"
    (study.folder / "results").unlink()
    (study.folder / "results").mkdir()
    (study.folder / "results/runs").write_text("mine")
    assert "ultrbench: results/runs is a file" in study.run("-n", ok=False)


def test_a_digit_that_changed_in_a_result_stops_what_reads_it(rerun: Study) -> None:
    """Bits flip without a word to the clock, and a digit is as good as another to a reader."""
    model = rerun.folder / "results/runs/tiny/weak/dynamic/seed1/naive/round0/ranker.txt"
    text, times = model.read_text(), model.stat()
    at = text.index("leaf_value=") + len("leaf_value=") + 5
    model.write_text(text[:at] + str((int(text[at]) + 1) % 10) + text[at + 1 :])
    os.utime(model, ns=(times.st_atime_ns, times.st_mtime_ns))
    arguments = ("--cores", "1", "--forcerun", "simulate_clicks", "--until", "simulate_clicks")
    printed = rerun.run(*arguments, ok=False)
    assert "naive/round0/ranker.txt is not what its job wrote" in printed
    assert "Traceback" not in printed


def test_a_finished_study_whose_claims_were_touched_up_is_no_finished_study(rerun: Study) -> None:
    claims = rerun.folder / "results/claims.csv"
    made = claims.read_text()
    claims.write_text(made.replace("fewer than five replicates", "fewer than two replicates"))
    os.utime(claims)
    printed = rerun.run("-n", ok=False)
    assert "ultrbench: results/claims.csv is not what its job wrote" in printed
    assert "Traceback" not in printed
    claims.unlink()
    rerun.run("--cores", "1")
    assert claims.read_text() == made


def test_a_mistake_in_a_log_is_a_sentence_and_no_traceback(rerun: Study) -> None:
    (rerun.folder / "empty").mkdir()
    for name in ("train.lists.parquet", "train.clicks.parquet"):
        (rerun.folder / "empty" / name).write_bytes(b"not parquet")
    rerun.configure(
        {
            "study": {"settings": ["own"]},
            "settings": {"own": {"click_log": "empty", "methods": ["naive"]}},
            "training": {"validation": ["grades"]},
        }
    )
    output = rerun.run("--cores", "1", ok=False)
    assert "not a readable parquet file" in output
    assert "import_clicks failed, see results/logs/clicks/" in output
    assert "Put right what the last line says" in output
    assert "Traceback" not in output


def test_metrics_do_not_hang_on_clicks(rerun: Study) -> None:
    for log in (rerun.folder / "results/runs").rglob("*.clicks.parquet"):
        log.unlink()
    target = "results/evaluation/tiny/weak/static/per_query.parquet"
    measured = (rerun.folder / target).read_bytes()
    (rerun.folder / target).unlink()
    rerun.run("--cores", "1", target)
    assert (rerun.folder / target).read_bytes() == measured


@pytest.mark.slow
def test_fixed_effects_display_their_own_rounds(study: Study) -> None:
    dynamic = {"sessions": 20000, "rounds": 3, "methods": ["naive", "own_rounds"]}
    study.configure(
        {
            "study": {"settings": ["dynamic"], "seeds": [1]},
            "settings": {"dynamic": dynamic},
            "methods": {"own_rounds": {"estimator": "fixed_effects", "ranker": "softmax"}},
        }
    )
    study.run("--cores", "2", "propensity")
    runs = study.folder / "results/runs/tiny/weak/dynamic/seed1"
    reports = [
        json.loads((runs / track / "theta/fixed_effects.json").read_text())
        for track in ("initial/round0", "own_rounds/round1", "own_rounds/round2")
    ]
    assert [report["identified"] for report in reports] == [False, True, True]
    assert "no document has been seen at two positions yet" in reports[0]["notes"][0]
    assert reports[2]["converged"]

"""The workflow end to end: its targets, and bytes that repeat."""

import json
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

"""What runs again after a change, and what does not."""

import re

from .conftest import Study


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


def test_a_click_model_value_of_one_setting_leaves_the_other_alone(rerun: Study) -> None:
    rerun.configure({"settings": {"static": {"eta": 0.5}}})
    output = rerun.run("-n")
    assert "Simulate clicks: tiny, weak, static" in output
    assert "Simulate clicks: tiny, weak, dynamic" not in output
    assert "train_policy" not in rerun_rules(rerun)


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


def test_metrics_do_not_hang_on_clicks(rerun: Study) -> None:
    for log in (rerun.folder / "results/runs").rglob("*.clicks.parquet"):
        log.unlink()
    target = "results/evaluation/tiny/weak/static/per_query.parquet"
    measured = (rerun.folder / target).read_bytes()
    (rerun.folder / target).unlink()
    rerun.run("--cores", "1", target)
    assert (rerun.folder / target).read_bytes() == measured

"""The study of README.md and docs/extending.md, followed to the letter on a small scale."""

import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
import yaml

from .conftest import Study, copy_study
from .documents import write_files

FOLDER = "results/tables/my-data/one_feature.steep"
TABLES = ["truncated.grades", "truncated.grades.metrics"]
# Not what is extended: how much of it.
SMALL = {
    "study": {"seeds": [1]},
    "settings": {"steep": {"sessions": 3000, "lists_per_query": 2}},
    "estimators": {"dla": {"trees": 2}},
    "training": {"trees": 3, "leaves": 4, "min_data_in_leaf": 5, "validation": ["grades"]},
    "list_size": 5,
    "evaluation": {
        "candidates": ["truncated"],
        "cutoffs": [5],
        "resamples": 200,
        "bootstraps": 50,
    },
    "registry": "config/datasets.yaml",
}


@pytest.fixture(scope="module")
def extended(tmp_path_factory: pytest.TempPathFactory) -> Study:
    """A study with all five extensions that has written its tables."""
    study = copy_study(tmp_path_factory.mktemp("extended"))
    for document in ("README.md", "docs/extending.md"):
        write_files(document, study.folder)
    study.configure(yaml.safe_load((study.folder / "mine.yaml").read_text()))
    study.configure(SMALL)
    subprocess.run([sys.executable, "make_data.py"], cwd=study.folder, check=True)
    study.run("--cores", "1", *[f"{FOLDER}.{table}.csv" for table in TABLES])
    return study


def test_the_tables_have_what_the_documents_add(extended: Study) -> None:
    main, metrics = (pd.read_csv(extended.folder / f"{FOLDER}.{table}.csv") for table in TABLES)
    assert {"mine", "mine_shuffled"} <= set(main["method"])
    page = (extended.folder / f"{FOLDER}.truncated.grades.md").read_text()
    assert "| Root of CTR |" in page and "| Root of CTR on shuffled |" in page
    value = metrics.set_index("method").loc["mine", "F1@5"]
    assert 0 < value < 1


def test_users_and_estimators_are_those_of_the_documents(extended: Study) -> None:
    log = extended.folder / "results/runs/my-data/one_feature/steep/seed1/initial/round0"
    truth = pd.read_csv(log / "truth.csv")
    assert truth["theta"].tolist() == pytest.approx([1 / k**2 for k in range(1, 6)])
    mine = pd.read_csv(log / "theta/mine.csv")
    clicks = pd.read_parquet(log / "train.clicks.parquet")
    first = clicks.loc[clicks["mask"] % 2 == 1, "count"].sum()
    second = clicks.loc[clicks["mask"] // 2 % 2 == 1, "count"].sum()
    assert mine["relative"][1] == pytest.approx((second / first) ** 0.5)


def test_an_edit_of_a_file_of_ones_own_runs_again_what_depends_on_it(extended: Study) -> None:
    target = f"{FOLDER}.truncated.grades.csv"
    assert extended.jobs(target) == {}
    (extended.folder / "mine.py").open("a").write("# an edit\n")
    jobs = extended.jobs(target)
    assert jobs["estimate_propensity"] == 2
    assert not {"simulate_initial_clicks", "simulate_clicks", "train_policy"} & set(jobs)


def test_a_function_that_is_missing_is_a_sentence(extended: Study, tmp_path: Path) -> None:
    command = [*extended.command("-n"), "other.yaml"]
    text = "estimators: {mine: {kind: 'mine.py:fit'}}\n"
    (extended.folder / "other.yaml").write_text(text)
    done = subprocess.run(
        command, cwd=extended.folder, env=extended.environment, text=True, capture_output=True
    )
    assert done.returncode == 1
    said = done.stdout + done.stderr
    assert "mine.py defines no function fit; functions there: estimate." in said
    assert "Traceback" not in said

"""Grades of test queries reach nothing that comes before evaluation."""

from pathlib import Path

import numpy as np
import pytest
import yaml

from .conftest import REPOSITORY, Study, copy_study

PAPER = yaml.safe_load((REPOSITORY / "config/paper.yaml").read_text())
SPLITS = {"train": range(60), "vali": range(100, 115), "test": range(200, 220)}
STUDY = {
    "study": {"datasets": ["letor"], "policies": ["random", "weak", "strong", "own"], "seeds": [1]},
    "registry": "letor.yaml",
    "policies": {"own": {"kind": "own.py:score"}},
    "settings": {
        "static": {"methods": PAPER["settings"]["static"]["methods"]},
        "dynamic": {"methods": PAPER["settings"]["dynamic"]["methods"]},
    },
    "methods": PAPER["methods"],
    "tuning": {
        "seeds": [101],
        "setting": "static",
        "grids": {"dla": {"trees": [5, 2]}, "paird": {"regulariser": [1, 0]}},
    },
}
POLICY = """
def score(splits, order, **_):
    return {name: split.features[:, 0] for name, split in splits.items()}
"""


def write_data(study: Study, permuted: bool) -> None:
    """Write LETOR text with grades that follow from the features; those of test may be permuted."""
    rng = np.random.default_rng(7)
    for split, queries in SPLITS.items():
        features = rng.normal(size=(len(queries) * 12, 4)).round(4)
        relevance = features[:, 0] + 0.7 * features[:, 1] + 0.5 * rng.normal(size=len(features))
        grades = np.searchsorted([0.0, 0.6, 1.2, 1.8], relevance)
        if permuted and split == "test":
            grades = rng.permutation(grades)
        lines = [
            f"{grade} qid:{queries[row // 12]} "
            + " ".join(f"{index}:{value}" for index, value in enumerate(values, start=1))
            for row, (grade, values) in enumerate(zip(grades, features, strict=True))
        ]
        folder = study.folder / "downloads/letor"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{split}.txt").write_text("\n".join([*lines, ""]))


def upstream(folder: Path, *, permuted: bool) -> dict[str, str]:
    """Run all that comes before evaluation, and tuning; return the checksums of what it left."""
    folder.mkdir()
    study = copy_study(folder)
    study.configure(STUDY)
    entry = {"kind": "letor", "ymax": 4, "features": 4, "path": "letor"}
    (study.folder / "letor.yaml").write_text(yaml.safe_dump({"letor": entry}))
    (study.folder / "own.py").write_text(POLICY)
    write_data(study, permuted)
    study.run("--cores", "2", "ranking", "tuning")
    parts = ("results/policies", "results/runs", "results/tuning")
    return {name: sha for name, sha in study.hashes().items() if name.startswith(parts)}


@pytest.mark.slow
def test_no_byte_before_evaluation_hangs_on_the_grades_of_test_queries(tmp_path) -> None:
    first = upstream(tmp_path / "given", permuted=False)
    second = upstream(tmp_path / "permuted", permuted=True)
    assert first.keys() == second.keys()
    changed = {name for name in first if first[name] != second[name]}
    changed.discard("results/tuning/letor/runtime.csv")  # how long the jobs took
    # The log held out for counterfactual evaluation is made of clicks on test queries.
    held_out = {name for name in first if name.endswith("/test.clicks.parquet")}
    assert changed == held_out
    for method in {*PAPER["settings"]["static"]["methods"]}:
        assert any(f"/static/seed1/{method}/" in name for name in first), method

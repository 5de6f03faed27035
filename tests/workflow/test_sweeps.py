"""Sweeps and tuning end to end, on the tiny study."""

import pandas as pd
import pytest

from .conftest import Study

# The last gives no theta.
METHODS = ["naive", "oracle", "dla", "paird", "lightgbm_position"]
USUAL = {"sessions": 4000, "methods": METHODS}
POINTS = {"section": "settings", "base": "usual"}
SWEEPS = {
    "study": {"policies": ["weak"], "settings": ["usual"]},
    "settings": {"usual": USUAL},
    "sweeps": {
        "clicks": {**POINTS, "key": "click_model", "values": [{"kind": "pbm"}, {"kind": "ubm"}]},
        "hidden": {**POINTS, "key": "hidden_features", "values": [0, 0.5], "label": "hidden"},
        "positions": {
            "section": "policies", "base": "weak", "key": "list_size", "values": [3, 5]
        },
    },
    "training": {"validation": ["grades"]},
}  # fmt: skip
TUNING = {
    "study": {"policies": ["weak"]},
    "tuning": {
        "seeds": [101, 102],
        "setting": "static",
        "grids": {"dla": {"trees": [5, 2]}, "paird": {"regulariser": [1, 0]}},
    },
    "training": {"validation": ["grades"]},
}


def test_a_sweep_runs_its_points_and_nothing_of_the_rest(study: Study) -> None:
    study.configure(SWEEPS)
    jobs = study.jobs("sweeps")
    # The base and one more point a sweep, the latter of which one has a policy of its own.
    assert jobs["evaluate_rankers"] == 4
    assert jobs["train_policy"] == 2
    assert jobs["train_ranker"] == 4 * len(METHODS)
    assert "write_tables" not in jobs


def test_the_default_study_neither_sweeps_nor_tunes(study: Study) -> None:
    assert study.jobs("sweeps", "tuning") == {"sweeps": 1, "tuning": 1, "total": 2}


def test_tuning_and_study_share_no_seed(study: Study) -> None:
    study.configure(TUNING | {"tuning": TUNING["tuning"] | {"seeds": [101, 2]}})
    output = study.run("-n", "tuning", ok=False)
    assert "tuning.seeds: 2 also in study.seeds" in output
    assert "Traceback" not in output


@pytest.mark.slow
def test_a_sweep_ends_with_tables_figures_and_cards(study: Study) -> None:
    study.configure(SWEEPS)
    study.run("--cores", "2", "sweeps")
    results = study.folder / "results"
    made = {path.name for path in (results / "sweeps/tiny").iterdir()}
    assert made == {"runtime.csv"} | {
        f"{sweep}.{ending}" for sweep in SWEEPS["sweeps"] for ending in ("csv", "pdf", "png", "svg")
    }
    cards = {path.name for path in (results / "cards/tiny").iterdir()}
    assert cards == {f"{method}.{ending}" for method in METHODS[2:] for ending in ("tex", "pdf")}
    clicks = pd.read_csv(results / "sweeps/tiny/clicks.csv")
    known = clicks.groupby(["value", "method"])["theta_error"].count()
    assert known["pbm", "dla"] == 2
    assert known["ubm", "dla"] == 0
    positions = pd.read_csv(results / "sweeps/tiny/positions.csv")
    assert set(positions["candidates"]) == {"full"}
    model = results / "runs/tiny/weak/hidden-0_5/seed1/dla/round0/ranker.txt"
    used = [line for line in model.read_text().splitlines() if line.startswith("split_feature=")]
    assert 0 < len({column for line in used for column in line.partition("=")[2].split()}) <= 6
    hashes = study.hashes()
    (results / "cards/tiny/dla.pdf").unlink()
    study.run("--cores", "2", "sweeps")
    assert study.hashes() == hashes


@pytest.mark.slow
def test_tuning_chooses_for_every_method(study: Study) -> None:
    study.configure(TUNING)
    study.run("--cores", "2", "tuning")
    table = pd.read_csv(study.folder / "results/tuning/tiny/choice.csv")
    assert table.groupby("method")["chosen"].sum().to_dict() == {"dla": 1, "paird": 1}
    runs = study.folder / "results/runs/tiny/weak"
    assert {path.name for path in (runs / "tuning").iterdir()} == {"seed101", "seed102"}
    assert not (study.folder / "results/evaluation").exists()

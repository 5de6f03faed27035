"""Hidden features, the tables of sweeps, the cards, and the choice of tuning."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ultrbench.datasets.split import hide_features
from ultrbench.errors import UserError
from ultrbench.files import write_json
from ultrbench.propensity.estimate import up_to_scale, write_estimate
from ultrbench.reporting.cards import card_figure, card_latex, make_card
from ultrbench.reporting.figures import save_figure, sweep_figure
from ultrbench.simulation.truth import write_truth
from ultrbench.stages.runtime import read_runtimes, write_runtime
from ultrbench.stages.sweeps import SweptTheta, sweep_frame, write_cards
from ultrbench.stages.tuning import Trial, choose, trials_frame, tune

TRUTH = np.array([0.8, 0.4, 0.2])
ETAS = ["0.5", "1"]


def test_hidden_features_are_nested_and_exactly_as_many() -> None:
    features = np.ones((3, 10), np.float32)
    some, more = (hide_features(features, share, 5)[0] == 0 for share in (0.29, 0.6))
    assert (some.sum(), more.sum()) == (2, 6)
    assert (more | ~some).all()
    assert hide_features(features, 0.0, 5) is features
    assert (hide_features(features, 1 - 1e-13, 5)[0] != 0).sum() == 1
    assert features.all()


def estimate(folder: Path, name: str, relative: np.ndarray, **outcome) -> tuple[Path, Path]:
    files = folder / f"{name}.csv", folder / f"{name}.json"
    write_estimate(up_to_scale(relative, **outcome), *files)
    return files


@pytest.fixture
def points(tmp_path: Path) -> tuple[list[SweptTheta], dict[tuple[str, str], Path]]:
    """Two values and two seeds; dla is off by a factor 2 at the third position of value 1."""
    write_truth(tmp_path / "truth.csv", TRUTH)
    thetas, scores = [], {}
    for value in ETAS:
        rows = []
        for seed in (1, 2):
            off = np.array([1, 1, 2.0 if value == "1" else 1])
            for method, relative in (("naive", np.ones(3)), ("dla", off * TRUTH / TRUTH[0])):
                trace = [[1.0], [1.0]] if method == "dla" else []
                files = estimate(
                    tmp_path, f"{value}{seed}{method}", relative, trace=trace, converged=seed == 1
                )
                thetas.append(
                    SweptTheta("weak", value, method, seed, *files, tmp_path / "truth.csv")
                )
                for round_ in (0, 1):
                    score = 0.7 + 0.01 * seed + (0.02 * round_ if method == "dla" else 0)
                    rows.append(("full", "grades", method, round_, seed, score))
            rows.append(("full", "grades", "random_order", 0, seed, 0.1))
            rows.append(("truncated", "grades", "naive", 1, seed, 0.2))
        names = ["candidates", "validation", "method", "round", "seed", "nDCG@10"]
        scores["weak", value] = tmp_path / f"{value}.rounds.csv"
        pd.DataFrame(rows, columns=names).to_csv(scores["weak", value], index=False)
    return thetas, scores


SELECTION = {"candidates": "full", "validation": "grades", "metric": "nDCG@10"}


def test_a_sweep_has_the_last_round_and_the_error_of_theta(points) -> None:
    frame = sweep_frame(*points, **SELECTION)
    assert len(frame) == 2 * 2 * 2
    dla = frame[(frame["method"] == "dla") & (frame["seed"] == 1)].set_index("value")
    assert dla["score"].tolist() == pytest.approx([0.73, 0.73])
    assert dla["theta_error"].tolist() == pytest.approx([0, np.log(2) / 2])
    assert dla["iterations"].tolist() == [2, 2]
    naive = frame[frame["method"] == "naive"]
    assert naive["theta_error"].iloc[0] == pytest.approx((np.log(2) + np.log(4)) / 2)


def test_no_error_where_examination_is_no_function_of_position(points, tmp_path: Path) -> None:
    write_truth(tmp_path / "truth.csv", TRUTH, by_position=False)
    assert sweep_frame(*points, **SELECTION)["theta_error"].isna().all()


def test_the_figure_has_both_measures_and_values_at_equal_distances(points, tmp_path: Path) -> None:
    frame = sweep_frame(*points, **SELECTION)
    figure = sweep_figure(frame, ["naive", "dla"], xlabel="eta")
    errors, scores = figure.axes
    np.testing.assert_allclose(scores.lines[0].get_ydata(), [0.715, 0.715])
    dla = errors.lines[1]
    assert np.isnan(dla.get_ydata()[0])  # no error at all has no place on a logarithmic axis
    assert dla.get_ydata()[1] == pytest.approx(np.log(2) / 2)
    assert [text.get_text() for text in scores.get_xticklabels()] == ETAS
    assert scores.get_xlabel() == "eta"
    save_figure(figure, tmp_path / "a.pdf", tmp_path / "a.png")
    without = sweep_figure(frame.assign(theta_error=np.nan), ["naive", "dla"], xlabel="eta")
    assert np.isnan(without.axes[0].lines[0].get_ydata()).all()


def card_rows(errors: list[float], gains: list[float], converged: bool = True) -> pd.DataFrame:
    """A condition for each error, with two seeds."""
    return pd.DataFrame(
        [
            {"axis": "eta", "panel": "weak", "value": str(n), "method": "dla", "seed": seed,
             "metric": "nDCG@10", "score": 0.8, "theta_error": error, "signed_error": -error,
             "converged": converged, "iterations": 6, "gain": gain}
            for n, (error, gain) in enumerate(zip(errors, gains, strict=True))
            for seed in (1, 2)
        ]
    )  # fmt: skip


DLA = {"kind": "dla", "trees": 50, "folds": 2}


def card(frame: pd.DataFrame, estimator: dict = DLA):
    return make_card(frame, "dla", estimator, about="Toy.", reference="naive", trees=150)


def test_a_card_says_where_theta_is_right_and_what_it_costs() -> None:
    facts = dict(card(card_rows([0.01, 0.3], [0.01, -0.01], converged=False)).facts)
    assert facts["Where theta is right"] == (
        "Error at most 0.05 in 1 of 2 conditions; beyond at: eta 1. Greatest 0.30, at eta 1."
    )
    assert facts["Ranking"].endswith("better in 1 of 2 conditions, worse in 1: eta 1.")
    assert facts["Convergence"].startswith("Settled in 0 % of 4 estimates; 6 steps in the median")
    assert facts["Cost"].startswith(f"Up to {6 * 50 * 1 / 150:.1f} x the trees of a plain ranker")


@pytest.mark.parametrize(
    ("errors", "gains", "start", "end"),
    [
        ([0.01] * 5, [0.01] * 5, "For theta and for ranking", "safe to prefer to the reference."),
        ([0.01, 0.2], [0, -0.01], "For theta only under", "says otherwise."),
        ([0.2, 0.3], [0, 0], "Not for theta", "look yours up below."),
        ([np.nan], [0], "As a ranker only", "look yours up below."),
    ],
)
def test_the_recommendation_follows_from_the_figures(errors, gains, start, end) -> None:
    use = dict(card(card_rows(errors, gains)).facts)["Recommended use"]
    assert use.startswith(start)
    assert use.endswith(end)


def test_cards_are_one_page_each_and_repeat(points, tmp_path: Path) -> None:
    table = tmp_path / "eta.csv"
    sweep_frame(*points, **SELECTION).to_csv(table, index=False)
    printed = []
    for folder in ("a", "b"):
        out = tmp_path / folder / "dla.tex", tmp_path / folder / "dla.pdf"
        write_cards(
            {"severity_of $": table}, {"dla": out}, estimators={"dla": DLA}, about="Toy.",
            reference="naive", trees=150, labels={},
        )  # fmt: skip
        printed.append([path.read_bytes() for path in out])
    assert printed[0] == printed[1]
    tex, pdf = printed[0]
    assert len(re.findall(rb"/Type /Page\b", pdf)) == 1
    assert rb"severity\_of \$ & weak & 1 & 0.347 $\pm$ 0.000 & $+$0.347 & 50\,\%" in tex


def test_a_card_of_many_conditions_keeps_to_the_page() -> None:
    rows = card_rows([0.2] * 45, [-0.01] * 45).assign(
        axis="share of features hidden from the ranker"
    )
    drawn = card_figure(card(rows))
    drawn.draw_without_rendering()
    for axes in drawn.axes:
        box = axes.get_tightbbox()
        assert drawn.bbox.containsx(box.x0)
        assert drawn.bbox.containsx(box.x1)
        assert drawn.bbox.containsy(box.y0)
    for text in drawn.texts:
        box = text.get_window_extent()
        assert box.y0 > 0
        assert drawn.bbox.containsx(box.x1)
    text, *_ = (t for t in drawn.texts if "Recommended use" in t.get_text())
    assert text.get_window_extent().y0 > max(a.get_tightbbox().y1 for a in drawn.axes)


def test_a_card_without_theta_is_drawn() -> None:
    made = card(card_rows([np.nan] * 2, [0, 0]), {"kind": "vectorization", "dimensions": 3})
    card_figure(made).draw_without_rendering()
    assert "n/a" in card_latex(made)
    assert dict(made.facts)["Cost"].startswith("One ranker")


def trials(folder: Path) -> list[Trial]:
    """dla-2 ranks best on validation, dla-3 has the best theta; dla-1 ties with dla-2 on seed 8."""
    write_truth(folder / "truth.csv", TRUTH)
    found = []
    for number, factor in ((1, 4.0), (2, 2.0), (3, 1.0)):
        for seed in (7, 8):
            name = f"dla-{number}"
            best = {1: 0.80, 2: 0.80 + 0.02 * (seed == 7), 3: 0.70}[number]
            ranker = folder / f"{name}.{seed}.ranker.json"
            # The last tree would be better, but is not the one that is used.
            write_json(ranker, {"trees": {"grades": 2}, "curve": {"grades": [0.1, best, 0.9]}})
            relative = np.array([1, 1, factor]) * TRUTH / TRUTH[0]
            files = estimate(folder, f"{name}{seed}", relative)
            found.append(Trial(name, "weak", seed, ranker, *files, folder / "truth.csv"))
    return found


GRID = {"dla": {"dla-1": {"trees": 50}, "dla-2": {"trees": 150}, "dla-3": {"trees": 5}}}


def test_validation_alone_chooses_and_the_error_of_theta_only_marks(tmp_path: Path) -> None:
    table = choose(trials_frame(trials(tmp_path), "grades"), GRID).set_index("configuration")
    assert table["chosen"].tolist() == [False, True, False]
    assert table["oracle_tuned"].tolist() == [False, False, True]
    assert table.loc["dla-2", "validation"] == pytest.approx(0.81)
    assert table.loc["dla-2", "difference"] == pytest.approx(0.01)
    # Two paired differences, .02 and 0: their standard deviation is .02/sqrt(2), over sqrt(2).
    assert table.loc["dla-2", "standard_error"] == pytest.approx(0.02 / 2)
    assert table.loc["dla-1", "theta_error"] == pytest.approx(np.log(4) / 2)


def test_of_equal_configurations_the_first_is_chosen() -> None:
    frame = pd.DataFrame(
        {"configuration": ["dla-1", "dla-2", "dla-3"], "policy": "weak", "seed": 7,
         "validation": 0.8, "theta_error": np.nan, "signed_error": np.nan, "converged": True}
    )  # fmt: skip
    table = choose(frame, GRID)
    assert table["chosen"].tolist() == [True, False, False]
    assert not table["oracle_tuned"].any()


def test_the_page_shows_what_is_chosen_and_the_oracle_s_choice_marked(tmp_path: Path) -> None:
    tune(
        trials(tmp_path), tmp_path / "c.csv", tmp_path / "c.md", grids=GRID, validation="grades",
        oracle_tuned=["dla"], labels={},
    )  # fmt: skip
    rows = (tmp_path / "c.md").read_text().splitlines()[-2:]
    assert rows[0] == "| DLA | trees 150 | 0.8100 | +0.0100 ± 0.0100 | 0.347 | 100 % |"
    assert rows[1].startswith("| DLA *oracle-tuned* | trees 5 |")


def test_a_benchmark_that_is_missing_or_too_short_leaves_its_cell_empty(tmp_path: Path) -> None:
    (tmp_path / "short.tsv").write_text("s\tcpu_time\n0.5\tNA\n")
    rows = [({"method": name}, tmp_path / f"{name}.tsv") for name in ("short", "missing")]
    write_runtime(rows, 2, tmp_path / "runtime.csv")
    assert (tmp_path / "runtime.csv").read_text().splitlines()[1:] == ["short,", "missing,"]


@pytest.mark.parametrize(
    "text", ["", "s\tcpu_time\n", "s\tcpu_uime\n1\t2\n", "s\tcpu_time\n1\n", "\xff"]
)
def test_a_damaged_benchmark_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "dla.tsv").write_text(text, encoding="latin-1")
    with pytest.raises(UserError, match=r"dla\.tsv cannot be read as what Snakemake measured"):
        write_runtime([({}, tmp_path / "dla.tsv")], 2, tmp_path / "runtime.csv")
    with pytest.raises(UserError, match=r"dla\.tsv cannot be read as what Snakemake measured"):
        read_runtimes(tmp_path)


def test_what_stands_in_place_of_a_benchmark_is_named(tmp_path: Path) -> None:
    (tmp_path / "dla.tsv").mkdir()
    with pytest.raises(UserError, match=r"dla\.tsv is no file any more"):
        read_runtimes(tmp_path)

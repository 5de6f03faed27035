"""The figures: same bytes, one look a method, and the edge cases of frames."""

import hashlib
import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib import rcParams

from ultrbench.reporting.figures import (
    COLUMN,
    PAGE,
    grades_figure,
    iterations_figure,
    ledger_figure,
    method_style,
    propensity_figure,
    rounds_figure,
    save_figure,
    spread_figure,
)

TRUTH = np.array([1.0, 0.9, 0.7, 0.5])
ORDER = ["naive", "oracle", "dla", "random_order", *(f"method_{i}" for i in range(12))]


def propensities(policies=("weak",), methods=("oracle", "dla"), seeds=(1, 2), settings=("static",)):
    return pd.DataFrame(
        [
            (policy, setting, method, seed, k + 1, TRUTH[k] ** (1 + 0.1 * seed), TRUTH[k])
            for policy in policies
            for setting in settings
            for method in methods
            for seed in seeds
            for k in range(4)
        ],
        columns=["policy", "setting", "method", "seed", "position", "relative", "truth"],
    )


def values(policies=("weak",), methods=("naive", "dla"), seeds=(1, 2), rounds=(0, 1)):
    return pd.DataFrame(
        [
            (policy, method, round_, seed, 0.8 + 0.01 * round_ + 0.001 * seed + 0.01 * place)
            for policy in policies
            for place, method in enumerate(methods)
            for round_ in rounds
            for seed in seeds
        ],
        columns=["policy", "method", "round", "seed", "value"],
    )


def grades(policies=("weak",)):
    return pd.DataFrame(
        [(policy, k, g, s) for policy in policies for k in (1, 2) for g, s in ((0, 0.7), (3, 0.3))],
        columns=["policy", "position", "grade", "share"],
    )


def figures(policies=("weak",), methods=("naive", "dla"), seeds=(1, 2)):
    return [
        propensity_figure(propensities(policies, methods, seeds), ORDER),
        rounds_figure(values(policies, methods, seeds), ORDER, metric="nDCG@5"),
        spread_figure(values(policies, methods, seeds, rounds=(0,)), ORDER, metric="nDCG@5"),
        grades_figure(grades(policies)),
    ]


def saved(figure, folder: Path) -> dict[str, str]:
    save_figure(figure, *(folder / f"f.{ending}" for ending in ("pdf", "png", "svg")))
    files = sorted(folder.iterdir())
    assert [path.name for path in files] == ["f.pdf", "f.png", "f.svg"]
    return {path.suffix: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def legend(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


@pytest.mark.parametrize(
    ("policies", "methods", "seeds"),
    [
        (["weak"], ["dla"], [1]),
        (["random", "weak", "strong"], ["naive", "dla"], [1, 2, 3]),
        (["a", "b", "c", "d"], ORDER, [1, 2]),
    ],
)
def test_any_number_of_panels_methods_and_seeds(policies, methods, seeds, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a missing glyph or a failed layout is a warning
        for place, figure in enumerate(figures(policies, methods, seeds)):
            assert len(figure.axes) == len(policies)
            assert figure.get_figwidth() == (COLUMN if len(policies) == 1 else PAGE)
            folder = tmp_path / str(place)
            save_figure(figure, folder / "f.pdf", folder / "f.png")
            figure.draw_without_rendering()
            canvas = figure.bbox.padded(1)
            for part in [*figure.axes, *figure.legends]:
                box = part.get_tightbbox()
                assert canvas.containsx(box.x0) and canvas.containsx(box.x1)
                assert canvas.containsy(box.y0) and canvas.containsy(box.y1)
            for box in (legend.get_tightbbox() for legend in figure.legends):
                assert not any(box.overlaps(axes.get_tightbbox()) for axes in figure.axes)


def test_same_bytes_from_another_process(tmp_path):
    script = (
        "import sys; from pathlib import Path; sys.path.insert(0, sys.argv[1])\n"
        "import test_figures as t\n"
        "for figure in t.figures(): print(t.saved(figure, Path(sys.argv[2])))\n"
    )
    printed = []
    for seed in "12":
        folder = tmp_path / seed
        folder.mkdir()
        done = subprocess.run(
            [sys.executable, "-c", script, str(Path(__file__).parent), str(folder)],
            env=os.environ | {"PYTHONHASHSEED": seed, "MPLCONFIGDIR": str(folder.parent / "mpl")},
            capture_output=True,
            text=True,
            check=True,
        )
        printed.append(done.stdout)
    assert printed[0] == printed[1]
    assert len(set(printed[0].splitlines())) == 4


def test_a_reader_s_own_settings_do_not_reach_the_files(tmp_path):
    before = saved(rounds_figure(values(), ORDER, metric="nDCG@5"), tmp_path)
    kept = {key: rcParams[key] for key in ("font.size", "savefig.dpi", "axes.facecolor")}
    try:
        rcParams.update({"font.size": 20, "savefig.dpi": 30, "axes.facecolor": "red"})
        assert saved(rounds_figure(values(), ORDER, metric="nDCG@5"), tmp_path) == before
        assert rcParams["font.size"] == 20
    finally:
        rcParams.update(kept)


def test_pdf_has_no_date_and_no_bitmap_fonts(tmp_path):
    saved(propensity_figure(propensities(), ORDER), tmp_path)
    pdf = (tmp_path / "f.pdf").read_bytes()
    assert b"CreationDate" not in pdf
    assert b"/Type3" not in pdf


def test_a_method_looks_the_same_everywhere_and_like_no_other():
    looks = [str(method_style(method, ORDER)) for method in ORDER]
    assert len(set(looks)) == len(ORDER) == 16
    pairs = {(method_style(m, ORDER)["marker"], method_style(m, ORDER)["linestyle"]) for m in ORDER}
    assert len(pairs) == 16  # told apart without colour
    look = method_style("dla", ORDER)
    for figure in figures()[:2]:
        line = figure.axes[0].lines[-1]
        assert (line.get_color(), line.get_marker()) == (look["color"], look["marker"])
    with pytest.raises(ValueError, match="mine"):
        rounds_figure(values(methods=["mine"]), ORDER, metric="nDCG@5")


def test_propensity_figure_draws_means_over_the_truth():
    figure = propensity_figure(propensities(), ORDER)
    axes = figure.axes[0]
    assert legend(figure) == ["Truth", "Oracle IPW", "DLA"]
    np.testing.assert_allclose(axes.lines[0].get_ydata(), TRUTH)
    expected = (TRUTH**1.1 + TRUTH**1.2) / 2
    np.testing.assert_allclose(axes.lines[1].get_ydata(), expected)
    assert axes.get_yscale() == "log"
    assert axes.get_ylabel() == "propensity relative to position 1"
    assert axes.get_xlabel() == "position"
    assert len(axes.collections) == 2
    one_seed = propensity_figure(propensities(seeds=[1]), ORDER)
    assert len(one_seed.axes[0].collections) == 0


def test_propensities_that_are_not_positive_are_not_drawn(tmp_path):
    frame = propensities(methods=["dla"])
    frame.loc[frame["position"] == 3, "relative"] = 0.0
    frame.loc[frame["position"] == 4, "relative"] = np.nan
    figure = propensity_figure(frame, ORDER)
    assert np.isnan(figure.axes[0].lines[1].get_ydata()).tolist() == [False, False, True, True]
    saved(figure, tmp_path)


def test_panel_titles_name_the_setting_only_where_settings_differ():
    one, two = (
        propensity_figure(propensities(settings=settings), ORDER)
        for settings in (["static"], ["static", "dynamic"])
    )
    assert [axes.get_title() for axes in one.axes] == ["weak policy"]
    assert [axes.get_title() for axes in two.axes] == ["static setting", "dynamic setting"]


def test_rounds_figure_keeps_whole_rounds_as_ticks():
    axes = rounds_figure(values(rounds=(0, 1, 2)), ORDER, metric="nDCG@5").axes[0]
    assert list(axes.get_xticks()) == [0, 1, 2]
    np.testing.assert_allclose(axes.lines[0].get_ydata(), 0.8015 + 0.01 * np.arange(3))


def test_spread_figure_has_a_dot_a_seed_from_top_to_bottom():
    axes = spread_figure(values(rounds=(0,), seeds=[1, 2, 3]), ORDER, metric="nDCG@5").axes[0]
    assert [text.get_text() for text in axes.get_yticklabels()] == ["Naive clicks", "DLA"]
    assert axes.get_ylim()[0] > axes.get_ylim()[1]
    assert [len(line.get_xdata()) for line in axes.lines] == [3, 3]
    assert axes.get_xlabel() == "nDCG@5"


def test_a_long_label_leaves_room_for_the_dots(tmp_path):
    name = "a" * 64  # the longest that a method may have
    frame = values(rounds=(0,), seeds=[1, 2, 3], methods=["naive", name])
    figure = spread_figure(frame, ["naive", name], metric="nDCG@5")
    saved(figure, tmp_path)
    assert figure.axes[0].get_position().width > 0.4


def test_spread_figure_writes_what_lies_far_below():
    methods = ["naive", "oracle", "dla", "random_order"]
    frame = values(policies=["weak", "strong"], methods=methods, rounds=(0,))
    frame.loc[frame["method"] == "random_order", "value"] = 0.3
    for axes in spread_figure(frame, ORDER, metric="nDCG@5").axes:
        assert [text.get_text() for text in axes.texts] == ["◂ 0.300"]
        assert axes.get_xlim()[0] > 0.7


def test_spread_figure_draws_what_lies_far_below_in_another_panel_only():
    methods = ["naive", "oracle", "dla"]
    frame = values(policies=["weak", "strong"], methods=methods, rounds=(0,))
    frame.loc[(frame["method"] == "dla") & (frame["policy"] == "strong"), "value"] = 0.3
    weak, strong = spread_figure(frame, ORDER, metric="nDCG@5").axes
    assert [len(axes.texts) for axes in (weak, strong)] == [0, 1]
    assert len(weak.lines) == 3


def test_spread_figure_draws_what_lies_among_the_dots_of_others():
    methods = ["naive", "oracle", "dla", "ctr"]
    frame = values(policies=["weak"], methods=methods, rounds=(0,), seeds=[1, 2, 3])
    frame.loc[frame["method"] == "ctr", "value"] = [0.3, 0.3, 0.9]
    [axes] = spread_figure(frame, [*ORDER, "ctr"], metric="nDCG@5").axes
    assert not axes.texts and len(axes.lines) == 4


def test_values_that_are_missing_leave_a_gap(tmp_path):
    frame = values(rounds=(0,))
    frame.loc[frame["method"] == "dla", "value"] = np.nan
    for place, figure in enumerate(
        (spread_figure(frame, ORDER, metric="nDCG@5"), rounds_figure(frame, ORDER, metric="nDCG@5"))
    ):
        save_figure(figure, tmp_path / f"{place}.pdf", tmp_path / f"{place}.png")


def test_grades_stack_to_one_with_the_best_at_the_bottom():
    figure = grades_figure(grades())
    bars = figure.axes[0].patches
    assert [bar.get_y() for bar in bars] == [0, 0, 0.3, 0.3]
    np.testing.assert_allclose([bar.get_y() + bar.get_height() for bar in bars[2:]], 1)
    assert legend(figure) == ["grade 0", "grade 3"]
    darkness = [sum(bar.get_facecolor()[:3]) for bar in bars]
    assert darkness[0] < darkness[2]


def test_labels_are_shown_as_they_are(tmp_path):
    figure = rounds_figure(values(), ORDER, {"dla": "costs $5_a$"}, metric="nDCG@5")
    assert legend(figure) == ["Naive clicks", "costs $5_a$"]
    saved(figure, tmp_path)


def test_iterations_end_full_where_they_settled_and_open_where_not():
    rows = [
        ("weak", "static", "dla", seed, n, 1 / n, seed == 1, n == 3)
        for seed in (1, 2)
        for n in (1, 2, 3)
    ] + [("weak", "static", "naive", 1, 0, 0.7, True, True)]
    names = ["policy", "setting", "method", "seed", "iteration", "error", "converged", "last"]
    [axes] = iterations_figure(pd.DataFrame(rows, columns=names), ORDER).axes
    ends = [line for line in axes.lines if line.get_marker() not in ("None", None)]
    faces = [line.get_markerfacecolor() for line in ends]
    assert faces == [method_style("dla", ORDER)["color"], "white", "#0072B2"]
    assert [line.get_xdata()[0] for line in ends] == [3, 3, 0.5]


def test_iterations_without_a_truth_say_so(tmp_path):
    rows = pd.DataFrame({"method": ["dla"], "error": [np.nan]})
    figure = iterations_figure(rows, ORDER)
    assert [text.get_text() for text in figure.texts] == [
        "No estimate has a truth to compare with."
    ]
    save_figure(figure, tmp_path / "a.pdf", tmp_path / "a.png")


def test_ledger_bars_lead_from_the_oracle_to_the_method():
    steps = {"clicks": (0.6, 0.1), "correction": (0.7, 0.05), "noise": (0.9, -0.1),
             "theta": (0.8, -0.05), "variance": (0.75, -0.01)}  # fmt: skip
    rows = [
        ("weak", "static", "dla", step, start, value, value - 0.02, value + 0.02)
        for step, (start, value) in steps.items()
    ]
    names = ["policy", "setting", "method", "step", "start", "value", "low", "high"]
    [axes] = ledger_figure(pd.DataFrame(rows, columns=names), ORDER).axes
    spans = [(bar.get_x(), bar.get_x() + bar.get_width()) for bar in axes.patches]
    assert np.sort(spans, axis=1) == pytest.approx(np.array([[0.75, 0.8], [0.74, 0.75]]))

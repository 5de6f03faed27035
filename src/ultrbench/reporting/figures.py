"""The figures of a paper, as matplotlib figures in the widths of a two-column page.

No pyplot and no global state: each function runs under the house style and returns a `Figure`;
`save_figure` writes it, same frame, same bytes.
"""

import os
import textwrap
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import matplotlib.style
import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.textpath import TextPath
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter, NullLocator

from ultrbench.files import replacing
from ultrbench.reporting.names import display_name

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

COLUMN, PAGE = 3.4, 7.0  # inches: one column, both columns
DPI = 300
ROW_LABEL = 24  # characters in a line
HOUSE = {
    "font.family": ["DejaVu Sans"],
    "font.size": 7,
    "axes.titlesize": 7.5,
    "axes.labelsize": 7,
    "xtick.labelsize": 6.5,
    "ytick.labelsize": 6.5,
    "legend.fontsize": 6.5,
    "legend.frameon": False,
    "legend.handlelength": 2.6,
    "legend.columnspacing": 1.4,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "text.parse_math": False,  # a dollar in a label is a dollar
    "grid.color": "0.9",
    "grid.linewidth": 0.5,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "ytick.minor.size": 1.5,
    "lines.linewidth": 1.1,
    "lines.markersize": 3.6,
    "lines.markeredgewidth": 0.6,
    "pdf.fonttype": 42,  # TrueType: publishers refuse Type 3
    "svg.hashsalt": "ultrbench",  # the same ids in every run
}

# Okabe and Ito's palette for colour-blind readers, without the yellow that paper swallows, and
# three of Paul Tol's that stay apart from it in simulated colour blindness.
_COLOURS = (
    *("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"),
    *("#882255", "#999933", "#332288"),
)
_MARKERS = "os^DvPX<>phd*H8"
_LINES = ("-", (0, (4, 1.5)), (0, (5, 1.2, 1, 1.2)), (0, (1.2, 1.2)))


def method_style(method: str, order: Sequence[str]) -> dict[str, Any]:
    """Return the look of a method, the same in every figure of a study.

    Parameters
    ----------
    method : str
        Its name in the config.
    order : sequence of str
        All methods of the study, in the order of the config.

    Returns
    -------
    dict
        ``color``, ``marker`` and ``linestyle`` for matplotlib; distinct for 60 methods.

    Examples
    --------
    >>> method_style("naive", ["naive", "dla"])
    {'color': '#0072B2', 'marker': 'o', 'linestyle': '-'}
    """
    place = list(order).index(method)
    return {
        "color": _COLOURS[place % len(_COLOURS)],
        "marker": _MARKERS[place % len(_MARKERS)],
        "linestyle": _LINES[place % len(_LINES)],
    }


def propensity_figure(
    frame: "pd.DataFrame", order: Sequence[str], labels: Mapping[str, str] | None = None
) -> Figure:
    """Draw learned and true propensities by position, one panel a policy and setting.

    Parameters
    ----------
    frame : pandas.DataFrame
        Columns ``policy, setting, method, seed, position, relative, truth``; the last two are
        propensities relative to position 1. Values that are not positive are not drawn.
    order : sequence of str
        All methods of the study.
    labels : mapping of str to str, optional
        Labels of methods.

    Returns
    -------
    matplotlib.figure.Figure
        Lines are means over seeds, bands reach from the least to the greatest seed; the truth is
        the thick grey line.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"policy": "weak", "setting": "static", "method": "dla", "seed": 1,
    ...                       "position": [1, 2], "relative": [1, 0.8], "truth": [1, 0.9]})
    >>> len(propensity_figure(frame, ["dla"]).axes)
    1
    """
    methods = _present(frame, order)
    thick: dict[str, Any] = {"color": "0.6", "linewidth": 3.2}  # no band is as dark
    entries = [Line2D([], [], **thick, label="Truth")]
    with _house():
        entries += [_entry(method, order, labels) for method in methods]
        figure, panels = _panels(
            frame,
            ["policy", "setting"],
            entries,
            height=2.1,
            xlabel="position",
            ylabel="propensity relative to position 1",
        )
        for axes, part in panels:
            truth = part.groupby("position")["truth"].mean()
            axes.plot(truth.index, truth, **thick, solid_capstyle="round")
            for method in methods:
                own = part[part["method"] == method]
                shares = own["relative"].where(own["relative"] > 0)
                by = shares.groupby(own["position"]).agg(["mean", "min", "max"])
                look = method_style(method, order)
                if len(own["seed"].unique()) > 1:
                    axes.fill_between(
                        by.index, by["min"], by["max"], color=look["color"], alpha=0.15, linewidth=0
                    )
                axes.plot(by.index, by["mean"], **look)
            axes.set_yscale("log")
            axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axes.yaxis.set_major_formatter("{x:g}")
            axes.yaxis.set_minor_formatter(NullFormatter())
            axes.xaxis.set_major_locator(MaxNLocator(12, integer=True))
            axes.grid(axis="y")
    return figure


def rounds_figure(
    frame: "pd.DataFrame",
    order: Sequence[str],
    labels: Mapping[str, str] | None = None,
    metric: str = "nDCG@10",
) -> Figure:
    """Draw a metric by round of the dynamic setting, one panel a policy.

    Parameters
    ----------
    frame : pandas.DataFrame
        Columns ``policy, method, round, seed, value``.
    order : sequence of str
        All methods of the study.
    labels : mapping of str to str, optional
        Labels of methods.
    metric : str
        What the values are.

    Returns
    -------
    matplotlib.figure.Figure
        Means over seeds, with bars from the least to the greatest seed; methods stand slightly
        apart within a round so that bars do not hide each other.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"policy": "weak", "method": "dla", "round": [0, 1], "seed": 1,
    ...                       "value": [0.7, 0.8]})
    >>> rounds_figure(frame, ["dla"]).axes[0].get_xlabel()
    'round'
    """
    methods = _present(frame, order)
    with _house():
        entries = [_entry(method, order, labels) for method in methods]
        figure, panels = _panels(
            frame, ["policy"], entries, height=2.1, xlabel="round", ylabel=metric
        )
        apart = 0.5 / max(len(methods), 5)
        for axes, part in panels:
            for place, method in enumerate(methods):
                own = part[part["method"] == method]
                by = own.groupby("round")["value"].agg(["mean", "min", "max"])
                at = by.index + apart * (place - (len(methods) - 1) / 2)
                look = method_style(method, order)
                if len(own["seed"].unique()) > 1:
                    axes.vlines(at, by["min"], by["max"], color=look["color"], linewidth=0.8)
                axes.plot(at, by["mean"], **look)
            axes.set_xticks(sorted(part["round"].unique()))
            axes.grid(axis="y")
    return figure


def spread_figure(
    frame: "pd.DataFrame",
    order: Sequence[str],
    labels: Mapping[str, str] | None = None,
    metric: str = "nDCG@10",
) -> Figure:
    """Draw a metric by method with its spread over seeds, one panel a policy.

    Parameters
    ----------
    frame : pandas.DataFrame
        Columns ``policy, method, seed, value``.
    order : sequence of str
        All methods of the study; they stand from top to bottom.
    labels : mapping of str to str, optional
        Labels of methods.
    metric : str
        What the values are.

    Returns
    -------
    matplotlib.figure.Figure
        A dot a seed and a bar at the mean. The panels share their range; a method that lies more
        than three times as far below its panel's median as the best of any panel lies above its
        own (random order, mostly), and below all that is drawn, is written at the left edge, lest
        it squeeze the others together.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"policy": "weak", "method": "dla", "seed": [1, 2],
    ...                       "value": [0.7, 0.8]})
    >>> [text.get_text() for text in spread_figure(frame, ["dla"]).axes[0].get_yticklabels()]
    ['DLA']
    """
    methods = _present(frame, order)
    with _house():
        figure, panels = _panels(
            frame, ["policy"], [], height=0.6 + 0.16 * len(methods), xlabel=metric, ylabel=""
        )
        values_of = frame.groupby(["policy", "method"])["value"]
        means = values_of.mean()
        above = means - means.groupby("policy").transform("median")
        below = above < -3 * max(above.max(), 0.01)
        far = means.index[below & (values_of.max() < values_of.min()[~below].min())]
        for axes, part in panels:
            policy = part["policy"].iloc[0]
            for row, method in enumerate(methods):
                values = part.loc[part["method"] == method, "value"]
                look = method_style(method, order)
                if (policy, method) in far:
                    text = f"\N{BLACK LEFT-POINTING SMALL TRIANGLE} {values.mean():.3f}"
                    axes.annotate(
                        text, (0.01, row), xycoords=axes.get_yaxis_transform(), va="center",
                        fontsize=6, color="0.3",
                    )  # fmt: skip
                    continue
                axes.plot(
                    values, np.full(len(values), row), look["marker"], color=look["color"],
                    alpha=0.55, markeredgewidth=0, clip_on=False,
                )  # fmt: skip
                axes.vlines(values.mean(), row - 0.36, row + 0.36, color="black", linewidth=1.2)
            axes.set_yticks(range(len(methods)), [_row(m, labels) for m in methods])
            axes.set_ylim(len(methods) - 0.4, -0.6)
            axes.tick_params(axis="y", length=0)
            axes.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
            axes.grid(axis="x")
    return figure


def sweep_figure(
    frame: "pd.DataFrame",
    order: Sequence[str],
    labels: Mapping[str, str] | None = None,
    *,
    xlabel: str,
    ylabel: str = "nDCG@10",
) -> Figure:
    """Draw the error of theta and nDCG@10 along one parameter, one column a panel.

    Parameters
    ----------
    frame : pandas.DataFrame
        Columns ``panel, value, method, seed, theta_error, score``; values stand at equal distances
        in order of appearance. Errors that are missing or 0 are not drawn.
    order : sequence of str
        All methods of the study.
    labels : mapping of str to str, optional
        Labels of methods.
    xlabel, ylabel : str
        The parameter, and the metric of ``score``.

    Returns
    -------
    matplotlib.figure.Figure
        Means over seeds, with bars from the least to the greatest seed; methods stand slightly
        apart so that bars do not hide each other.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"panel": "weak", "value": ["0.5", "1"], "method": "dla", "seed": 1,
    ...                       "theta_error": [0.1, 0.2], "score": [0.8, 0.7]})
    >>> [axes.get_ylabel() for axes in sweep_figure(frame, ["dla"], xlabel="eta").axes]
    ['error of theta', 'nDCG@10']
    """
    methods = _present(frame, order)
    panels = list(frame.groupby("panel", sort=False))
    width = COLUMN if len(panels) == 1 else PAGE
    # Below this an error is rounding, and would stretch a logarithmic axis over empty decades.
    drawn = frame["theta_error"].between(1e-6, 1e6)
    frame = frame.assign(theta_error=frame["theta_error"].where(drawn))
    with _house():
        entries = [_entry(method, order, labels) for method in methods]
        per_row, lines = _legend_shape(entries, width, matplotlib.rcParams["legend.handlelength"])
        legend = 0.1 + lines * 1.5 * matplotlib.rcParams["legend.fontsize"] / 72
        figure = Figure((width, 3.8 + legend), layout="constrained")
        grid = figure.subplots(2, len(panels), sharex="col", sharey="row", squeeze=False)
        apart = 0.5 / max(len(methods), 5)
        for column, (panel, _) in enumerate(panels):
            part = frame[frame["panel"] == panel]
            values = list(part["value"].unique())
            for axes, shown in zip(grid[:, column], ("theta_error", "score"), strict=True):
                for place, method in enumerate(methods):
                    own = part[part["method"] == method]
                    by = own.groupby("value")[shown].agg(["mean", "min", "max"]).reindex(values)
                    at = np.arange(len(values)) + apart * (place - (len(methods) - 1) / 2)
                    look = method_style(method, order)
                    axes.vlines(at, by["min"], by["max"], color=look["color"], linewidth=0.8)
                    axes.plot(at, by["mean"], **look)
                axes.grid(axis="y")
            if len(panels) > 1:
                grid[0, column].set_title(panel)
            grid[1, column].set_xticks(range(len(values)), values)
            grid[1, column].set_xlabel(xlabel)
        if frame["theta_error"].notna().any():
            grid[0, 0].set_yscale("log")
            grid[0, 0].yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            grid[0, 0].yaxis.set_major_formatter("{x:g}")
            grid[0, 0].yaxis.set_minor_formatter(NullFormatter())
        grid[0, 0].set_ylabel("error of theta")
        grid[1, 0].set_ylabel(ylabel)
        figure.legend(handles=entries, loc="outside lower center", ncols=per_row)
    return figure


def grades_figure(frame: "pd.DataFrame") -> Figure:
    """Draw the share of each grade by logged position, one panel a policy.

    Parameters
    ----------
    frame : pandas.DataFrame
        Columns ``policy, position, grade, share``; shares of a position sum to 1.

    Returns
    -------
    matplotlib.figure.Figure
        Stacked bars, the higher the grade the darker, with the best grade at the bottom.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"policy": "weak", "position": 1, "grade": [0, 1],
    ...                       "share": [0.4, 0.6]})
    >>> len(grades_figure(frame).axes[0].patches)
    2
    """
    grades = sorted(frame["grade"].unique())
    shades = matplotlib.colormaps["Blues"](np.linspace(0.15, 1.0, len(grades)))
    shade_of = dict(zip(grades, shades, strict=True))
    with _house():
        entries = [Patch(color=shade, label=f"grade {g}") for g, shade in shade_of.items()]
        figure, panels = _panels(
            frame,
            ["policy"],
            entries,
            height=1.7,
            xlabel="logged position",
            ylabel="share of documents",
        )
        for axes, part in panels:
            shares = part.pivot_table(index="position", columns="grade", values="share")
            shares = shares.reindex(columns=grades).fillna(0.0)
            base = np.zeros(len(shares))
            for grade, shade in reversed(shade_of.items()):
                axes.bar(shares.index, shares[grade], 0.86, bottom=base, color=shade)
                base = base + shares[grade].to_numpy()
            axes.set_ylim(0, 1)
            axes.set_xlim(shares.index.min() - 0.6, shares.index.max() + 0.6)
            axes.xaxis.set_major_locator(MaxNLocator(12, integer=True))
    return figure


def iterations_figure(
    frame: "pd.DataFrame", order: Sequence[str], labels: Mapping[str, str] | None = None
) -> Figure:
    """Draw the error of theta after each iteration, one panel a policy and setting.

    Parameters
    ----------
    frame : pandas.DataFrame
        Columns ``policy, setting, method, seed, iteration, error, converged, last``; a closed form
        has iteration 0 alone. Errors that are not positive or not finite are not drawn.
    order : sequence of str
        All methods of the study.
    labels : mapping of str to str, optional
        Labels of methods.

    Returns
    -------
    matplotlib.figure.Figure
        A line a replicate, which ends in a full marker where the iteration settled and in an open
        one where it did not; a closed form is a marker at the left edge. Without a row, a sentence
        that says so.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"policy": "weak", "setting": "static", "method": "dla", "seed": 1,
    ...                       "iteration": [1, 2], "error": [0.5, 0.1], "converged": True,
    ...                       "last": [False, True]})
    >>> iterations_figure(frame, ["dla"]).axes[0].get_xlabel()
    'iteration'
    """
    frame = frame[np.isfinite(frame["error"]) & (frame["error"] > 0)]
    methods = _present(frame, order)
    with _house():
        if not methods:
            figure = Figure((COLUMN, 0.5), layout="constrained")
            figure.text(0.5, 0.5, "No estimate has a truth to compare with.", ha="center")
            return figure
        entries = [_entry(method, order, labels) for method in methods]
        figure, panels = _panels(
            frame,
            ["policy", "setting"],
            entries,
            height=2.1,
            xlabel="iteration",
            ylabel="theta error",
        )
        for axes, part in panels:
            for (method, _), own in part.groupby(["method", "seed"], sort=False):
                look = method_style(method, order)
                lines = {key: look[key] for key in ("color", "linestyle")}
                # Half an iteration stands for none, which a logarithmic axis cannot show.
                at = own["iteration"].clip(lower=0.5)
                axes.plot(at, own["error"], **lines, linewidth=0.8, alpha=0.8)
                end = own["last"]
                full = look["color"] if own["converged"].all() else "white"
                axes.plot(
                    at[end], own["error"][end], look["marker"], color=look["color"],
                    markerfacecolor=full, clip_on=False, zorder=3,
                )  # fmt: skip
            axes.set_xscale("log")
            axes.set_yscale("log")
            for axis in (axes.xaxis, axes.yaxis):
                axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
                axis.set_major_formatter("{x:g}")
                axis.set_minor_formatter(NullFormatter())
            axes.xaxis.set_major_formatter(lambda x, _: "closed\nform" if x < 0.7 else f"{x:g}")
            axes.xaxis.set_minor_locator(NullLocator())
            axes.grid(axis="y")
    return figure


def ledger_figure(
    frame: "pd.DataFrame", order: Sequence[str], labels: Mapping[str, str] | None = None
) -> Figure:
    """Draw where each method loses nDCG@10 against the grades, one panel a policy and setting.

    Parameters
    ----------
    frame : pandas.DataFrame
        From `ultrbench.evaluation.ledger.ledger`, with ``policy`` and ``setting``: columns
        ``method, step, start, value, low, high``.
    order : sequence of str
        All methods of the study; they stand from top to bottom.
    labels : mapping of str to str, optional
        Labels of methods.

    Returns
    -------
    matplotlib.figure.Figure
        A bar a step, from the level that it starts from, with the interval of its end; vertical
        lines are naive clicks and perfect correction with infinitely many sessions, and the
        grades.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"policy": "weak", "setting": "static", "method": "dla",
    ...     "step": ["clicks", "correction", "noise", "theta", "variance"],
    ...     "start": [0.6, 0.7, 0.9, 0.8, 0.75], "value": [0.1, 0.05, -0.1, -0.05, -0.01],
    ...     "low": -0.1, "high": 0.1})
    >>> len(ledger_figure(frame, ["dla"]).axes)
    1
    """
    methods = _present(frame, order)
    shades = {"theta": (_COLOURS[1], "theta error"), "variance": (_COLOURS[5], "variance")}
    levels: dict[str, tuple[str, str, Any]] = {
        "naive, ∞ sessions": ("correction", "start", (0, (4, 1.5))),
        "oracle, ∞ sessions": ("theta", "start", "-"),
        "grades": ("noise", "start", (0, (1.2, 1.2))),
    }
    with _house():
        entries: list[Line2D | Patch] = [
            Patch(color=shade, label=name) for shade, name in shades.values()
        ]
        entries += [
            Line2D([], [], color="0.35", linewidth=0.9, linestyle=line, label=name)
            for name, (_, _, line) in levels.items()
        ]
        figure, panels = _panels(
            frame,
            ["policy", "setting"],
            entries,
            height=0.6 + 0.2 * len(methods),
            xlabel="nDCG@10",
            ylabel="",
        )
        for axes, part in panels:
            steps = part.set_index(["method", "step"])
            for row, method in enumerate(methods):
                for place, (step, (shade, _)) in enumerate(shades.items()):
                    if (method, step) not in steps.index:
                        continue
                    bar = steps.loc[(method, step)]
                    at, end = row + 0.3 * (place - 0.5), bar["start"] + bar["value"]
                    axes.barh(at, bar["value"], 0.28, left=bar["start"], color=shade)
                    axes.hlines(
                        at, bar["start"] + bar["low"], bar["start"] + bar["high"],
                        color="black", linewidth=0.6,
                    )  # fmt: skip
                    axes.plot(end, at, "|", color="black", markersize=3)
            for step, column, line in levels.values():
                level = part.loc[part["step"] == step, column].iloc[0]
                axes.axvline(level, color="0.35", linewidth=0.9, linestyle=line, zorder=0)
            axes.set_yticks(range(len(methods)), [_row(m, labels) for m in methods])
            axes.set_ylim(len(methods) - 0.4, -0.6)
            axes.tick_params(axis="y", length=0)
            axes.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
            axes.grid(axis="x")
    return figure


def save_figure(figure: Figure, *paths: str | os.PathLike[str]) -> None:
    """Write a figure as ``.pdf``, ``.png`` or ``.svg``, each atomically and without a date.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> folder = Path(tempfile.mkdtemp())
    >>> save_figure(Figure((1, 1)), folder / "a.pdf", folder / "a.png")
    >>> sorted(path.name for path in folder.iterdir())
    ['a.pdf', 'a.png']
    """
    with _house():
        for path in paths:
            dated = {".pdf": {"CreationDate": None}, ".svg": {"Date": None}}
            with replacing(path) as half:
                figure.savefig(half, dpi=DPI, metadata=dated.get(half.suffix))


def _house() -> AbstractContextManager[None]:
    return matplotlib.style.context(HOUSE, after_reset=True)


def _present(frame: "pd.DataFrame", order: Sequence[str]) -> list[str]:
    found = set(frame["method"])
    if unplaced := found - set(order):
        raise ValueError(f"methods of the frame that the order lacks: {sorted(unplaced)}")
    return [method for method in order if method in found]


def _entry(method: str, order: Sequence[str], labels: Mapping[str, str] | None) -> Line2D:
    return Line2D([], [], label=display_name(method, labels), **method_style(method, order))


def _row(method: str, labels: Mapping[str, str] | None) -> str:
    """Return the label of a row, in lines that leave room for what is drawn."""
    return textwrap.fill(display_name(method, labels), ROW_LABEL)


def _panels(
    frame: "pd.DataFrame",
    keys: list[str],
    entries: Sequence[Line2D | Patch],
    height: float,
    xlabel: str,
    ylabel: str,
) -> tuple[Figure, list[tuple["Axes", "pd.DataFrame"]]]:
    """Make one panel a combination of `keys`, in order of appearance, the legend below all.

    `height` is one panel's, in inches; the legend's comes on top, so that panels keep their size.
    """
    parts = list(frame.groupby(keys, sort=False))
    columns = {1: 1, 2: 2, 3: 3, 4: 2}.get(len(parts), 3)
    rows = -(-len(parts) // columns)
    width = COLUMN if columns == 1 else PAGE
    patches = any(isinstance(entry, Patch) for entry in entries)
    handle = 1.2 if patches else matplotlib.rcParams["legend.handlelength"]
    per_row, lines = _legend_shape(entries, width, handle)
    legend = 0.1 + lines * 1.5 * matplotlib.rcParams["legend.fontsize"] / 72 if entries else 0.0
    figure = Figure((width, rows * height + legend), layout="constrained")
    grid = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    for axes in grid.flat[len(parts) :]:
        axes.remove()
    varying = [key for key in keys if len(frame[key].unique()) > 1] or keys[:1]
    panels = []
    for place, (values, part) in enumerate(parts):
        axes = grid.flat[place]
        named = dict(zip(keys, values, strict=True))
        axes.set_title(", ".join(f"{named[key]} {key}" for key in varying))
        if place % columns == 0:
            axes.set_ylabel(ylabel)
        if place + columns >= len(parts):
            axes.set_xlabel(xlabel)
            axes.tick_params(labelbottom=True)
        panels.append((axes, part))
    if entries:
        figure.legend(
            handles=entries, loc="outside lower center", ncols=per_row, handlelength=handle
        )
    return figure, panels


def _legend_shape(
    entries: Sequence[Line2D | Patch], width: float, handle: float
) -> tuple[int, int]:
    """Return how many entries fit side by side in `width` inches, evenly filled, and the lines."""
    if not entries:
        return 1, 0
    size = matplotlib.rcParams["legend.fontsize"]
    texts = [TextPath((0, 0), str(entry.get_label()), size=size) for entry in entries]
    widest = max(text.get_extents().width for text in texts)
    gaps = 0.8 + matplotlib.rcParams["legend.columnspacing"]
    lines = -(-len(entries) // max(1, int(width * 72 / (widest + (handle + gaps) * size))))
    return -(-len(entries) // lines), lines

"""Figures of what evaluation from logs and from samples gets right, in the house style."""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING

import matplotlib
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, MaxNLocator, NullLocator

from ultrbench.reporting.figures import (
    PAGE,
    _entry,
    _house,
    _legend_shape,
    _panels,
    _present,
    method_style,
)

if TYPE_CHECKING:
    import pandas as pd

UNITS = {
    "IPS": "DCG",
    "clipped": "DCG",
    "self-normalised": "mean discount of an examined click",
}


def counterfactual_figure(
    frame: "pd.DataFrame", order: Sequence[str], labels: Mapping[str, str] | None = None
) -> Figure:
    """Draw estimated against true worth by policy and form of the estimate, a line a theta.

    Parameters
    ----------
    frame : pandas.DataFrame
        Columns ``policy, theta, form, seed, ranker, estimate, truth``.
    order : sequence of str
        All methods of the study; ``theta`` is one of them.
    labels : mapping of str to str, optional
        Labels of methods.

    Returns
    -------
    matplotlib.figure.Figure
        A marker a ranker, means over seeds, joined in the order of the truth: a line that rises
        keeps the order of the rankers, and one on the grey diagonal has no bias.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"policy": "weak", "theta": "dla", "form": "IPS", "seed": 1,
    ...                       "ranker": ["a", "b"], "estimate": [1.0, 2.0], "truth": [1.1, 1.9]})
    >>> counterfactual_figure(frame, ["dla"]).axes[0].get_xlabel()
    'true DCG'
    """
    thetas = _present(frame.assign(method=frame["theta"]), order)
    policies, forms = list(frame["policy"].unique()), list(frame["form"].unique())
    with _house():
        entries = [Line2D([], [], color="0.72", linewidth=2.4, label="Estimate = truth")]
        entries += [_entry(theta, order, labels) for theta in thetas]
        rc = matplotlib.rcParams
        per_row, lines = _legend_shape(entries, PAGE, rc["legend.handlelength"])
        height = 2.2 * len(policies) + 0.1 + lines * 1.5 * rc["legend.fontsize"] / 72
        figure = Figure((PAGE, height), layout="constrained")
        grid = figure.subplots(len(policies), len(forms), squeeze=False)
        for (row, policy), (column, form) in product(enumerate(policies), enumerate(forms)):
            axes = grid[row, column]
            part = frame[(frame["policy"] == policy) & (frame["form"] == form)]
            truths = part.groupby("ranker")["truth"].mean()
            span = [truths.min(), truths.max()]
            axes.plot(span, span, color="0.72", linewidth=2.4)
            for theta in thetas:
                own = part[part["theta"] == theta]
                by = own.groupby("ranker")[["truth", "estimate"]].mean().sort_values("truth")
                axes.plot(by["truth"], by["estimate"], **method_style(theta, order), alpha=0.85)
            axes.set_title(f"{policy} policy, {form}")
            axes.set_xlabel(f"true {UNITS.get(form, form)}")
            axes.set_ylabel("" if column else "estimate")
            axes.xaxis.set_major_locator(MaxNLocator(5))
            axes.grid(axis="y")
        figure.legend(handles=entries, loc="outside lower center", ncols=per_row)
    return figure


def sampled_figure(frame: "pd.DataFrame") -> Figure:
    """Draw how often two rankers stand in their true order under a sampled metric.

    Parameters
    ----------
    frame : pandas.DataFrame
        As `ultrbench.evaluation.sampled.order_table` returns it.

    Returns
    -------
    matplotlib.figure.Figure
        A panel a pair of rankers and number of users, a line a correction; at the dotted line the
        order is a coin's.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"better": "a", "worse": "b", "metric": "RR", "samples": [10, 100],
    ...                       "correction": "none", "users": 100, "agreement": [0.1, 0.9]})
    >>> sampled_figure(frame).axes[0].get_title()
    'a > b, 100 users'
    """
    corrections = list(frame["correction"].unique())
    users = frame["users"].map("{:,}".format)
    frame = frame.assign(users=frame["better"] + " > " + frame["worse"] + ", " + users)
    # A row of panels is a pair, whatever the order in which they were computed.
    frame = frame.sort_values(["better", "worse"], kind="stable")
    with _house():
        entries = [_entry(correction, corrections, None) for correction in corrections]
        figure, panels = _panels(
            frame,
            ["users"],
            entries,
            height=1.45,
            xlabel="sampled negatives m",
            ylabel="share in true order",
        )
        for axes, part in panels:
            axes.axhline(0.5, color="0.6", linestyle=":", linewidth=0.8)
            for correction in corrections:
                own = part[part["correction"] == correction]
                axes.plot(own["samples"], own["agreement"], **method_style(correction, corrections))
            axes.set_xscale("log")
            axes.xaxis.set_major_locator(FixedLocator(sorted(part["samples"].unique())))
            axes.xaxis.set_minor_locator(NullLocator())
            axes.xaxis.set_major_formatter("{x:g}")
            axes.set_ylim(-0.05, 1.05)
            axes.grid(axis="y")
    return figure

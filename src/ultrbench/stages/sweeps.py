"""Stage `sweeps`: error of theta and ranking quality along one parameter, and cards from them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from ultrbench.files import read_json, replacing, write_text
from ultrbench.propensity.judge import read_theta_error
from ultrbench.reporting import cards, figures
from ultrbench.stages.evaluation import last_rounds

KEYS = ["panel", "value", "method", "seed"]


class SweptTheta(NamedTuple):
    """The propensities of a method at a point: ``theta.csv`` and ``.json``, ``truth.csv``."""

    panel: str
    value: str
    method: str
    seed: int
    table: Path
    report: Path
    truth: Path


def sweep_frame(
    thetas: Sequence[SweptTheta],
    scores: Mapping[tuple[str, str], Path],
    *,
    candidates: str,
    validation: str,
    metric: str,
) -> pd.DataFrame:
    """Return what each method reached at each point of a sweep.

    Parameters
    ----------
    thetas : sequence of SweptTheta
        Of the methods that have propensities.
    scores : mapping of (str, str) to pathlib.Path
        ``rounds.csv`` of the stage `evaluation` by panel and value, in the order of the axis.
    candidates, validation, metric : str
        Which of its values are taken.

    Returns
    -------
    pandas.DataFrame
        A row a (panel, value, method, seed): ``score`` is `metric` in the last round;
        ``theta_error`` and ``signed_error`` are those of `ultrbench.propensity.error`, NaN without
        propensities or where examination is not a function of position; ``converged`` and
        ``iterations`` come from the estimate's report.
    """
    parts = []
    for (panel, value), path in scores.items():
        frame = pd.read_csv(path)
        frame = frame[(frame["candidates"] == candidates) & (frame["validation"] == validation)]
        frame = last_rounds(frame)
        frame = frame[frame["method"] != "random_order"].rename(columns={metric: "score"})
        frame = frame.assign(panel=panel, value=value, metric=metric)
        parts.append(frame[[*KEYS, "candidates", "metric", "score"]])
    errors = []
    for theta in thetas:
        error, signed = read_theta_error(theta.table, [theta.truth])
        report = read_json(theta.report)
        trace = len(report["trace"])
        errors.append((*theta[:4], error, signed, report["converged"], trace))
    names = [*KEYS, "theta_error", "signed_error", "converged", "iterations"]
    found = pd.DataFrame(errors, columns=names).astype({"iterations": "Int64"})
    return pd.concat(parts).merge(found, on=KEYS, how="left")


def summarise_sweep(
    thetas: Sequence[SweptTheta],
    scores: Mapping[tuple[str, str], Path],
    table: Path,
    drawn: Sequence[Path],
    *,
    label: str,
    order: Sequence[str],
    labels: Mapping[str, str],
    **selection: str,
) -> None:
    """Write the table of a sweep and draw it.

    Parameters
    ----------
    thetas, scores, **selection
        As in `sweep_frame`.
    table : pathlib.Path
        ``.csv`` to write: the rows of `sweep_frame`.
    drawn : sequence of pathlib.Path
        ``.pdf``, ``.png`` and ``.svg`` to write.
    label : str
        Name of the axis.
    order, labels
        All methods of the study, and their labels.
    """
    frame = sweep_frame(thetas, scores, **selection)
    with replacing(table) as half:
        frame.to_csv(half, index=False, lineterminator="\n", float_format="%.6g")
    figure = figures.sweep_figure(frame, order, labels, xlabel=label, ylabel=selection["metric"])
    figures.save_figure(figure, *drawn)


def write_cards(
    tables: Mapping[str, Path],
    out: Mapping[str, tuple[Path, Path]],
    *,
    estimators: Mapping[str, Mapping[str, Any]],
    about: str,
    reference: str,
    trees: int,
    labels: Mapping[str, str],
) -> None:
    """Write a page for each method: where it works, at what cost, and what it is good for.

    Parameters
    ----------
    tables : mapping of str to pathlib.Path
        Tables of `summarise_sweep` by the name of their axis.
    out : mapping of str to (pathlib.Path, pathlib.Path)
        ``.tex`` and ``.pdf`` to write by method.
    estimators : mapping of str to mapping
        Kind and parameters of each method's estimator.
    about : str
        What the conditions have in common, a sentence.
    reference : str
        Method that rankers are compared with.
    trees : int
        Most trees of a ranker, in which cost is measured.
    labels : mapping of str to str
        Labels of methods.
    """
    parts = [
        pd.read_csv(
            path, dtype={"value": str, "panel": str}, keep_default_na=False, na_values=[""]
        ).assign(axis=axis)
        for axis, path in tables.items()
    ]
    frame = cards.against(pd.concat(parts, ignore_index=True), reference)
    for method, (tex, pdf) in out.items():
        card = cards.make_card(
            frame, method, estimators[method], about=about, reference=reference, trees=trees,
            labels=labels,
        )  # fmt: skip
        write_text(tex, cards.card_latex(card))
        figures.save_figure(cards.card_figure(card), pdf)

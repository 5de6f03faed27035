"""Stage `metrics`: descriptive tables of all metrics, from clicks, beyond accuracy, and power."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from ultrbench.evaluation.counterfactual import summarise_estimates
from ultrbench.evaluation.metrics import parse_metric
from ultrbench.reporting.descriptive import descriptive_table, write_table
from ultrbench.reporting.figures import rounds_figure, save_figure
from ultrbench.reporting.metric_figures import counterfactual_figure, sampled_figure
from ultrbench.reporting.names import display_name
from ultrbench.reporting.tables import MISSING
from ultrbench.stages.catalogue import METRIC, REPEATS, TOP
from ultrbench.stages.counterfactual import CLIP
from ultrbench.stages.evaluation import in_every_round, last_rounds
from ultrbench.stages.exposure import DEFINITIONS, MEASURES, top_places

SHORT_WARNINGS = {
    "deterministic": "one order a query",
    "effective sample size": "few effective clicks",
    "single session": "queries with one session",
}


@dataclass(frozen=True)
class Rows:
    """The rows of a setting's tables, and what captions say of it.

    Attributes
    ----------
    where : str
        Data set, policy and setting.
    groups : mapping of str to sequence of str
        Methods by block.
    labels : mapping of str to str
        Their labels.
    list_size : int
        Candidates of a query.
    headline : str
        The headline metric.
    """

    where: str
    groups: Mapping[str, Sequence[str]]
    labels: Mapping[str, str]
    list_size: int
    headline: str


def write_metrics_table(
    rounds: Path,
    stem: Path,
    rows: Rows,
    *,
    ranking: tuple[str, str],
    metrics: Sequence[str],
) -> None:
    """Write all metrics of the rankers of the last round.

    Parameters
    ----------
    rounds : pathlib.Path
        From `ultrbench.stages.evaluation.evaluate_rankers`.
    stem : pathlib.Path
        Table to write, without its ending; the csv holds every metric that was measured.
    rows : Rows
        Rows and caption.
    ranking : (str, str)
        Kind of candidates, and of validation.
    metrics : sequence of str
        Columns.
    """
    candidates, validation = ranking
    frame = last_rounds(pd.read_csv(rounds))
    frame = frame[(frame["candidates"] == candidates) & (frame["validation"] == validation)]
    values = frame.drop(columns=["candidates", "validation", "round"])
    by = values.drop(columns="seed").groupby("method", sort=False)
    means = by.mean()
    numbers = means.join(by.std().add_suffix(" sd")).reset_index()
    numbers.insert(1, "replicates", by.size().to_numpy())
    caption = (
        f"All metrics, {rows.where}, {candidates} candidates, rankers stopped by {validation}:"
        f" means over test queries and {values['seed'].nunique()} replicates. Headline metric:"
        f" {rows.headline}, whose assumed user {parse_metric(rows.headline).user}. R and AP count"
        " the relevant documents of the list. Descriptive, not tested."
    )
    table = descriptive_table(means[list(metrics)], rows.groups, numbers, labels=rows.labels)
    write_table(stem, table, caption)


def write_power_table(power: Path, stem: Path, rows: Rows, *, ranking: tuple[str, str]) -> None:
    """Write how many queries a difference of a given size needs to be found.

    Parameters
    ----------
    power : pathlib.Path
        From `ultrbench.stages.evaluation.compare_rankers`.
    stem : pathlib.Path
        Table to write, without its ending; the csv holds every kind of candidates and validation.
    rows : Rows
        Rows and caption.
    ranking : (str, str)
        Kind of candidates, and of validation, that are shown.
    """
    candidates, validation = ranking
    frame = pd.read_csv(power)
    shown = frame[
        (frame["candidates"] == candidates)
        & (frame["validation"] == validation)
        & (frame["comparisons"] == 1)
    ]
    queries = shown.pivot_table(index="method", columns="effect", values="queries")
    queries = queries.astype(int).rename(columns="difference@{:g}".format)
    family = frame.drop_duplicates("comparisons").set_index("comparisons")["resamples"].astype(int)
    needed = " and ".join(
        f"{resamples:,} for the first step of Holm over {size}" if size > 1 else f"{resamples:,}"
        for size, resamples in family.items()
    )
    caption = (
        f"Power, {rows.where}, {candidates} candidates, rankers stopped by {validation}: test"
        f" queries that a true mean difference in {rows.headline} to the reference needs for"
        " p ≤ .05, two-sided, at 80 % power, from the standard deviation of the per-query"
        " differences averaged over replicates. A mark also needs an interval without 0, which the"
        " spread over replicates widens, and more queries do not narrow: see MDE in the p tables. "
    )
    if needed:
        caption += f"Resamples for a Monte-Carlo error of a tenth at that bar: {needed}."
    else:
        caption += "No difference varies from query to query, so that nothing can be planned."
    table = descriptive_table(queries, rows.groups, frame, labels=rows.labels)
    write_table(stem, table, caption)


def write_exposure_table(exposure: Path, stem: Path, rows: Rows) -> None:
    """Write the measures beyond accuracy by round.

    Parameters
    ----------
    exposure : pathlib.Path
        From `ultrbench.stages.exposure.measure_exposure`.
    stem : pathlib.Path
        Table to write, without its ending.
    rows : Rows
        Rows and caption.
    """
    frame = pd.read_csv(exposure)
    measures = list(MEASURES)  # also those that no list has
    means = frame.pivot_table(index="method", columns="round", values=measures, dropna=False)
    shown = pd.DataFrame(
        {
            f"{measure}@{round_}": means[measure, round_]
            for measure in MEASURES
            for round_ in sorted(frame["round"].unique())
        }
    )
    caption = (
        f"Beyond accuracy by round, {rows.where}: @r is the display by the ranker of round r, after"
        " the logging policy's and those of the rounds before. On test queries,"
        f" {rows.list_size} candidates each, every query a catalogue of its own:"
        f" {DEFINITIONS.format(top=top_places(rows.list_size))}. Means over queries and"
        f" {frame['seed'].nunique()} replicates. Descriptive, not tested."
    )
    write_table(stem, descriptive_table(shown, rows.groups, frame, labels=rows.labels), caption)


def write_counterfactual_table(estimates: Path, stem: Path, rows: Rows) -> None:
    """Write how well each theta estimates the worth of the rankers from held-out clicks.

    Without a truth, of a click log of one's own, the table has the estimates themselves.

    Parameters
    ----------
    estimates : pathlib.Path
        From `ultrbench.stages.counterfactual.evaluate_counterfactually`.
    stem : pathlib.Path
        Table to write, without its ending.
    rows : Rows
        Labels and caption.
    """
    frame = pd.read_csv(estimates, keep_default_na=False, na_values=[""]).fillna({"warnings": ""})
    if frame["truth"].isna().all():
        _write_estimates_table(frame, stem, rows)
        return
    keys = ["theta", "form", "scale"]
    by = frame.groupby(keys, sort=False)
    summary = summarise_estimates(frame, keys)
    summary["truth"] = by["truth"].mean().to_numpy()
    summary["effective_sample_size"] = by["effective_sample_size"].mean().to_numpy()
    summary["warnings"] = by["warnings"].agg(_distinct).to_numpy()
    percent = 100 / summary["truth"]
    shown = pd.DataFrame(
        {
            "Scale of θ": summary["scale"],
            "Bias, %": _texts(percent * summary["bias"], "+.1f"),
            "sd, %": _texts(percent * np.sqrt(summary["variance"]), ".1f"),
            "Coverage": _texts(summary["coverage"].where(summary["bias"].notna()), ".2f"),
            "Kendall τ": _texts(summary["rank_correlation"], ".3f"),
            "Effective clicks": _texts(summary["effective_sample_size"], ",.0f"),
            "Warnings": summary["warnings"].map(_shortened),
        }
    )
    shown.index = summary["theta"] + " " + summary["form"]
    form_of = dict(zip(shown.index, summary["form"], strict=True))
    groups: dict[str, list[str]] = {}
    for name, theta in zip(shown.index, summary["theta"], strict=True):
        groups.setdefault(display_name(theta, rows.labels), []).append(name)
    caption = (
        f"Counterfactual evaluation, {rows.where}: the worth of {frame['ranker'].nunique()}"
        " rankers, estimated from a held-out log of clicks on test queries under the logging"
        " policy with each method's propensities θ, against the truth on grades. IPS: inverse"
        " propensity estimate of DCG with gain 2^y - 1 over all sessions; clipped: propensities"
        f" below {CLIP:g} of the first are raised to it; self-normalised: up to scale, the mean"
        " discount of an examined click. Most estimators know θ only relative to position 1; IPS"
        " then has its scale from the simulator, which no real log offers. Bias and standard"
        " deviation of the error over seeds are means over rankers, in per cent of the mean truth;"
        " coverage is that"
        f" of the 95 % intervals over rankers and {int(summary['replicates'].max())} seeds"
        " (sessions resampled within queries; the rankers of a seed share its log); Kendall's τ"
        " compares the orders of the rankers. Descriptive, not tested."
    )
    table = descriptive_table(shown, groups, summary, corner="Form", labels=form_of)
    write_table(stem, table, caption)


def _write_estimates_table(frame: pd.DataFrame, stem: Path, rows: Rows) -> None:
    keys = ["theta", "ranker", "form"]
    numbers = (
        frame.groupby(keys, sort=False)
        .agg(
            **{name: (name, "mean") for name in ("estimate", "low", "high")},
            effective_sample_size=("effective_sample_size", "mean"),
            replicates=("seed", "nunique"),
            warnings=("warnings", _distinct),
        )
        .reset_index()
    )
    numbers["text"] = [
        MISSING if np.isnan(value) else f"{value:.3f} [{low:.3f}, {high:.3f}]"
        for value, low, high in zip(*(numbers[n] for n in ("estimate", "low", "high")), strict=True)
    ]
    numbers["row"] = numbers["theta"] + " " + numbers["ranker"]
    by_row = numbers.groupby("row", sort=False)
    shown = numbers.pivot_table(index="row", columns="form", values="text", aggfunc="first")
    shown = shown[list(dict.fromkeys(numbers["form"]))].fillna(MISSING)
    shown["Effective clicks"] = _texts(by_row["effective_sample_size"].first()[shown.index], ",.0f")
    shown["Warnings"] = by_row["warnings"].agg(_distinct)[shown.index].map(_shortened)
    groups = {
        f"Propensities of {display_name(theta, rows.labels)}": list(part.unique())
        for theta, part in numbers.groupby("theta", sort=False)["row"]
    }
    labels = {
        row: display_name(ranker, rows.labels)
        for row, ranker in zip(numbers["row"], numbers["ranker"], strict=True)
    }
    caption = (
        f"Counterfactual evaluation, {rows.where}: the worth of the rankers, estimated from the"
        " clicks of the log on test queries with each method's propensities θ. There is no truth"
        " to compare with. Self-normalised: the mean discount 1 / log2(rank + 1) of an examined"
        " click, which orders rankers. IPS, where θ is known absolutely: discounted clicks of a"
        f" session that examined all; clipped: propensities below {CLIP:g} of the first are raised"
        " to it. In brackets 95 % intervals (sessions resampled within queries, θ taken as given)."
        f" Means over {int(numbers['replicates'].max())} replicates of the rankers, which share"
        " the log. Descriptive, not tested."
    )
    table = descriptive_table(
        shown, groups, numbers.drop(columns=["text", "row"]), corner="Ranker", labels=labels
    )
    write_table(stem, table, caption)


def _texts(values: pd.Series, form: str) -> list[str]:
    return [MISSING if np.isnan(value) else format(value, form) for value in values]


def _distinct(texts: pd.Series) -> str:
    return " ".join(dict.fromkeys(text for text in texts if text))


def _shortened(texts: str) -> str:
    if texts.startswith("refused"):
        return texts
    return ", ".join(short for word, short in SHORT_WARNINGS.items() if word in texts) or "none"


def draw_counterfactual(
    estimates: Mapping[str, Path],
    files: Sequence[Path],
    order: Sequence[str],
    labels: Mapping[str, str],
) -> None:
    """Draw estimated against true worth to files, from the estimates by policy.

    Where all estimates are refused, the panels have no lines.
    """
    parts = [pd.read_csv(path).assign(policy=policy) for policy, path in estimates.items()]
    frame = pd.concat(parts, ignore_index=True)
    known = frame.dropna(subset="estimate")
    save_figure(counterfactual_figure(frame if known.empty else known, order, labels), *files)


def draw_exposure(
    exposures: Mapping[str, Path],
    files: Sequence[Path],
    order: Sequence[str],
    labels: Mapping[str, str],
) -> None:
    """Draw the Gini coefficient by round to files, from the measures by policy."""
    parts = [pd.read_csv(path).assign(policy=policy) for policy, path in exposures.items()]
    frame = pd.concat(parts, ignore_index=True).rename(columns={"Gini": "value"})
    frame = in_every_round(frame[frame["method"] != "logging_policy"])
    save_figure(rounds_figure(frame, order, labels, metric="Gini of exposure"), *files)


def write_catalogue_tables(
    orders: Path, exposure: Path, sampled: Path, exposed: Path, figure: Sequence[Path]
) -> None:
    """Write the two tables and the figure of the synthetic catalogue.

    Parameters
    ----------
    orders, exposure : pathlib.Path
        From `ultrbench.stages.catalogue.study_catalogue`.
    sampled, exposed : pathlib.Path
        Tables to write, without their ending.
    figure : sequence of pathlib.Path
        ``.pdf``, ``.png`` and ``.svg`` to write, of the sampled metric.
    """
    rankers = pd.read_csv(exposure)
    items, users = (int(rankers[name].iloc[0]) for name in ("items", "users"))
    frame = pd.read_csv(orders, keep_default_na=False)
    save_figure(sampled_figure(frame), *figure)
    pairs = frame["better"] + " above " + frame["worse"]
    blocks = pairs + ", " + frame["users"].map("{:,}".format) + " users"
    names = blocks + " " + frame["correction"]
    shown = frame.assign(row=names).pivot_table(index="row", columns="samples", values="agreement")
    groups = {block: list(part.unique()) for block, part in names.groupby(blocks, sort=False)}
    exact = ", ".join(
        f"{name} {value:.3f}"
        for name, value in zip(rankers["ranker"], rankers[METRIC], strict=True)
    )
    caption = (
        f"Sampled metrics on a synthetic catalogue of {items:,} shared items and {users:,} users"
        f" with one relevant item each: how often two rankers stand in their true order by {METRIC}"
        " when the relevant item is ranked among m sampled negatives only (without replacement), as"
        " the metric is commonly computed (none) and with the corrections of Krichene and Rendle"
        f" (2020). {REPEATS} draws of users and negatives each; a tie counts half. Exact {METRIC}:"
        f" {exact}. Synthetic: an illustration."
    )
    labels = dict(zip(names, frame["correction"], strict=True))
    shown = shown.rename(columns="m@{}".format)
    table = descriptive_table(shown, groups, frame, corner="Correction", labels=labels)
    write_table(sampled, table, caption)

    caption = (
        f"Beyond accuracy on a synthetic catalogue of {items:,} shared items, the first {TOP} of"
        f" which are shown to each of {users:,} users. Coverage: share of the items shown to"
        " anyone; Gini: of the items' exposure, each place weighted by its examination"
        " probability; diversity: mean cosine distance of item factors within a list; novelty:"
        " mean -log2 of the popularity share in an earlier log, in bits; serendipity: mean"
        f" relevance of the items that the {TOP} most popular do not include. Synthetic: an"
        " illustration."
    )
    shown = rankers.drop(columns=["items", "users"]).set_index("ranker")
    groups = {"Rankers": list(shown.index)}
    write_table(exposed, descriptive_table(shown, groups, rankers, corner="Ranker"), caption)

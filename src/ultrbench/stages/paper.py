"""Stage `paper`: tables, figures and the summary, from the files of the stages before."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from tabulate import tabulate

from ultrbench.datasets.split import read_split
from ultrbench.files import read_json, write_text
from ultrbench.propensity.estimate import is_converged, read_propensity
from ultrbench.reporting import figures
from ultrbench.reporting.captions import results_caption
from ultrbench.reporting.names import display_name
from ultrbench.reporting.page import answer
from ultrbench.reporting.tables import (
    COMPARISON_COLUMNS,
    FLAG,
    LEARNED,
    ResultsTable,
    add_group,
    comparison_cells,
    escape_markdown,
    flag_rows,
    results_table,
    table_csv,
    table_latex,
    table_markdown,
)
from ultrbench.simulation.log import log_files, read_log
from ultrbench.simulation.truth import read_truth
from ultrbench.stages.evaluation import KEYS, TESTS_SEED, in_every_round, last_rounds
from ultrbench.stages.exposure import DEFINITIONS, MEASURES, top_places

NOT_SETTLED = "the estimate of the propensities did not settle, in replicates"


def write_tables(
    dataset: Path,
    comparisons: Path,
    conventions: Path,
    exposure: Path | None,
    stems: Mapping[tuple[str, str], Path],
    *,
    reports: Sequence[tuple[str, Path]] = (),
    groups: Mapping[str, Sequence[str]],
    labels: Mapping[str, str],
    metrics: Sequence[str],
    headline: str,
    control: str | None,
    without_relevant: str,
    list_size: int,
    name: str,
    policy: str,
    setting: str,
    remark: str = "",
) -> None:
    """Write the results tables of a setting as ``.csv``, ``.md`` and ``.tex``.

    Parameters
    ----------
    dataset : pathlib.Path
        Folder of the prepared data set.
    comparisons, conventions : pathlib.Path
        From the stage `evaluation`.
    exposure : pathlib.Path or None
        From the stage `exposure`, for a group of columns of the table of truncated candidates.
    stems : mapping of (str, str) to pathlib.Path
        Where to write, without the ending, by kind of candidates and of validation.
    reports : sequence of (str, pathlib.Path)
        Methods with the report of each estimate behind them; a method with one that did not
        settle is marked.
    groups, labels, metrics
        Rows by block, their labels, and the columns.
    headline : str
        The metric of the test family.
    control : str or None
        The A/A row.
    without_relevant, list_size
        From the config, for the caption.
    name, policy, setting : str
        Data set, policy and setting as named in the config.
    remark : str
        What the caption ends with.
    """
    numbers, notes = pd.read_csv(comparisons), pd.read_csv(conventions)
    about = read_json(dataset / "dataset.json")
    settled: dict[str, list[bool]] = {}
    for method, report in reports:
        settled.setdefault(method, []).append(is_converged(report))
    unsettled = {method: found for method, found in settled.items() if not all(found)}
    displayed = "truncated", next(validation for _, validation in stems)
    for (candidates, validation), stem in stems.items():
        kept = numbers[(numbers.candidates == candidates) & (numbers.validation == validation)]
        noted = notes[(notes.candidates == candidates) & (notes.validation == validation)]
        table = results_table(kept, metrics, groups, LEARNED, labels)
        caption = results_caption(
            table,
            dataset=name,
            policy=policy,
            setting=setting,
            candidates=candidates,
            list_size=list_size,
            validation=validation,
            seed=TESTS_SEED,
            without_relevant=round(noted["without_relevant"].mean()),
            queries_without_relevant=without_relevant,
            tied_share=float(noted["tied_share"].mean()),
            control=control,
            synthetic=about["entry"]["kind"] == "synthetic",
            labels=labels,
            primary=headline,
        )
        if exposure is not None and (candidates, validation) == displayed:
            table = _with_exposure(table, exposure)
            caption += (
                " Exposure, on the displayed candidates:"
                f" {DEFINITIONS.format(top=top_places(list_size))}; descriptive."
            )
        table = flag_rows(table, [display_name(method, labels) for method in unsettled])
        if unsettled:
            caption += f" {FLAG} {NOT_SETTLED}: {_shares(unsettled, labels)}."
        caption = f"{caption} {remark}".rstrip()
        label = f"tab:{stem.name}"
        for ending, text in (
            (".csv", table_csv(table)),
            (".md", table_markdown(table, caption)),
            (".tex", table_latex(table, caption, label)),
        ):
            write_text(stem.with_name(stem.name + ending), text)


def _shares(settled: Mapping[str, Sequence[bool]], labels: Mapping[str, str]) -> str:
    return ", ".join(
        f"{display_name(method, labels)} {found.count(False)} of {len(found)}"
        for method, found in settled.items()
    )


def _with_exposure(table: ResultsTable, exposure: Path) -> ResultsTable:
    by = last_rounds(pd.read_csv(exposure)).groupby("method")
    short = {measure: measure if len(measure) < 5 else measure[:3] + "." for measure in MEASURES}
    return add_group(table, "Exposure", by[list(MEASURES)].mean(), by.size(), short)


@dataclass(frozen=True)
class ThetaFiles:
    """An estimate and the truth of the logs it was made from."""

    policy: str
    setting: str
    method: str
    seed: int
    table: Path
    truths: Sequence[Path]


def propensity_frame(estimates: Iterable[ThetaFiles]) -> pd.DataFrame:
    """Return learned and true propensities by position, for `figures.propensity_figure`."""
    parts = []
    for estimate in estimates:
        relative = read_propensity(estimate.table)
        truth = read_truth(estimate.truths)
        known = np.full(len(relative), np.nan) if truth is None else truth[: len(relative)]
        parts.append(
            pd.DataFrame(
                {
                    "policy": estimate.policy,
                    "setting": estimate.setting,
                    "method": estimate.method,
                    "seed": estimate.seed,
                    "position": np.arange(1, len(relative) + 1),
                    "relative": relative,
                    "truth": known / known[0],
                }
            )
        )
    return pd.concat(parts, ignore_index=True)


def grades_frame(dataset: Path, logs: Iterable[tuple[str, Path]]) -> pd.DataFrame:
    """Return the share of each grade by logged position, for `figures.grades_figure`.

    Parameters
    ----------
    dataset : pathlib.Path
        Folder of the prepared data set.
    logs : iterable of (str, pathlib.Path)
        Policies with folders of their logs; several logs of a policy are averaged.
    """
    grades = read_split(dataset, "train").grades
    ymax = read_json(dataset / "dataset.json")["ymax"]
    parts = []
    for policy, folder in logs:
        log = read_log(*log_files(folder, "train"))
        for k in range(log.positions):
            shown = log.documents[log.shown[:, k], k]
            share = np.bincount(grades[shown], minlength=ymax + 1) / max(len(shown), 1)
            parts.append(
                pd.DataFrame(
                    {
                        "policy": policy,
                        "position": k + 1,
                        "grade": np.arange(ymax + 1),
                        "share": share,
                    }
                )
            )
    frame = pd.concat(parts, ignore_index=True)
    return frame.groupby(["policy", "position", "grade"], sort=False, as_index=False).mean()


def rounds_frame(
    files: Mapping[str, Path], candidates: str, validation: str, metric: str
) -> pd.DataFrame:
    """Return a metric by policy, method, round and seed, see `in_every_round`."""
    parts = [pd.read_csv(path).assign(policy=policy) for policy, path in files.items()]
    frame = pd.concat(parts, ignore_index=True)
    frame = frame[(frame.candidates == candidates) & (frame.validation == validation)]
    frame = frame.rename(columns={metric: "value"})
    return in_every_round(frame[["policy", "method", "round", "seed", "value"]])


def draw_propensities(estimates: Sequence[ThetaFiles], files: Sequence[Path], **style: Any) -> None:
    """Draw learned against true propensities to files."""
    figures.save_figure(figures.propensity_figure(propensity_frame(estimates), **style), *files)


def draw_grades(dataset: Path, logs: Iterable[tuple[str, Path]], files: Sequence[Path]) -> None:
    """Draw the share of grades by logged position to files."""
    figures.save_figure(figures.grades_figure(grades_frame(dataset, logs)), *files)


def draw_rounds(frame: pd.DataFrame, files: Sequence[Path], **style: Any) -> None:
    """Draw the headline metric by round to files; random order is left out."""
    frame = frame[frame["method"] != "random_order"]
    figures.save_figure(figures.rounds_figure(frame, **style), *files)


def draw_spread(frame: pd.DataFrame, files: Sequence[Path], **style: Any) -> None:
    """Draw the headline metric of the last round with its spread over seeds."""
    figures.save_figure(figures.spread_figure(last_rounds(frame), **style), *files)


def write_summary(
    summary: Path,
    tables: Sequence[Path],
    drawings: Sequence[Path],
    places: Sequence[tuple[str, str, str, Path, Path]],
    datasets: Sequence[Path],
    *,
    headline: str,
    labels: Mapping[str, str],
) -> None:
    """Write one Markdown page with every table and figure of the study.

    Parameters
    ----------
    summary : pathlib.Path
        ``.md`` to write; links are relative to it.
    tables : sequence of pathlib.Path
        Tables in Markdown.
    drawings : sequence of pathlib.Path
        Figures as png.
    places : sequence of (str, str, str, pathlib.Path, pathlib.Path)
        Data set, policy and setting, the csv of the first results table, and the comparisons.
    datasets : sequence of pathlib.Path
        ``dataset.json`` of each data set.
    headline : str
        The metric of the orders.
    labels : mapping of str to str
        Labels of methods.
    """
    first = {
        f"{dataset}, {policy}, {setting}": pd.read_csv(table).assign(policy=policy)
        for dataset, policy, setting, table, _ in places
    }
    synthetic = all(read_json(about)["entry"]["kind"] == "synthetic" for about in datasets)
    paragraph, each = answer(first, headline, {}, synthetic)
    lines = ["# Results", "", escape_markdown(paragraph), ""]
    lines += [f"- {escape_markdown(line)}" for line in each]
    lines += [
        "",
        "Words are explained in docs/results.md; `results/claims.md` has verdicts on what papers"
        " claim, and `snakemake --cores all report` makes one page of everything.",
        "",
        f"## {headline} against the reference",
        "",
    ]
    lines += [
        "Difference: the mean over queries and replicates of method minus reference, with its 95 %"
        " crossed bootstrap interval. p: Fisher randomisation test, raw and corrected over the"
        " methods by Holm and max-T. MDE: the least true difference that test and interval both"
        f" show with 80 % power. {FLAG}: learned from propensities that had not settled.",
        "",
    ]
    for dataset, policy, setting, _, path in places:
        frame = pd.read_csv(path)
        frame = frame[frame["metric"] == headline]
        shown = first[f"{dataset}, {policy}, {setting}"]
        unsettled = shown.loc[~shown["settled"], "method"].unique()
        own = {**labels, **{m: f"{display_name(m, labels)} {FLAG}" for m in unsettled}}
        for (candidates, validation), part in frame.groupby(KEYS, sort=False):
            lines += [f"**{dataset}, {policy}, {setting}, {candidates}, {validation}**", ""]
            ranked = part.sort_values("mean", ascending=False, kind="stable")
            rows = [comparison_cells(row, own) for row in ranked.to_dict("records")]
            headers = ["Method", headline, *COMPARISON_COLUMNS]
            lines += [tabulate(rows, headers, tablefmt="pipe", disable_numparse=True), ""]
    here = summary.parent
    for drawing in drawings:
        lines += [f"## {drawing.stem}", "", f"![{drawing.stem}]({drawing.relative_to(here)})", ""]
    for table in tables:
        lines += [f"## {table.stem}", "", table.read_text(encoding="utf-8")]
    write_text(summary, "\n".join(lines))

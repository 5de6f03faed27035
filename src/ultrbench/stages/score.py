"""Rows of one's own beside those of a study: propensities and rankings that come as files."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd

from ultrbench.datasets.split import Split
from ultrbench.errors import UserError
from ultrbench.evaluation.trec import document_names, read_run
from ultrbench.files import read_arrays, read_table, replacing, write_arrays
from ultrbench.propensity.error import theta_error
from ultrbench.propensity.own import read_own_propensity
from ultrbench.reporting.tables import BETTER, MIN_REPLICATES, WORSE, interval, mark
from ultrbench.simulation.log import log_files, read_log
from ultrbench.simulation.truth import is_by_position, read_truth
from ultrbench.stages.diagnosis import (
    ERRORS,
    NO_TRUTH,
    UNKNOWN,
    error_table,
    write_error_table,
)
from ultrbench.stages.evaluation import compare_rankers, evaluate_rankers
from ultrbench.stages.paper import write_tables

OWN = "Scored from files"
CONVENTIONS: dict[str, type] = dict.fromkeys(("candidates", "validation", "method"), str)
CONVENTIONS |= dict.fromkeys(("queries", "without_relevant", "dropped"), int)
CONVENTIONS |= dict.fromkeys(("tied_share", "tie_sensitivity"), float)


def by_replicate(files: Sequence[Path], seeds: Sequence[int], option: str) -> dict[int, Path]:
    """Tell which file belongs to which replicate: one to all, or each to the seed in its name.

    Parameters
    ----------
    files : sequence of pathlib.Path
        One, or one for each replicate, named ``...seed1...`` and so on.
    seeds : sequence of int
        Replicates of the study.
    option : str
        What to call them in a sentence.

    Raises
    ------
    UserError
        Where files and replicates do not match one to one.

    Examples
    --------
    >>> files = [Path("dla.seed10.run"), Path("dla.seed2.run")]
    >>> [file.name for file in by_replicate(files, [2, 10], "--run").values()]
    ['dla.seed2.run', 'dla.seed10.run']
    """
    if len(files) == 1:
        return dict.fromkeys(seeds, files[0])
    found: dict[int, Path] = {}
    for file in files:
        named = re.findall(r"seed(\d+)", file.name)
        if len(named) != 1:
            raise UserError(
                f"{option} {file}: of several files each must name its replicate, as in"
                f" mine.seed{seeds[0]}.txt"
            )
        if int(named[0]) in found:
            raise UserError(f"{option}: {found[int(named[0])]} and {file} are for one replicate")
        found[int(named[0])] = file
    if sorted(found) != sorted(seeds):
        raise UserError(
            f"{option}: there are files for the replicates {', '.join(map(str, sorted(found)))};"
            f" the study has {', '.join(map(str, seeds))}. Give one file for each, or a single file"
            " for all."
        )
    return {seed: found[seed] for seed in seeds}


def read_run_scores(path: Path, test: Split) -> np.ndarray:
    """Read a TREC run as scores of the test documents.

    Parameters
    ----------
    path : pathlib.Path
        Documents are named ``{query_id}-{place in it, from 0}``, as in ``qrels.txt`` of the
        target `trec` and of `python -m ultrbench export`.
    test : Split
        The test split.

    Returns
    -------
    numpy.ndarray
        float64 ``[documents]``; NaN where the run does not rank a document.

    Raises
    ------
    UserError
        Where it has another query or document, or ranks none of a query.
    """
    run = read_run(path)
    queries = test.query_ids.tolist()
    if unknown := run.keys() - set(queries):
        raise UserError(
            f"{path}: the query {min(unknown)} is not one of the {len(queries)} test queries,"
            f" which are named like {queries[0]}"
        )
    if lost := [query for query in queries if query not in run]:
        raise UserError(
            f"{path}: it lacks {len(lost)} of the {len(queries)} test queries, the first is"
            f" {lost[0]}; rank the documents of every test query"
        )
    scores = np.full(len(test.grades), np.nan)
    names = document_names(test.query_ids, test.query_ptr).tolist()
    for q, query in enumerate(queries):
        start, stop = test.query_ptr[q : q + 2]
        places = {name: row for row, name in enumerate(names[start:stop], start=int(start))}
        for document, score in run[query].items():
            if document not in places:
                raise UserError(
                    f"{path}: query {query} has no document {document}; its {stop - start}"
                    f" documents are {names[start]} to {names[stop - 1]}"
                )
            scores[places[document]] = score
    return scores


def complete_kinds(
    scores: Mapping[int, np.ndarray], candidates: Mapping[int, Path], kinds: Sequence[str]
) -> list[str]:
    """Return the kinds of candidates all of whose documents have a score in every replicate.

    Parameters
    ----------
    scores : mapping of int to numpy.ndarray
        float64 ``[test documents]`` by seed, NaN where there is none.
    candidates : mapping of int to pathlib.Path
        Candidate files by seed.
    kinds : sequence of {"truncated", "full"}
        Those of the study.
    """

    def complete(seed: int, kind: str) -> bool:
        if kind == "full":
            return not np.isnan(scores[seed]).any()
        rows = read_arrays(candidates[seed])["test_documents"]
        return not np.isnan(scores[seed][rows[rows >= 0]]).any()

    return [kind for kind in kinds if all(complete(seed, kind) for seed in scores)]


def score_rankers(
    dataset: Path,
    candidates: Mapping[int, Path],
    rows: Mapping[str, Mapping[int, Mapping[str, np.ndarray]]],
    study: Path,
    out: Path,
    *,
    tables: Mapping[tuple[str, str], Path],
    metrics: Sequence[str],
    tested: Sequence[str],
    headline: str,
    reference: str,
    not_marked: Sequence[str],
    labels: Mapping[str, str],
    evaluation: Mapping[str, Any],
    list_size: int,
    place: tuple[str, str, str],
    remark: str,
) -> pd.DataFrame:
    """Measure rankings of one's own and test them together with those of a study.

    Parameters
    ----------
    dataset : pathlib.Path
        Folder of the prepared data set.
    candidates : mapping of int to pathlib.Path
        Candidate files by seed.
    rows : mapping
        By name of the row, seed and validation: scores of all test documents, NaN where there is
        none.
    study : pathlib.Path
        Folder with the study's ``per_query.parquet``.
    out : pathlib.Path
        Folder to write: ``per_query.parquet``, ``conventions.csv``, ``comparisons.csv``,
        ``power.csv`` and ``{candidates}.{validation}.csv``, ``.md``, ``.tex``.
    tables : mapping of (str, str) to pathlib.Path
        The study's tables as ``.csv`` by kind of candidates and of validation, for their blocks.
    metrics, tested, headline, reference, not_marked, labels
        As the study has them; `tested` are the columns of the tables.
    evaluation : mapping
        Section of the config.
    list_size : int
        Candidates of a query.
    place : (str, str, str)
        Data set, policy and setting.
    remark : str
        What the captions end with.

    Returns
    -------
    pandas.DataFrame
        The comparisons of the own rows at the headline metric.

    Raises
    ------
    UserError
        Where a row ranks too few documents for any table.
    """
    kinds = list(dict.fromkeys(kind for kind, _ in tables))
    validations = list(dict.fromkeys(validation for _, validation in tables))
    for name, by_seed in rows.items():
        scores = {seed: next(iter(named.values())) for seed, named in by_seed.items()}
        kinds = complete_kinds(scores, candidates, kinds)
        if not kinds:
            raise UserError(
                f"{name}: the run leaves documents out. Rank all documents of every test query, or"
                " all candidates of the policy (test_documents of the candidates) for the tables"
                " `truncated`."
            )
    study_rows = read_table(
        study / "per_query.parquet", {"candidates": str} | dict.fromkeys(tested, float)
    )
    parts = [study_rows[study_rows["candidates"].isin(kinds)]]
    notes = [read_table(study / "conventions.csv", CONVENTIONS)]
    with TemporaryDirectory(prefix="ultrbench-") as work:
        files = {}
        for name, by_seed in rows.items():
            for seed, named in by_seed.items():
                path = Path(work, f"{name}.{seed}.npz")
                # Documents without a score are in no list that is measured.
                write_arrays(path, {v: np.nan_to_num(named[v], nan=0.0) for v in validations})
                files[name, 0, seed] = path
        measured = [Path(work, file) for file in ("per_query.parquet", "rounds.csv", "notes.csv")]
        evaluate_rankers(
            dataset,
            candidates,
            files,
            *measured,
            kinds=kinds,
            metrics=metrics,
            headline=headline,
            without_relevant=evaluation["queries_without_relevant"],
        )
        for collected, frame in (
            (parts, pd.read_parquet(measured[0])),
            (notes, pd.read_csv(measured[2])),
        ):
            collected.append(frame[frame["method"].isin(list(rows))])
    per_query = out / "per_query.parquet"
    with replacing(per_query) as half:
        frame = pd.concat(parts, ignore_index=True)
        frame.to_parquet(half, index=False, compression="zstd")
    with replacing(out / "conventions.csv") as half:
        pd.concat(notes).to_csv(half, index=False, lineterminator="\n")
    comparisons = out / "comparisons.csv"
    compare_rankers(
        per_query,
        comparisons,
        out / "power.csv",
        reference=reference,
        metrics=tested,
        headline=headline,
        not_marked=not_marked,
        resamples=evaluation["resamples"],
        bootstraps=evaluation["bootstraps"],
    )
    kept = {key: path for key, path in tables.items() if key[0] in kinds}
    study_table = read_table(next(iter(kept.values())), {"group": str, "method": str})
    groups = {
        block: list(part["method"].unique())
        for block, part in study_table.groupby("group", sort=False)
    }
    write_tables(
        dataset,
        comparisons,
        out / "conventions.csv",
        None,
        {key: out / ".".join(key) for key in kept},
        groups=groups | {OWN: list(rows)},
        labels=labels,
        metrics=tested,
        headline=headline,
        control=next(iter(not_marked), None),
        without_relevant=evaluation["queries_without_relevant"],
        list_size=list_size,
        name=place[0],
        policy=place[1],
        setting=place[2],
        remark=remark,
    )
    frame = pd.read_csv(comparisons)
    frame = frame[frame["metric"] == headline]
    grouped = frame.groupby(["candidates", "validation"], sort=False)["mean"]
    frame = frame.assign(
        rank=grouped.rank(ascending=False, method="min").astype(int),
        rows=grouped.transform("size"),
    )
    return frame[frame["method"].isin(list(rows))]


def verdict(row: Mapping[str, Any]) -> str:
    """Say in words what a comparison with the reference found.

    Parameters
    ----------
    row : mapping
        A row of `score_rankers`.

    Examples
    --------
    >>> row = {"method": "mine", "candidates": "full", "validation": "grades", "rank": 2, "rows": 9,
    ...        "metric": "nDCG@10", "mean": 0.5, "reference": "naive", "difference": 0.1, "low": 0,
    ...        "high": 0.2, "p": 0.04, "p_holm": 0.2, "replicates": 2, "significant": False}
    >>> print(verdict(row))
    mine (full, grades): nDCG@10 0.5000, rank 2 of 9; against naive +0.1000, 95 % interval +0.0000
    to +0.2000, p 0.04, with Holm's correction 0.2: no verdict, as fewer than five replicates
    """
    found = {BETTER: "better", WORSE: "worse", "": "no difference shown"}[mark(row)]
    if row["replicates"] < MIN_REPLICATES:
        found = "no verdict, as fewer than five replicates"
    return (
        f"{row['method']} ({row['candidates']}, {row['validation']}): {row['metric']}"
        f" {row['mean']:.4f}, rank {row['rank']} of {row['rows']}; against {row['reference']}"
        f" {row['difference']:+.4f}, 95 % interval"
        f" {interval(row['low'], row['high'])}, p {row['p']:.3g}, with Holm's correction"
        f" {row['p_holm']:.3g}: {found}"
    )


def score_theta(
    name: str,
    tables: Mapping[int, Path],
    logs: Mapping[int, Path],
    study: Path,
    stem: Path,
    *,
    labels: Mapping[str, str],
    place: tuple[str, str, str],
) -> dict[str, Any]:
    """Write the table of propensity errors of a setting with a row of one's own.

    Parameters
    ----------
    name : str
        Name of the row.
    tables : mapping of int to pathlib.Path
        Propensities by seed, see `ultrbench.propensity.own.read_own_propensity`.
    logs : mapping of int to pathlib.Path
        By seed the folder of the log that the errors are weighted by, with the truth.
    study : pathlib.Path
        The study's ``propensity_error.csv``.
    stem : pathlib.Path
        Where to write ``.csv``, ``.md`` and ``.tex``, without the ending.
    labels : mapping of str to str
        Labels of methods.
    place : (str, str, str)
        Data set, policy and setting.

    Returns
    -------
    dict
        The row.
    """
    rows = []
    for seed, path in tables.items():
        log = read_log(*log_files(logs[seed], "train"))
        relative = read_own_propensity(path, log.positions)
        truths = [logs[seed] / "truth.csv"]
        truth = read_truth(truths)
        errors: dict[str, Any] = dict.fromkeys(ERRORS, np.nan)
        note = ""
        if truth is None:
            note = UNKNOWN
        elif not is_by_position(truths):
            note = NO_TRUTH
        else:
            clicks = log.clicks.sum(axis=0)
            errors = theta_error(relative, truth[: len(relative)], clicks)._asdict()
        rows.append(
            {"policy": place[1], "setting": place[2], "method": name, "seed": seed, "note": note}
            | errors
            | {"last": True, "converged": np.nan, "identified": np.nan, "iteration": np.nan}
        )
    own = error_table(pd.DataFrame(rows))
    columns: dict[str, type] = dict.fromkeys(("label", "policy", "setting", "method", "note"), str)
    columns |= dict.fromkeys((*ERRORS, "converged", "identified", "iterations"), float)
    known = read_table(study, columns).drop(columns="label").fillna({"note": ""})
    known = known[(known["policy"] == place[1]) & (known["setting"] == place[2])]
    write_error_table(
        pd.concat([known, own], ignore_index=True), stem, labels=labels, dataset=place[0]
    )
    return own.to_dict("records")[0]

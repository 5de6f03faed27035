"""Stage `evaluation`: measure rankers on true grades and test the differences."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ultrbench.datasets.split import Split, read_split
from ultrbench.errors import UserError
from ultrbench.evaluation.compare import compare_methods
from ultrbench.evaluation.lists import pad, padding_mask
from ultrbench.evaluation.metrics import compute_metrics, parse_metric
from ultrbench.evaluation.significance import power_table
from ultrbench.evaluation.ties import tie_sensitivity, tied_queries
from ultrbench.files import read_arrays, read_json, replacing
from ultrbench.seeding import stream

KEYS = ["candidates", "validation"]
TESTS_SEED = 0
EFFECTS = (0.002, 0.005, 0.01, 0.02, 0.05)
POWER = ["effect", "effect_size", "queries", "resamples", "method", "comparisons", *KEYS]


@dataclass(frozen=True)
class TestLists:
    """Test queries with the documents that are ranked, padded, in canonical order.

    All arrays are ``[queries, documents]``: `rows` of the test split, `grades`, and the `mask`
    that is false where a list is padded.
    """

    rows: np.ndarray
    grades: np.ndarray
    mask: np.ndarray

    @property
    def with_relevant(self) -> np.ndarray:
        """bool ``[queries]``, whether a list has a document of grade above 0."""
        return np.any(np.where(self.mask, self.grades, 0) > 0, axis=1)

    def keep(self, queries: np.ndarray) -> "TestLists":
        """Return the lists of the queries where the bool array is true."""
        return TestLists(self.rows[queries], self.grades[queries], self.mask[queries])


def _test_lists(test: Split, candidates: np.ndarray, kind: str) -> TestLists:
    if kind == "full":
        rows = pad(np.arange(len(test.grades)), test.query_ptr, 0)
        return TestLists(rows, test.grades[rows], padding_mask(test.query_ptr))
    # Canonical order within a query, so that ties do not favour the policy's order.
    last = len(test.grades)
    rows = np.sort(np.where(candidates >= 0, candidates, last), axis=1)
    mask = rows < last
    rows = np.where(mask, rows, 0)
    return TestLists(rows, test.grades[rows], mask)


def last_rounds(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of each method's last logging round.

    Parameters
    ----------
    frame : pandas.DataFrame
        With the columns method and round, as ``rounds.csv`` has them.

    Examples
    --------
    >>> frame = pd.DataFrame({"method": ["dla", "dla", "labeled"], "round": [0, 1, 0]})
    >>> last_rounds(frame).index.tolist()
    [1, 2]
    """
    return frame[frame["round"] == frame.groupby("method")["round"].transform("max")]


def in_every_round(frame: pd.DataFrame) -> pd.DataFrame:
    """Repeat the rows of a method that is trained once, as on grades, for every logging round.

    Parameters
    ----------
    frame : pandas.DataFrame
        With the columns method and round, as ``rounds.csv`` has them.

    Examples
    --------
    >>> frame = pd.DataFrame({"method": ["dla", "dla", "labeled"], "round": [0, 1, 0]})
    >>> in_every_round(frame).to_numpy().tolist()
    [['dla', 0], ['dla', 1], ['labeled', 0], ['labeled', 1]]
    """
    last = frame["round"].max()
    once = frame[frame.groupby("method")["round"].transform("max") < last]
    repeated = [once.assign(round=r) for r in range(1, last + 1)]
    return pd.concat([frame, *repeated], ignore_index=True)


def evaluate_rankers(
    dataset: Path,
    candidates: Mapping[int, Path],
    scores: Mapping[tuple[str, int, int], Path],
    per_query: Path,
    rounds: Path,
    conventions: Path,
    *,
    kinds: Sequence[str],
    metrics: Sequence[str],
    headline: str,
    without_relevant: str,
) -> None:
    """Measure every ranker of a setting on the true grades of the test queries.

    Parameters
    ----------
    dataset : pathlib.Path
        Folder of the prepared data set.
    candidates : mapping of int to pathlib.Path
        Candidate files by seed.
    scores : mapping of (str, int, int) to pathlib.Path
        Score files by method, round and seed, methods in the order of the table.
    per_query : pathlib.Path
        ``.parquet`` to write: a row a (candidates, validation, method, seed, query) for the last
        round of each method and for the rows ``logging_policy`` and ``random_order``, a column a
        metric.
    rounds : pathlib.Path
        ``.csv`` to write: means by round.
    conventions : pathlib.Path
        ``.csv`` to write: queries, those without a relevant candidate, those dropped, the share
        of queries with tied scores, and how far random tie orders move the headline metric.
    kinds : sequence of {"truncated", "full"}
        Which documents are ranked.
    metrics : sequence of str
        Canonical names.
    headline : str
        The metric whose sensitivity to ties is reported.
    without_relevant : {"zero", "drop"}
        Queries without a relevant document among the candidates count as 0, or are left out; they
        are left out of all replicates where one replicate lacks a relevant candidate.
    """
    test = read_split(dataset, "test")
    ymax = read_json(dataset / "dataset.json")["ymax"]
    last = {method: max(r for m, r, _ in scores if m == method) for method, _, _ in scores}
    seeds = list(candidates)
    depth = parse_metric(headline).cutoff
    values: list[pd.DataFrame] = []
    means: list[dict[str, Any]] = []
    notes: list[dict[str, Any]] = []
    for kind in kinds:
        lists = {
            seed: _test_lists(test, read_arrays(path)["test_documents"], kind)
            for seed, path in candidates.items()
        }
        relevant = np.array([lists[seed].with_relevant for seed in seeds])
        kept = relevant.all(axis=0) if without_relevant == "drop" else np.ones(relevant.shape[1])
        kept = kept.astype(bool)
        if not relevant[:, kept].any():
            raise UserError(
                f"{dataset}: no test query has a relevant document among its {kind} candidates,"
                " so there is nothing to measure"
            )
        for (method, round_, seed), named in _all_scores(candidates, scores, last, test):
            ranked = lists[seed].keep(kept)
            known: list[tuple[np.ndarray, dict[str, Any]]] = []
            for validation, documents in named.items():
                key = {"candidates": kind, "validation": validation, "method": method}
                cells = documents[ranked.rows]
                # Both ways of validation often choose the same trees.
                same = (found for other, found in known if np.array_equal(other, documents))
                measured = next(same, None) or compute_metrics(
                    metrics, cells, ranked.grades, ranked.mask, ymax
                )
                known.append((documents, measured))
                means.append(
                    key
                    | {"round": round_, "seed": seed}
                    | {name: float(np.mean(value)) for name, value in measured.items()}
                )
                if round_ < last.get(method, 0):
                    continue
                values.append(
                    pd.DataFrame(key | {"seed": seed, "query": test.query_ids[kept]} | measured)
                )
                tied = tied_queries(cells, ranked.mask, cutoff=depth)
                moved = 0.0
                if tied.any():
                    few = ranked.keep(tied)
                    rng = stream(seed, "tie orders")
                    moved = (
                        tied.mean()
                        * tie_sensitivity(
                            [headline], cells[tied], few.grades, few.mask, ymax, rng=rng
                        )[headline]
                    )
                notes.append(
                    key
                    | {
                        "seed": seed,
                        "queries": int(kept.sum()),
                        "without_relevant": int((~lists[seed].with_relevant).sum()),
                        "dropped": int(np.sum(np.logical_not(kept))),
                        "tied_share": float(tied.mean()),
                        "tie_sensitivity": float(moved),
                    }
                )
    with replacing(per_query) as half:
        frame = pd.concat(values, ignore_index=True)
        frame.to_parquet(half, index=False, compression="zstd")
    for path, rows in ((rounds, means), (conventions, notes)):
        with replacing(path) as half:
            pd.DataFrame(rows).to_csv(half, index=False, lineterminator="\n")


def _all_scores(
    candidates: Mapping[int, Path],
    scores: Mapping[tuple[str, int, int], Path],
    last: Mapping[str, int],
    test: Split,
):
    """Yield ((method, round, seed), scores of all test documents by validation)."""
    validations: list[str] = []
    for key, path in scores.items():
        named = read_arrays(path)
        validations = list(named)
        yield key, named
    for seed, path in candidates.items():
        policy = read_arrays(path)["test_all_scores"]
        yield ("logging_policy", 0, seed), dict.fromkeys(validations, policy)
        order = stream(seed, "random order").random(len(test.grades))
        yield ("random_order", 0, seed), dict.fromkeys(validations, order)


def compare_rankers(
    per_query: Path,
    comparisons: Path,
    power: Path,
    *,
    reference: str,
    metrics: Sequence[str],
    headline: str,
    not_marked: Sequence[str],
    resamples: int,
    bootstraps: int,
) -> None:
    """Test every method against the reference, for each kind of candidates and of validation.

    Parameters
    ----------
    per_query : pathlib.Path
        From `evaluate_rankers`.
    comparisons : pathlib.Path
        ``.csv`` to write; columns as in `ultrbench.evaluation.compare.compare_methods`, after
        ``candidates`` and ``validation``.
    power : pathlib.Path
        ``.csv`` to write: the queries and resamples that differences of some sizes need, a row a
        (candidates, validation, method, comparisons, effect); comparisons is 1, or the size of the
        family. A method whose differences do not vary has no row.
    reference, metrics, headline, not_marked, resamples, bootstraps
        As in `ultrbench.evaluation.compare.compare_methods`.
    """
    frame = pd.read_parquet(per_query)
    tables, needs = [], []
    for key, part in frame.groupby(KEYS, sort=False):
        table = compare_methods(
            part.drop(columns=KEYS),
            reference,
            metrics,
            headline,
            not_marked=not_marked,
            resamples=resamples,
            bootstraps=bootstraps,
            seed=TESTS_SEED,
        )
        for position, (name, value) in enumerate(zip(KEYS, key, strict=True)):
            table.insert(position, name, value)
        tables.append(table)
        claimed = [m for m in part["method"].unique() if m not in (reference, *not_marked)]
        needs += [
            row.assign(**dict(zip(KEYS, key, strict=True)))
            for row in _power(part, reference, claimed, headline)
        ]
    planned = pd.concat(needs) if needs else pd.DataFrame(columns=POWER)
    for path, whole in ((comparisons, pd.concat(tables)), (power, planned)):
        with replacing(path) as half:
            whole.to_csv(half, index=False, lineterminator="\n")


def _power(
    per_query: pd.DataFrame, reference: str, methods: Sequence[str], metric: str
) -> Iterator[pd.DataFrame]:
    means = per_query.pivot_table(index="query", columns="method", values=metric)
    for method in methods:
        differences = (means[method] - means[reference]).to_numpy()
        for comparisons in dict.fromkeys((1, len(methods))):
            if len(differences) > 1 and differences.std() > 0:
                table = power_table(differences, EFFECTS, comparisons=comparisons)
                yield table.assign(method=method, comparisons=comparisons)

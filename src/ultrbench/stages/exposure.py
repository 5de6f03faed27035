"""How rankers spread exposure within queries, and what they show beyond relevance."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ultrbench.datasets.split import Split, read_split
from ultrbench.evaluation import beyond_accuracy as beyond
from ultrbench.files import read_arrays, replacing
from ultrbench.simulation.log import log_files, read_log
from ultrbench.simulation.truth import read_truth

COLUMNS_AT_A_TIME = 16  # a bound on memory
MEASURES = ("Gini", "Coverage", "Diversity", "Novelty", "Serendipity")
DEFINITIONS = (
    "of the displays so far, Gini is that of the documents' exposure within their query, each place"
    " weighted by its examination probability, and coverage the share of a query's documents that"
    " were among the first {top}; of the first {top} documents of the ranker, diversity is the mean"
    " cosine distance of standardised features, novelty the mean -log2 of the share of the query's"
    " clicks in the held-out log of the logging policy, in bits, and serendipity the share that is"
    " relevant and not among the logging policy's first {top}"
)


def measure_exposure(
    dataset: Path,
    candidates: Mapping[int, Path],
    logs: Mapping[int, Path],
    scores: Mapping[tuple[str, int, int], Path],
    exposure: Path,
    *,
    validation: str,
) -> None:
    """Measure how each method spreads exposure over the rounds, on the test queries.

    Documents of a learning-to-rank data set have no identity across queries, so that every query is
    a catalogue of its own. The logging policy displays first; the ranker of round r is what a
    method displays next, and exposure and coverage count all its displays so far.

    Parameters
    ----------
    dataset : pathlib.Path
        Folder of the prepared data set.
    candidates, logs : mapping of int to pathlib.Path
        Candidate files, and folders of the held-out log, by seed.
    scores : mapping of (str, int, int) to pathlib.Path
        Score files by method, round and seed, rounds in order.
    exposure : pathlib.Path
        ``.csv`` to write: a row a method, round and seed with a column each of `MEASURES`, means
        over queries; the logging policy has round 0.
    validation : str
        Whose rankers display, those that grades or that clicks stopped.
    """
    test = read_split(dataset, "test")
    policies = {seed: read_arrays(candidates[seed])["test_documents"] for seed in logs}
    displayed = np.unique(np.concatenate([policy.ravel() for policy in policies.values()]))
    features = _standardised(test.features, displayed[displayed >= 0])
    rows: list[dict[str, Any]] = []
    for seed, folder in logs.items():
        policy = policies[seed]
        log = read_log(*log_files(folder, "test"))
        truth = np.asarray(read_truth([folder / "truth.csv"]))
        # The truth ends with the longest training list, and test lists may be longer.
        theta = np.append(truth, np.full(policy.shape[1], truth[-1]))[: policy.shape[1]]
        clicks = np.bincount(
            log.documents[log.shown], log.clicks[log.shown], minlength=len(test.grades)
        )
        first = _Displays(test, features, policy, theta, clicks)
        rows.append({"method": "logging_policy", "round": 0, "seed": seed} | first.show(policy))
        shown: dict[str, _Displays] = {}
        for (method, round_, s), path in scores.items():
            if s != seed:
                continue
            if method not in shown:
                shown[method] = _Displays(test, features, policy, theta, clicks)
                shown[method].show(policy)
            display = _ordered(policy, read_arrays(path)[validation])
            measured = shown[method].show(display)
            rows.append({"method": method, "round": round_, "seed": seed} | measured)
    with replacing(exposure) as half:
        pd.DataFrame(rows).to_csv(half, index=False, lineterminator="\n")


class _Displays:
    """The displays of a method so far, one list a query."""

    def __init__(
        self,
        test: Split,
        features: np.ndarray,
        policy: np.ndarray,
        theta: np.ndarray,
        clicks: np.ndarray,
    ) -> None:
        self.test, self.features, self.clicks, self.theta = test, features, clicks, theta
        self.top = top_places(policy.shape[1])
        self.expected = policy[:, : self.top]
        self.exposed, self.seen = np.zeros((2, len(test.grades)))

    def show(self, display: np.ndarray) -> dict[str, float]:
        """Return the measures after one more display, ``[queries, positions]``."""
        documents, ptr = len(self.test.grades), self.test.query_ptr
        first = display[:, : self.top]
        self.exposed += beyond.exposure(display, self.theta, documents)
        self.seen += beyond.exposure(first, np.ones(self.top), documents)
        relevance = (first >= 0) & (self.test.grades[first] > 0)
        values = (
            beyond.gini(self.exposed, ptr),
            beyond.coverage(self.seen, ptr),
            beyond.intra_list_diversity(first, self.features),
            beyond.novelty(first, self.clicks, ptr),
            beyond.serendipity(first, self.expected, relevance),
        )
        known = (value[~np.isnan(value)] for value in values)
        means = (float(value.mean()) if len(value) else np.nan for value in known)
        return dict(zip(MEASURES, means, strict=True))


def top_places(list_size: int) -> int:
    """Return how many first places count where all candidates are displayed: half of them.

    Examples
    --------
    >>> top_places(10), top_places(1)
    (5, 1)
    """
    return -(-list_size // 2)


def _ordered(policy: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Return the candidates of each query by descending score, ties in document order."""
    key = np.where(policy >= 0, -scores[policy], np.inf)
    return np.take_along_axis(policy, np.lexsort((policy, key), axis=1), axis=1)


def _standardised(features: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return features by the mean and deviation of all documents; 0 for all but some rows."""
    scaled = np.zeros(features.shape, np.float32)  # memory never touched is never allocated
    for start in range(0, features.shape[1], COLUMNS_AT_A_TIME):
        columns = slice(start, start + COLUMNS_AT_A_TIME)
        known = features[:, columns].astype(np.float64)
        finite = np.isfinite(known)
        known[~finite] = np.nan
        known[:, ~finite.any(axis=0)] = 0
        deviation = np.nanstd(known, axis=0)
        standard = (known[rows] - np.nanmean(known, axis=0)) / np.where(deviation > 0, deviation, 1)
        scaled[rows, columns] = np.nan_to_num(standard)
    return scaled

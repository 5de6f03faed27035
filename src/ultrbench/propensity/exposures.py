"""Impressions and clicks by document and position: what a log says of documents that moved."""

from dataclasses import dataclass

import numpy as np

from ultrbench.simulation.log import ClickLog


@dataclass(frozen=True)
class Exposures:
    """Sums over all lists of a log; a document belongs to one query.

    Attributes
    ----------
    queries : numpy.ndarray
        int64 ``[documents]``, query of each displayed document, in canonical order.
    impressions, clicks : numpy.ndarray
        float64 ``[documents, positions]``, n and c of each document at each position.
    """

    queries: np.ndarray
    impressions: np.ndarray
    clicks: np.ndarray

    @property
    def moved(self) -> np.ndarray:
        """bool ``[documents]``, true for documents that were seen at two positions or more."""
        return (self.impressions > 0).sum(axis=1) > 1

    @property
    def clicked(self) -> int:
        """Number of queries with a click."""
        return len(np.unique(self.queries[self.clicks.any(axis=1)]))

    def select(self, documents: np.ndarray) -> "Exposures":
        """Return the exposures of the documents where the bool array `documents` is true."""
        return Exposures(
            self.queries[documents], self.impressions[documents], self.clicks[documents]
        )

    def by_query(self, values: np.ndarray) -> np.ndarray:
        """Add up values by document, ``[documents, positions]``, over the documents of a query."""
        starts = np.flatnonzero(np.diff(self.queries, prepend=-1))
        return np.add.reduceat(values, starts, axis=0)


def exposures(log: ClickLog) -> Exposures:
    """Add up impressions and clicks of every displayed document at every position.

    Parameters
    ----------
    log : ClickLog
        Displayed lists with clicks.

    Examples
    --------
    Document 4 moved from position 1 to 2; document 7 was never shown elsewhere.

    >>> log = ClickLog(
    ...     documents=np.array([[4, 2], [7, 4]]),
    ...     queries=np.zeros(2, np.int64),
    ...     scores=np.full((2, 2), np.nan),
    ...     rounds=np.zeros(2, np.uint8),
    ...     randomized=np.zeros(2, bool),
    ...     contexts=np.zeros(2, np.uint8),
    ...     click_list=np.array([0, 0, 1]),
    ...     mask=np.array([0b00, 0b01, 0b10], np.uint64),
    ...     count=np.array([3, 5, 2]),
    ... )
    >>> table = exposures(log)
    >>> table.impressions.tolist(), table.moved.tolist()
    ([[0.0, 8.0], [8.0, 2.0], [2.0, 0.0]], [False, True, False])
    """
    queries, impressions, clicks = _by_round(log)
    return Exposures(queries, impressions.sum(axis=0), clicks.sum(axis=0))


def exposures_by_round(log: ClickLog) -> list[Exposures]:
    """Add up impressions and clicks as `exposures` does, for each round of the log in turn.

    Parameters
    ----------
    log : ClickLog
        Displayed lists with clicks.

    Returns
    -------
    list of Exposures
        All with the same documents, those that some round displayed.

    Examples
    --------
    >>> log = ClickLog(
    ...     np.array([[4], [4]]), np.array([0, 0]), np.zeros((2, 1)), np.array([0, 1], np.uint8),
    ...     np.zeros(2, bool), np.zeros(2, np.uint8),
    ...     np.array([0, 1]), np.array([1, 0], np.uint64), np.array([3, 5]),
    ... )
    >>> [table.impressions.tolist() for table in exposures_by_round(log)]
    [[[3.0]], [[5.0]]]
    """
    queries, *tables = _by_round(log)
    return [Exposures(queries, n, c) for n, c in zip(*tables, strict=True)]


def _by_round(log: ClickLog) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return queries ``[documents]``, impressions and clicks ``[rounds, documents, positions]``."""
    shown = log.shown
    rows, index = np.unique(log.documents[shown], return_inverse=True)
    queries = np.empty(len(rows), dtype=np.int64)
    queries[index] = np.broadcast_to(log.queries[:, None], shown.shape)[shown]
    rounds, number = np.unique(log.rounds, return_inverse=True)
    round_ = np.broadcast_to(number[:, None], shown.shape)[shown]
    shape = (len(rounds), len(rows), log.positions)
    cell = np.ravel_multi_index((round_, index, np.nonzero(shown)[1]), shape)

    def sums(values: np.ndarray) -> np.ndarray:
        flat = np.bincount(cell, weights=values[shown], minlength=int(np.prod(shape)))
        return flat.reshape(shape)

    return queries, sums(np.broadcast_to(log.sessions[:, None], shown.shape)), sums(log.clicks)


def follows_clicks(log: ClickLog) -> bool:
    """Tell whether orders may depend on earlier clicks: several rounds, not all in random order.

    Parameters
    ----------
    log : ClickLog
        Displayed lists.

    Examples
    --------
    >>> log = ClickLog(
    ...     np.array([[4], [4]]), np.array([0, 0]), np.zeros((2, 1)), np.array([0, 1], np.uint8),
    ...     np.zeros(2, bool), np.zeros(2, np.uint8),
    ...     np.array([0, 1]), np.array([1, 0], np.uint64), np.array([3, 5]),
    ... )
    >>> follows_clicks(log), follows_clicks(log.select(log.rounds == 0))
    (True, False)
    """
    return len(np.unique(log.rounds)) > 1 and not log.randomized.all()


def position_groups(links: np.ndarray, *, strong: bool = False) -> list[list[int]]:
    """Return the connected components of the position graph, as positions from 1.

    Propensities of two positions can be compared without a model of relevance only when a chain
    of documents, each seen at two neighbours of the chain, leads from one to the other (Agarwal
    et al., WSDM 2019; the identifiability graph of Chen et al. 2024, arXiv 2309.15560, with
    documents as the features that positions share).

    Parameters
    ----------
    links : numpy.ndarray
        bool ``[positions, positions]``, true where a link leads from the row to the column.
    strong : bool
        Links must lead both ways.

    Examples
    --------
    >>> position_groups(np.array([[1, 0, 1], [0, 1, 0], [1, 0, 1]], dtype=bool))
    [[1, 3], [2]]
    """
    from scipy.sparse.csgraph import connected_components

    _, label = connected_components(links, connection="strong" if strong else "weak")
    first = np.unique(label, return_index=True)[1]
    return [(np.flatnonzero(label == label[k]) + 1).tolist() for k in np.sort(first)]


def links_of(units: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return which positions k, l have a unit u with units[u, k] > 0 and others[u, l] > 0.

    Examples
    --------
    >>> links_of(np.array([[3.0, 0.0]]), np.array([[9.0, 9.0]])).tolist()
    [[True, True], [False, False]]
    """
    return (units > 0).T.astype(np.float64) @ (others > 0) > 0

"""Lists of documents as padded arrays, and their documents in ranked order."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from ultrbench.errors import UserError

# Padded values a chunk of queries: the working arrays of one chunk stay near 2 MB each.
CHUNK = 1 << 18


def pad(values: np.ndarray, query_ptr: np.ndarray, fill: float | int | bool) -> np.ndarray:
    """Return values of consecutive queries as one padded array.

    Parameters
    ----------
    values : numpy.ndarray
        ``[documents]``, in query order.
    query_ptr : numpy.ndarray
        int ``[queries + 1]``; query ``q`` has ``values[query_ptr[q]:query_ptr[q + 1]]``.
    fill : scalar
        What stands behind the end of a list that is shorter than the longest.

    Returns
    -------
    numpy.ndarray
        ``[queries, longest list]`` of the dtype of `values`.

    Examples
    --------
    >>> pad(np.array([3, 1, 2]), np.array([0, 1, 1, 3]), 0).tolist()
    [[3, 0], [0, 0], [1, 2]]
    """
    values = np.asarray(values)
    real = padding_mask(query_ptr)
    if len(values) != query_ptr[-1]:
        raise UserError(f"{len(values)} values do not fill the {query_ptr[-1]} rows of the lists.")
    padded = np.full(real.shape, fill, dtype=values.dtype)
    padded[real] = values
    return padded


def padding_mask(query_ptr: np.ndarray) -> np.ndarray:
    """Return bool ``[queries, longest list]``, true where `pad` puts a real document.

    Examples
    --------
    >>> padding_mask(np.array([0, 1, 1, 3])).tolist()
    [[True, False], [False, False], [True, True]]
    """
    lengths = np.diff(query_ptr)
    return np.arange(lengths.max(initial=0)) < lengths[:, None]


def rank_documents(
    scores: np.ndarray, mask: np.ndarray | None = None, depth: int | None = None
) -> np.ndarray:
    """Return the columns of the best documents of each list, best first.

    Ties keep document order, as in a stable descending sort; padding comes last.

    Parameters
    ----------
    scores : numpy.ndarray
        float ``[queries, documents]``.
    mask : numpy.ndarray, optional
        bool ``[queries, documents]``, true for a real document; default all.
    depth : int, optional
        Ranks to return; default all.

    Returns
    -------
    numpy.ndarray
        int64 ``[queries, min(depth, documents)]``.

    Examples
    --------
    >>> rank_documents(np.array([[0.5, 0.9, 0.5, 0.9]]), depth=3).tolist()
    [[1, 3, 0]]
    """
    # A real document at -inf must still precede padding, whose key is +inf.
    keys = -np.maximum(np.asarray(scores, dtype=np.float64), np.finfo(np.float64).min)
    if mask is not None:
        keys[~mask] = np.inf
    queries, width = keys.shape
    if depth is None or depth >= width:
        return np.argsort(keys, axis=1, kind="stable")
    if 4 * depth > width:
        return np.argsort(keys, axis=1, kind="stable")[:, :depth]
    # Long lists: pick the `depth` best in document order first, then sort those few.
    last = np.partition(keys, depth - 1, axis=1)[:, depth - 1 : depth]
    better, equal = keys < last, keys == last
    missing = depth - better.sum(axis=1, keepdims=True)
    equal &= np.cumsum(equal, axis=1, dtype=np.int32) <= missing
    best = np.nonzero(better | equal)[1].reshape(queries, depth)
    order = np.argsort(np.take_along_axis(keys, best, axis=1), axis=1, kind="stable")
    return np.take_along_axis(best, order, axis=1)


@dataclass(frozen=True)
class RankedLists:
    """A chunk of lists in ranked order, transposed so that one rank of all lists is contiguous.

    Attributes
    ----------
    grades : numpy.ndarray
        float64 ``[ranks, queries]``, the grade at each rank; 0 behind the end of a list.
    lengths : numpy.ndarray
        int64 ``[queries]``, documents a list.
    judged : numpy.ndarray
        ``[queries, judged documents]``, the grades that the ideal order and the number of
        relevant documents count; 0 pads.
    ymax : int or None
        The top grade.
    depth : int or None
        The deepest cutoff that is asked for.

    The curves below hold sums at every cutoff, so that metrics share them: row k - 1 is for the
    cutoff k, and `at` picks it.
    """

    grades: np.ndarray
    lengths: np.ndarray
    judged: np.ndarray
    ymax: int | None
    depth: int | None

    def at(self, curve: np.ndarray, cutoff: int | None) -> np.ndarray:
        """Return float64 ``[queries]``, a curve at a cutoff; its end where it is shorter."""
        if not len(curve):
            return np.zeros(curve.shape[1])
        return curve[-1 if cutoff is None else min(cutoff, len(curve)) - 1]

    @cached_property
    def hits(self) -> np.ndarray:
        """bool ``[ranks, queries]``, true where the document is relevant (grade above 0)."""
        return self.grades > 0

    @cached_property
    def gains(self) -> np.ndarray:
        """float64 ``[ranks, queries]``, 2^grade - 1."""
        return np.exp2(self.grades) - 1

    @cached_property
    def ideal(self) -> np.ndarray:
        """float64 ``[ranks, queries]``, the judged grades in descending order."""
        ordered = np.sort(self.judged, axis=1)[:, ::-1][:, : self.depth]
        return np.ascontiguousarray(ordered.T, dtype=np.float64)

    @cached_property
    def relevant(self) -> np.ndarray:
        """int64 ``[queries]``, relevant documents among the judged ones."""
        return (self.judged > 0).sum(axis=1)

    @cached_property
    def found(self) -> np.ndarray:
        """float64 curve, relevant documents in the first ranks."""
        return _running_sum(self.hits)

    @cached_property
    def dcg(self) -> np.ndarray:
        """float64 curve, DCG with gain 2^grade - 1."""
        return _discounted(self.gains)

    @cached_property
    def linear_dcg(self) -> np.ndarray:
        """float64 curve, DCG with the grade as gain."""
        return _discounted(self.grades)

    @cached_property
    def ideal_dcg(self) -> np.ndarray:
        """float64 curve, DCG of the ideal order with gain 2^grade - 1."""
        return _discounted(np.exp2(self.ideal) - 1)

    @cached_property
    def linear_ideal_dcg(self) -> np.ndarray:
        """float64 curve, DCG of the ideal order with the grade as gain."""
        return _discounted(self.ideal)

    @cached_property
    def err(self) -> np.ndarray:
        """float64 curve, expected reciprocal rank."""
        if self.ymax is None:
            raise UserError("ERR needs the top grade of the data set: pass ymax.")
        stops = self.gains / 2.0**self.ymax
        curve = np.empty_like(stops)
        total, reading = np.zeros(stops.shape[1]), np.ones(stops.shape[1])
        for rank, stop in enumerate(stops, start=1):
            total += reading * stop / rank
            reading *= 1 - stop
            curve[rank - 1] = total
        return curve


def _discounted(gains: np.ndarray) -> np.ndarray:
    return _running_sum(gains / np.log2(np.arange(2, len(gains) + 2))[:, None])


def _running_sum(terms: np.ndarray) -> np.ndarray:
    # Row by row: the same order of additions for every shape, and faster than cumsum over rows.
    curve = np.array(terms, dtype=np.float64)
    for above, row in pairwise(curve):
        row += above
    return curve


def ranked_chunks(
    scores: np.ndarray,
    grades: np.ndarray,
    mask: np.ndarray | None,
    depth: int | None,
    *,
    ymax: int | None,
    judged: np.ndarray | None,
) -> Iterator[tuple[slice, RankedLists]]:
    """Yield the lists in ranked order, a chunk of queries at a time, after checking them.

    Raises
    ------
    UserError
        For arrays that do not fit each other, a NaN score, a grade below 0 or a grade above
        `ymax`; the message names the query.
    """
    scores, grades = np.asarray(scores), np.asarray(grades)
    mask = None if mask is None else np.asarray(mask, dtype=bool)
    judged = None if judged is None else np.asarray(judged)
    shapes = {scores.shape, grades.shape} | (set() if mask is None else {mask.shape})
    if len(shapes) > 1 or scores.ndim != 2:
        raise UserError(
            "Scores, grades and mask must be arrays [queries, documents] of one shape; given "
            f"{' and '.join(map(str, sorted(shapes)))}."
        )
    if judged is not None and (judged.ndim != 2 or len(judged) != len(scores)):
        raise UserError(
            f"judged must be an array [queries, documents] of {len(scores)} queries; "
            f"given {judged.shape}."
        )
    queries, width = scores.shape
    step = max(1, CHUNK // max(width, 1))
    for start in range(0, queries, step):
        rows = slice(start, min(start + step, queries))
        real = None if mask is None else mask[rows]
        listed = grades[rows] if real is None else np.where(real, grades[rows], 0)
        known = listed if judged is None else judged[rows]
        missing = np.isnan(scores[rows])
        if real is not None:
            missing &= real
        _refuse(missing, start, "the score is NaN; rankers must score every document")
        for given in {id(listed): listed, id(known): known}.values():
            _refuse(~(given >= 0), start, "the grade is negative or NaN; grades start at 0")
            if ymax is not None:
                _refuse(given > ymax, start, f"the grade is above the top grade ymax = {ymax}")
        order = rank_documents(scores[rows], real, depth)
        ranked = np.take_along_axis(listed, order, axis=1).T
        lengths = np.full(len(listed), width) if real is None else real.sum(axis=1)
        yield (
            rows,
            RankedLists(np.ascontiguousarray(ranked, np.float64), lengths, known, ymax, depth),
        )


def _refuse(wrong: np.ndarray, start: int, reason: str) -> None:
    if wrong.any():
        query, document = np.argwhere(wrong)[0]
        raise UserError(f"Query {start + query}, document {document} (from 0): {reason}.")

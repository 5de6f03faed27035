"""Lists of documents as padded arrays, and their documents in ranked order."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from ultrbench.errors import UserError

CHUNK = 1 << 16  # padded values a chunk of queries: its float64 arrays hold half a MB each
NARROW = 32  # documents up to which lists are ranked by comparing all pairs: faster than sorting


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
    keys = -_keys(np.asarray(scores, dtype=np.float64), mask)
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


def _keys(scores: np.ndarray, mask: np.ndarray | None) -> np.ndarray:
    """Return scores by which padding, at -inf, comes behind every real document."""
    if mask is None:
        return scores
    return np.where(mask, np.maximum(scores, np.finfo(np.float64).min), -np.inf)


def _ranked_grades(
    scores: np.ndarray, mask: np.ndarray | None, grades: np.ndarray, depth: int | None
) -> np.ndarray:
    """Return the grades at the first ranks of each list, ``[ranks, queries]``."""
    width = scores.shape[1]
    if width > NARROW:
        order = rank_documents(scores, mask, depth)
        return np.ascontiguousarray(np.take_along_axis(grades, order, axis=1).T)
    # A document's rank is how many precede it; one document of all lists at a time.
    keys, columns = np.ascontiguousarray(_keys(scores, mask).T), np.ascontiguousarray(grades.T)
    ranks = np.empty(keys.shape, np.uint8)
    ranks[:] = np.arange(width)[:, None]
    for i in range(1, width):
        behind = keys[:i] < keys[i]
        ranks[:i] += behind
        ranks[i] -= behind.sum(axis=0, dtype=np.uint8)
    ranked = np.empty((width if depth is None else min(depth, width), len(grades)), grades.dtype)
    for rank, row in enumerate(ranked):
        np.sum((ranks == rank) * columns, axis=0, dtype=row.dtype, out=row)
    return ranked


@dataclass(frozen=True)
class RankedLists:
    """A chunk of lists in ranked order, transposed so that one rank of all lists is contiguous.

    Attributes
    ----------
    grades : numpy.ndarray
        uint8 (whole grades) or float64 ``[ranks, queries]``, the grade at each rank; 0 behind the
        end of a list.
    lengths : numpy.ndarray
        int64 ``[queries]``, documents a list.
    judged : numpy.ndarray
        uint8 or float64 ``[judged documents, queries]``, the grades that the ideal order and the
        number of relevant documents count; 0 pads.
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
        """Return ``[queries]``, a curve at a cutoff; its end where it is shorter."""
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
        return _exponential(self.grades)

    @cached_property
    def ideal(self) -> np.ndarray:
        """``[ranks, queries]``, the judged grades in descending order."""
        top = self.judged.max(initial=0)
        if self.judged.dtype != np.uint8 or top > 8:
            return np.sort(self.judged, axis=0)[::-1][: self.depth]
        # The grade at a rank: how many levels have more documents at or above them than precede.
        ordered = np.zeros_like(self.judged[: self.depth])
        ranks = np.arange(len(ordered))[:, None]
        for level in range(1, top + 1):
            ordered += count(self.judged >= level) > ranks
        return ordered

    @cached_property
    def relevant(self) -> np.ndarray:
        """int64 ``[queries]``, relevant documents among the judged ones."""
        return count(self.judged > 0).astype(np.int64)

    @cached_property
    def found(self) -> np.ndarray:
        """Whole-number curve, relevant documents in the first ranks."""
        return _running_sum(self.hits.astype(_counter(self.hits)))

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
        return _discounted(_exponential(self.ideal))

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


_POWERS = np.exp2(np.arange(256.0)) - 1


def _exponential(grades: np.ndarray) -> np.ndarray:
    return _POWERS[grades] if grades.dtype == np.uint8 else np.exp2(grades) - 1


def _discounted(gains: np.ndarray) -> np.ndarray:
    return _running_sum(gains / np.log2(np.arange(2.0, len(gains) + 2))[:, None])


def _running_sum(curve: np.ndarray) -> np.ndarray:
    # Row by row: the same order of additions for every shape, and faster than cumsum over rows.
    for above, row in pairwise(curve):
        row += above
    return curve


def _counter(flags: np.ndarray) -> type:
    return np.uint8 if len(flags) < 255 else np.int64


def count(flags: np.ndarray) -> np.ndarray:
    """Return how many of a column are true, in the smallest type that holds one more."""
    return flags.sum(axis=0, dtype=_counter(flags))


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
        real = None if mask is None or mask[rows].all() else mask[rows]
        scored = np.asarray(scores[rows], np.float64)
        if np.isnan(scored.min(initial=0)):
            missing = np.isnan(scored) if real is None else np.isnan(scored) & real
            _refuse(missing, start, "the score is NaN; rankers must score every document")
        listed = grades[rows] if real is None else np.where(real, grades[rows], 0)
        listed = _checked(listed, start, ymax)
        known = listed if judged is None else _checked(judged[rows], start, ymax)
        ranked = _ranked_grades(scored, real, listed, depth)
        if real is None:
            lengths = np.full(len(listed), width)
        else:
            lengths = count(np.ascontiguousarray(real.T)).astype(np.int64)
        yield rows, RankedLists(ranked, lengths, np.ascontiguousarray(known.T), ymax, depth)


def _checked(grades: np.ndarray, start: int, ymax: int | None) -> np.ndarray:
    """Return grades as uint8 where they are whole and fit, else as float64."""
    low, high = grades.min(initial=0), grades.max(initial=0)
    if not (low >= 0 and high < np.inf):
        wrong = ~((grades >= 0) & (grades < np.inf))
        _refuse(wrong, start, "the grade is negative, infinite or NaN; grades start at 0")
    if ymax is not None and high > ymax:
        _refuse(grades > ymax, start, f"the grade is above the top grade ymax = {ymax}")
    whole = grades.dtype.kind in "biu" and high <= 255
    return grades.astype(np.uint8 if whole else np.float64, copy=False)


def _refuse(wrong: np.ndarray, start: int, reason: str) -> None:
    if wrong.any():
        query, document = np.argwhere(wrong)[0]
        raise UserError(f"Query {start + query}, document {document} (from 0): {reason}.")

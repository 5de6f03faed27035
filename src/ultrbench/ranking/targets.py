"""Target weights: what a ranker learns from, per document."""

from dataclasses import dataclass

import numpy as np

from ultrbench.errors import UserError
from ultrbench.simulation.log import ClickLog


@dataclass(frozen=True)
class TrainingLists:
    """Documents to train on, in canonical order, with their target weights.

    Attributes
    ----------
    rows : numpy.ndarray
        int64 ``[documents]``, rows of the split, ascending.
    query_ptr : numpy.ndarray
        int64 ``[queries + 1]``, where each query's documents start in `rows`.
    weights : numpy.ndarray
        float64 ``[documents]``, target weights, 0 or more.
    """

    rows: np.ndarray
    query_ptr: np.ndarray
    weights: np.ndarray


def _documents(log: ClickLog) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return displayed rows, their query pointer, and the index among them of each shown cell."""
    shown = log.shown
    rows, index = np.unique(log.documents[shown], return_inverse=True)
    queries = np.empty(len(rows), dtype=np.int64)
    queries[index] = np.broadcast_to(log.queries[:, None], shown.shape)[shown]
    starts = np.flatnonzero(np.diff(queries, prepend=-1))
    return rows, np.append(starts, len(rows)), index


def sum_by_document(log: ClickLog, cells: np.ndarray) -> TrainingLists:
    """Add up values of displayed cells by document.

    Parameters
    ----------
    log : ClickLog
        Displayed lists.
    cells : numpy.ndarray
        float64 ``[lists, positions]``.

    Returns
    -------
    TrainingLists
        Every displayed document once, in canonical order, clicked or not.

    Examples
    --------
    >>> log = ClickLog(
    ...     np.array([[4, 2], [2, 4]]), np.array([0, 0]), np.zeros((2, 2)), np.zeros(2, np.uint8),
    ...     np.zeros(2, bool), np.zeros(2, np.uint8),
    ...     np.array([0, 1]), np.array([0b01, 0b11], np.uint64), np.array([6, 3]),
    ... )
    >>> lists = sum_by_document(log, log.clicks)
    >>> lists.rows.tolist(), lists.query_ptr.tolist(), lists.weights.tolist()
    ([2, 4], [0, 2], [3.0, 9.0])
    """
    rows, query_ptr, index = _documents(log)
    weights = np.bincount(index, weights=cells[log.shown], minlength=len(rows))
    return TrainingLists(rows, query_ptr, weights)


def _sum_over_positions(log: ClickLog, counts: np.ndarray, factor: np.ndarray) -> TrainingLists:
    """Return sum_k factor_k count_ik by document.

    Whole numbers are added first, which is exact, so that the order of lists does not matter.
    """
    if len(factor) < log.positions:
        raise UserError(
            f"the log shows {log.positions} positions, and propensities are known for the first"
            f" {len(factor)} only; estimate them from lists as long as those they weight"
        )
    rows, query_ptr, index = _documents(log)
    cell = index * log.positions + np.nonzero(log.shown)[1]
    sums = np.bincount(cell, counts[log.shown], minlength=len(rows) * log.positions)
    table = sums.reshape(len(rows), log.positions) * factor[: log.positions]
    return TrainingLists(rows, query_ptr, table.sum(axis=1))


def ipw_weights(log: ClickLog, propensity: np.ndarray) -> TrainingLists:
    """Inverse propensity weighted clicks: w_i = sum_k c_ik / theta_k.

    Joachims et al. (WSDM 2017), equation 4, summed over the sessions of the log.

    Parameters
    ----------
    log : ClickLog
        Displayed lists with clicks.
    propensity : numpy.ndarray
        float64 ``[positions]``, positive, on any scale.

    Returns
    -------
    TrainingLists
        Every displayed document, the same to the last bit in whatever order the log has its lists.

    Raises
    ------
    UserError
        When the log shows more positions than there are propensities.

    Examples
    --------
    >>> log = ClickLog(
    ...     np.array([[4, 2], [2, 4]]), np.array([0, 0]), np.zeros((2, 2)), np.zeros(2, np.uint8),
    ...     np.zeros(2, bool), np.zeros(2, np.uint8),
    ...     np.array([0, 1]), np.array([0b01, 0b11], np.uint64), np.array([6, 3]),
    ... )
    >>> ipw_weights(log, np.array([1.0, 0.5])).weights.tolist()  # 3, and 6 + 3/0.5
    [3.0, 12.0]
    """
    return _sum_over_positions(log, log.clicks, 1 / propensity)


def grade_gains(log: ClickLog, grades: np.ndarray) -> TrainingLists:
    """True grades of the displayed documents (skyline): w_i = 2^y_i - 1.

    Parameters
    ----------
    log : ClickLog
        Displayed lists.
    grades : numpy.ndarray
        uint8 ``[documents of the split]``.

    Returns
    -------
    TrainingLists
        Every displayed document.

    Examples
    --------
    >>> log = ClickLog(
    ...     np.array([[2, 0]]), np.array([0]), np.zeros((1, 2)), np.zeros(1, np.uint8),
    ...     np.zeros(1, bool), np.zeros(1, np.uint8),
    ...     np.array([0]), np.array([0], np.uint64), np.array([1]),
    ... )
    >>> grade_gains(log, np.array([1, 4, 2])).weights.tolist()
    [1.0, 3.0]
    """
    rows, query_ptr, _ = _documents(log)
    return TrainingLists(rows, query_ptr, 2.0 ** grades[rows] - 1)


def expected_clicks(
    log: ClickLog, attractions: np.ndarray, propensity: np.ndarray | None
) -> TrainingLists:
    """Clicks of infinitely many sessions: bias without variance, and no simulation.

    Parameters
    ----------
    log : ClickLog
        Displayed lists, each of which counts once, however many sessions it had.
    attractions : numpy.ndarray
        float64 ``[documents of the split]``, gamma(y).
    propensity : numpy.ndarray or None
        float64 ``[positions]``: w_i = theta_k gamma(y_i), naive clicks at infinity. None:
        w_i = gamma(y_i), perfectly corrected clicks at infinity.

    Returns
    -------
    TrainingLists
        Every displayed document, its weight added up over the lists that show it.

    Examples
    --------
    >>> log = ClickLog(
    ...     np.array([[2, 0]]), np.array([0]), np.zeros((1, 2)), np.zeros(1, np.uint8),
    ...     np.zeros(1, bool), np.zeros(1, np.uint8),
    ...     np.array([0]), np.array([0], np.uint64), np.array([1]),
    ... )
    >>> gamma = np.array([0.4, 0.0, 1.0])
    >>> expected_clicks(log, gamma, np.array([0.8, 0.5])).weights.tolist()
    [0.2, 0.8]
    """
    factor = np.ones(log.positions) if propensity is None else propensity
    lists = _sum_over_positions(log, np.ones(log.documents.shape), factor)
    return TrainingLists(lists.rows, lists.query_ptr, lists.weights * attractions[lists.rows])


def expected_ipw_weights(
    log: ClickLog, attractions: np.ndarray, examination: np.ndarray, propensity: np.ndarray
) -> TrainingLists:
    """Inverse propensity weighted clicks of infinitely many sessions: what bias in theta leaves.

    w_i = gamma(y_i) sum_l s_l theta_k / propensity_k, over the lists l that show document i at
    their position k, with s_l the share of list l in the sessions of its query.

    Parameters
    ----------
    log : ClickLog
        Displayed lists; each query counts once, however many sessions it had, and its lists count
        alike where it had none.
    attractions : numpy.ndarray
        float64 ``[documents of the split]``, gamma(y).
    examination, propensity : numpy.ndarray
        float64 ``[positions]``, the true theta and an estimate of it, on any scale. An estimate
        of 1 gives naive clicks at infinity, the truth perfectly corrected ones.

    Returns
    -------
    TrainingLists
        Every displayed document.

    Examples
    --------
    >>> log = ClickLog(
    ...     np.array([[2, 0]]), np.array([0]), np.zeros((1, 2)), np.zeros(1, np.uint8),
    ...     np.zeros(1, bool), np.zeros(1, np.uint8),
    ...     np.array([0]), np.array([0], np.uint64), np.array([9]),
    ... )
    >>> gamma, theta = np.array([0.4, 0.0, 1.0]), np.array([0.8, 0.5])
    >>> expected_ipw_weights(log, gamma, theta, np.array([1.0, 0.25])).weights.tolist()
    [0.8, 0.8]
    """
    total = np.bincount(log.queries, weights=log.sessions)[log.queries]
    lists = np.bincount(log.queries)[log.queries]
    share = np.where(total > 0, log.sessions / np.maximum(total, 1), 1 / lists)
    counts = np.broadcast_to(share[:, None], log.documents.shape)
    shown = min(len(examination), len(propensity))
    summed = _sum_over_positions(log, counts, examination[:shown] / propensity[:shown])
    return TrainingLists(summed.rows, summed.query_ptr, summed.weights * attractions[summed.rows])

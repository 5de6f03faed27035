"""Target weights: what a ranker learns from, per document."""

from dataclasses import dataclass

import numpy as np

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


def _lists(rows: np.ndarray, queries: np.ndarray, weights: np.ndarray) -> TrainingLists:
    starts = np.flatnonzero(np.diff(queries, prepend=-1))
    return TrainingLists(rows, np.append(starts, len(rows)), weights)


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
    """
    shown = log.shown
    rows, index = np.unique(log.documents[shown], return_inverse=True)
    queries = np.empty(len(rows), dtype=np.int64)
    queries[index] = np.broadcast_to(log.queries[:, None], shown.shape)[shown]
    weights = np.bincount(index, weights=cells[shown], minlength=len(rows))
    return _lists(rows, queries, weights)


def ipw_weights(log: ClickLog, propensity: np.ndarray) -> TrainingLists:
    """Inverse propensity weighted clicks: w_i = sum_k c_ik / theta_k.

    Joachims et al. (WSDM 2017), equation 4, summed over the sessions of the log.

    Parameters
    ----------
    log : ClickLog
        Displayed lists with clicks.
    propensity : numpy.ndarray
        float64 ``[positions]``, positive, on any scale.
    """
    return sum_by_document(log, log.clicks / propensity[: log.positions])


def grade_gains(log: ClickLog, grades: np.ndarray) -> TrainingLists:
    """True grades of the displayed documents (skyline): w_i = 2^y_i - 1."""
    lists = sum_by_document(log, np.zeros(log.documents.shape))
    return TrainingLists(lists.rows, lists.query_ptr, 2.0 ** grades[lists.rows] - 1)


def expected_clicks(
    log: ClickLog, attractions: np.ndarray, propensity: np.ndarray | None
) -> TrainingLists:
    """Clicks of infinitely many sessions: bias without variance, and no simulation.

    Parameters
    ----------
    log : ClickLog
        Displayed lists.
    attractions : numpy.ndarray
        float64 ``[documents of the split]``, gamma(y).
    propensity : numpy.ndarray or None
        float64 ``[positions]``: w_i = theta_k gamma(y_i), naive clicks at infinity. None:
        w_i = gamma(y_i), perfectly corrected clicks at infinity.
    """
    factor = 1.0 if propensity is None else propensity[: log.positions]
    cells = np.where(log.shown, attractions[log.documents] * factor, 0.0)
    return sum_by_document(log, cells)

"""Policy-aware weights: a document's chance of examination over all displays of its query."""

import numpy as np

from ultrbench.errors import UserError
from ultrbench.ranking.targets import TrainingLists, sum_by_document
from ultrbench.simulation.log import ClickLog


def policy_aware_weights(log: ClickLog, propensity: np.ndarray) -> TrainingLists:
    """Clicks over the examination expected of the logging policy: w_i = c_i / rho_i.

    rho_i = sum_y pi(y | q) theta_{rank of i in y}, where a document beyond the cut-off of a list
    is not examined. Oosterhuis and de Rijke (SIGIR 2020): with a top-k cut-off, IPW by the
    displayed position cannot reach documents that a list leaves out; the average over a
    stochastic policy's lists does, wherever rho_i > 0, and has less variance.

    For boosted trees the clicks are summed over sessions first. The policy pi is the share of
    the query's sessions that each logged list had, so no model of it is needed; with few lists a
    query that is an estimate of the policy, and exact for the log as it is.

    Parameters
    ----------
    log : ClickLog
        Displayed lists with clicks, several a query.
    propensity : numpy.ndarray
        float64 ``[positions]``, positive, on any scale.

    Returns
    -------
    TrainingLists
        Target weights by document.

    Raises
    ------
    UserError
        When no query was shown two different lists: the policy is deterministic, and the weights
        would be those of plain IPW.

    Examples
    --------
    Two lists, shown 3 and 1 times: document 2 is examined in (3 * 1 + 1 * 0.5) / 4 of them.

    >>> log = ClickLog(
    ...     np.array([[2, 4], [4, 2]]), np.array([0, 0]), np.full((2, 2), np.nan),
    ...     np.zeros(2, np.uint8), np.zeros(2, bool), np.zeros(2, np.uint8),
    ...     np.array([0, 1]), np.array([1, 2], np.uint64), np.array([3, 1]),
    ... )
    >>> policy_aware_weights(log, np.array([1.0, 0.5])).weights.tolist() == [4 / 0.875, 0.0]
    True
    """
    log = log.select(log.sessions > 0)
    distinct = np.unique(np.column_stack([log.queries, log.documents]), axis=0)
    if len(distinct) == len(np.unique(log.queries)):
        raise UserError(
            "weights policy_aware: every query of the log was shown one list only, so its policy is"
            " deterministic and a document's examination does not vary; log several lists a query"
            " (`log: randomized`, or more rounds), or use weights ipw"
        )
    clicks = sum_by_document(log, log.clicks.astype(np.float64))
    examined = np.where(log.shown, log.sessions[:, None] * propensity[: log.positions], 0.0)
    shown = np.bincount(log.queries, weights=log.sessions)
    # Documents are in canonical order, so the queries of the lists are too.
    sessions = np.repeat(shown[np.unique(log.queries)], np.diff(clicks.query_ptr))
    rho = sum_by_document(log, examined).weights / sessions
    return TrainingLists(clicks.rows, clicks.query_ptr, clicks.weights / rho)

"""Cascade clicks: weights by the clicks above."""

import numpy as np

from ultrbench.errors import UserError
from ultrbench.ranking.targets import TrainingLists, sum_by_document
from ultrbench.simulation.log import ClickLog


def dcm_weights(log: ClickLog, continuation: np.ndarray) -> TrainingLists:
    """IPS-DCM: w_i = sum over sessions of c_ik / prod_{j < k} lambda_j^c_j.

    In the dependent click model a user reads from the top, and after a click at j goes on with
    probability lambda_j; after no click, always. Vardasbi et al. (SIGIR 2020, "Cascade
    model-based propensity estimation"): given the clicks above, position k is
    examined with prod_{j < k} (1 - c_j (1 - lambda_j)). A click proves that everything above
    was examined, so the expectation of the weight is gamma_i exactly.

    For boosted trees the weights are summed over the sessions; they depend on the whole mask of a
    session and not on sums of clicks by position.

    Parameters
    ----------
    log : ClickLog
        Displayed lists with clicks.
    continuation : numpy.ndarray
        float64 ``[positions]``, lambda_k; the last one is not used.

    Returns
    -------
    TrainingLists
        Target weights by document.

    Raises
    ------
    UserError
        When there are clicks below a click after which nobody goes on.

    Examples
    --------
    One session with clicks at 1 and 2: the second counts double where half the users go on.

    >>> log = ClickLog(
    ...     np.array([[2, 4]]), np.array([0]), np.array([[0.9, 0.1]]), np.zeros(1, np.uint8),
    ...     np.zeros(1, bool), np.zeros(1, np.uint8),
    ...     np.array([0]), np.array([3], np.uint64), np.array([1]),
    ... )
    >>> dcm_weights(log, np.array([0.5, 0.5])).weights.tolist()
    [1.0, 2.0]
    """
    cells = np.zeros(log.documents.shape)
    examined = np.ones(len(log.mask))
    for k in range(log.positions):
        hit = (log.mask >> np.uint64(k)) & np.uint64(1) == 1
        if (examined[hit] == 0).any():
            above = int(np.argmin(continuation[:k])) + 1
            raise UserError(
                f"weights dcm: there are clicks at position {k + 1} below a click at position"
                f" {above}, after which nobody goes on by the estimate (continuation 0); estimate"
                " it on this log"
            )
        cells[:, k] = np.bincount(
            log.click_list[hit], weights=log.count[hit] / examined[hit], minlength=len(cells)
        )
        examined[hit] *= continuation[k]
    return sum_by_document(log, cells)

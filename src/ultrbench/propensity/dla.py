"""Dual learning algorithm, with out-of-fold relevance."""

from dataclasses import replace
from typing import Any

import numpy as np

from ultrbench.propensity.estimate import FROM_FEATURES, Estimate, assuming
from ultrbench.propensity.fixed_point import iterate
from ultrbench.ranking.crossfit import CrossFit
from ultrbench.ranking.objectives import list_softmax
from ultrbench.ranking.targets import ipw_weights
from ultrbench.simulation.log import ClickLog

RATIO_LIMIT = 1e3
SMALLEST = 1e-300


def examination_update(log: ClickLog, relevance: np.ndarray) -> np.ndarray:
    """Return theta_k / theta_1 that fits the clicks, given relevance.

    It minimises -sum over clicks of (r_1 / r_k) log softmax(g)_k, with r_1 the relevance of the
    document at the first position of the same list, the ratio clipped at 1000, the softmax over the
    positions of the list, and theta = exp(g). Ai et al. (SIGIR 2018), equations 6 to 8.

    With t_k the weighted clicks at k, theta is t, scaled, where all lists have one length. Else
    t_k = theta_k sum_n T_n / S_n over the lengths n >= k, with T_n the weighted clicks of the lists
    of length n and S_n = theta_1 + ... + theta_n: solved from the last position up.

    Parameters
    ----------
    log : ClickLog
        Displayed lists with clicks.
    relevance : numpy.ndarray
        float64 ``[lists, positions]``, 0 or more, also where padded; any scale a list.

    Returns
    -------
    numpy.ndarray
        float64 ``[positions]``; 0 or NaN where the clicks determine none.

    Examples
    --------
    Equal relevance: clicks as they are, among lists that reach a position.

    >>> log = ClickLog(
    ...     np.array([[1, 0], [2, -1]]), np.array([0, 1]), np.zeros((2, 2)), np.zeros(2, np.uint8),
    ...     np.zeros(2, bool), np.zeros(2, np.uint8),
    ...     np.array([0, 0, 1]), np.array([1, 2, 1], np.uint64), np.array([8, 2, 90]),
    ... )
    >>> examination_update(log, np.ones((2, 2))).round(9).tolist()
    [1.0, 0.25]
    """
    relevance = np.maximum(relevance, SMALLEST)  # a softmax may underflow
    ratio = np.minimum(relevance[:, :1] / relevance, RATIO_LIMIT)
    targets = log.clicks * ratio
    by_position = targets.sum(axis=0)
    by_length = np.bincount(log.shown.sum(axis=1), targets.sum(axis=1), log.positions + 1)
    theta = np.full(log.positions, np.nan)
    # S_n of the longest lists is 1 until all is divided by theta_1.
    inside, pull = 1.0, 0.0
    for k in range(log.positions - 1, -1, -1):
        pull += by_length[k + 1] / inside
        if pull > 0:
            theta[k] = by_position[k] / pull
            inside -= theta[k]
        if inside <= 0:
            break
    with np.errstate(divide="ignore", invalid="ignore"):
        return theta / theta[0]


def estimate(
    log: ClickLog,
    *,
    features: np.ndarray,
    seed: int,
    folds: int,
    trees: int,
    leaves: int,
    learning_rate: float,
    tolerance: float,
    max_iterations: int,
    **_: Any,
) -> Estimate:
    """Estimate propensities by dual learning (DLA).

    A ranker weights clicks by 1/theta, and theta weights clicks by the ranker's relevance, in
    turns until theta settles (Ai et al., SIGIR 2018). Adapted for boosted trees, which memorise:
    relevance is predicted **out of fold**, by rankers trained on the other queries, with the
    number of trees that explains the held-out clicks best; updating theta inside one boosting run
    has no fixed point, its answer depends on where boosting stops.

    Parameters
    ----------
    log : ClickLog
        Displayed lists with clicks.
    features : numpy.ndarray
        float32 ``[documents, features]`` of the training split.
    seed : int
        Replicate seed.
    folds : int
        Parts of the queries; relevance in each comes from a ranker of the others.
    trees, leaves, learning_rate
        Size of the rankers; `trees` is the most that are tried.
    tolerance : float
        Settled when no log(theta_k / theta_1) moves by more.
    max_iterations : int
        Where it ends with ``converged`` false.

    Returns
    -------
    Estimate
        Relative propensities with their trace.

    Raises
    ------
    UserError
        When a position has no clicks, or there are fewer queries than folds.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> documents = np.arange(400).reshape(200, 2)
    >>> log = ClickLog(
    ...     documents, np.arange(200), np.zeros((200, 2)), np.zeros(200, np.uint8),
    ...     np.zeros(200, bool), np.zeros(200, np.uint8), np.repeat(np.arange(200), 2),
    ...     np.tile(np.array([1, 2], np.uint64), 200), np.tile([40, 20], 200),
    ... )
    >>> estimate(
    ...     log, features=rng.random((400, 1)).astype(np.float32), seed=1, folds=2, trees=2,
    ...     leaves=2, learning_rate=0.01, tolerance=0.01, max_iterations=20,
    ... ).relative.round(1).tolist()
    [1.0, 0.5]
    """
    rankers = CrossFit(
        log, features, folds=folds, trees=trees, leaves=leaves, learning_rate=learning_rate,
        seed=seed,
    )  # fmt: skip

    def update(relative: np.ndarray) -> np.ndarray:
        scores = rankers.scores(ipw_weights(log, relative).weights)
        relevance = list_softmax(scores, rankers.query_ptr)
        return examination_update(log, rankers.by_cell(relevance))

    settled = iterate(update, log.positions, tolerance=tolerance, max_iterations=max_iterations)
    return replace(settled, **assuming(log, FROM_FEATURES))

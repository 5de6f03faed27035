"""Dual learning algorithm, with out-of-fold relevance."""

from typing import Any

import numpy as np

from ultrbench.propensity.estimate import Estimate
from ultrbench.propensity.fixed_point import iterate
from ultrbench.ranking.crossfit import CrossFit
from ultrbench.ranking.objectives import list_softmax
from ultrbench.ranking.targets import ipw_weights
from ultrbench.simulation.log import ClickLog

RATIO_LIMIT = 1e3


def examination_update(log: ClickLog, relevance: np.ndarray) -> np.ndarray:
    """Return theta_k / theta_1 that fits the clicks, given relevance.

    t_k = sum over clicks at k of r_1 / r_k, with r_1 the relevance of the document at the first
    position of the same list, clipped at 1000; the softmax over positions that fits the targets
    t is t itself, scaled. Ai et al. (SIGIR 2018), equations 6 to 8.

    Parameters
    ----------
    log : ClickLog
        Displayed lists with clicks.
    relevance : numpy.ndarray
        float64 ``[lists, positions]``, positive; any scale a list.

    Returns
    -------
    numpy.ndarray
        float64 ``[positions]``.
    """
    ratio = np.minimum(relevance[:, :1] / relevance, RATIO_LIMIT)
    targets = (log.clicks * np.where(log.shown, ratio, 0.0)).sum(axis=0)
    return targets / targets[0]


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
    """
    rankers = CrossFit(
        log, features, folds=folds, trees=trees, leaves=leaves, learning_rate=learning_rate,
        seed=seed,
    )  # fmt: skip

    def update(relative: np.ndarray) -> np.ndarray:
        scores = rankers.scores(ipw_weights(log, relative).weights)
        relevance = list_softmax(scores, rankers.query_ptr)
        return examination_update(log, rankers.by_cell(relevance))

    return iterate(update, log.positions, tolerance=tolerance, max_iterations=max_iterations)

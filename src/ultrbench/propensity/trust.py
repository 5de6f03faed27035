"""Trust bias: how clicks depend on relevance at each position, from randomised lists."""

from typing import Any

import numpy as np

from ultrbench.errors import UserError
from ultrbench.propensity.estimate import Estimate, up_to_scale
from ultrbench.ranking.crossfit import CrossFit
from ultrbench.ranking.objectives import list_softmax
from ultrbench.ranking.targets import sum_by_document
from ultrbench.simulation.log import ClickLog

ROUNDING = 1e-12


def affine_parameters(log: ClickLog, signal: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return alpha and beta of P(click at k) = alpha_k gamma + beta_k, from randomised lists.

    Where the order is random, relevance is alike at all positions, and so is its covariance with
    any signal that does not know the order. Hence the regression of clicks at k on the signal has
    slope proportional to alpha_k and, at the signal's mean, the value alpha_k E[gamma] + beta_k.
    gamma has neither scale nor origin of its own, and neither changes how the weights rank:
    alpha_1 is set to 1, and the mean of gamma to the largest at which no beta_k is negative.

    Parameters
    ----------
    log : ClickLog
        Lists in random order, with sessions.
    signal : numpy.ndarray
        float64 ``[lists, positions]``, what is known of the documents' relevance; anything where
        padded.

    Returns
    -------
    alpha, beta : numpy.ndarray
        float64 ``[positions]``. An alpha can be 0 or negative by chance.

    Raises
    ------
    UserError
        When clicks at position 1 do not rise with the signal, or the signal is the same in all
        lists at some position.

    Examples
    --------
    Two documents in both orders, with relevance .2 and .6; alpha .5 and .25, beta .1 and 0.

    >>> log = ClickLog(
    ...     np.array([[0, 1], [1, 0]]), np.array([0, 0]), np.zeros((2, 2)), np.zeros(2, np.uint8),
    ...     np.ones(2, bool), np.zeros(2, np.uint8), np.array([0, 0, 0, 1, 1, 1]),
    ...     np.array([1, 2, 0, 1, 2, 0], np.uint64), np.array([20, 15, 65, 40, 5, 55]),
    ... )
    >>> [a.round(9).tolist() for a in affine_parameters(log, np.array([[0.2, 0.6], [0.6, 0.2]]))]
    [[1.0, 0.5], [0.1, 0.0]]
    """
    n = log.shown * log.sessions[:, None].astype(np.float64)
    total = n.sum(axis=0)
    known = np.where(log.shown, signal, 0.0)
    x = known - (n * known).sum(axis=0) / np.maximum(total, 1)
    spread = (n * x**2).sum(axis=0)
    # Equal numbers differ from their mean by rounding.
    alike = spread <= ROUNDING**2 * (n * known**2).sum(axis=0)
    if still := (np.flatnonzero(alike) + 1).tolist():
        raise UserError(
            "estimator trust: the randomised lists show no documents of different predicted"
            f" relevance at position {still[0]}, so that nothing is known of trust there; log more"
            " sessions, or a larger randomized_share"
        )
    slope = (log.clicks * x).sum(axis=0) / spread
    if not slope[0] > 0:
        raise UserError(
            "estimator trust: on the randomised lists clicks at position 1 do not rise with the"
            " predicted relevance, so there is nothing to correct by; log more sessions, or a"
            " larger randomized_share"
        )
    alpha, rate = slope / slope[0], log.clicks.sum(axis=0) / total
    usable = alpha > 0
    return alpha, np.maximum(rate - alpha * (rate[usable] / alpha[usable]).min(), 0.0)


def estimate(
    log: ClickLog,
    *,
    features: np.ndarray,
    seed: int,
    folds: int,
    trees: int,
    leaves: int,
    learning_rate: float,
    **_: Any,
) -> Estimate:
    """Estimate the affine click model of trust bias from lists in random order.

    P(click at k) = theta_k (eps+_k gamma + eps-_k (1 - gamma)) = alpha_k gamma + beta_k (Agarwal et
    al., WWW 2019; Vardasbi et al., CIKM 2020), for `ultrbench.ranking.affine`. Both papers fit it
    by EM with a regression of relevance on features. On lists in a fixed order that regression
    cannot tell relevance from position; on randomised lists no EM is needed, see
    `affine_parameters`. Boosted trees supply the signal, out of fold: a ranker of the whole log's
    clicks, whose own bias does no harm, since it cannot know the random order. A better signal
    only makes the estimate less noisy.

    Examination and trust are not told apart, so there is no propensity: it is NaN, and the columns
    ``alpha`` and ``beta`` hold what ``weights: affine`` needs.

    Parameters
    ----------
    log : ClickLog
        Displayed lists with all their sessions, some lists in random order.
    features : numpy.ndarray
        float32 ``[documents, features]`` of the training split.
    seed, folds, trees, leaves, learning_rate
        As in `ultrbench.propensity.dla.estimate`.

    Raises
    ------
    UserError
        When the log has no randomised list with sessions, or clicks on them say nothing.
    """
    randomized = log.randomized & (log.sessions > 0)
    if not randomized.any():
        raise UserError(
            "estimator trust: no session of the log saw a list in random order; give its"
            " method `log: randomized` and enough sessions (randomized_share), or mark such lists"
            " in the column `randomized` of a log of one's own"
        )
    rankers = CrossFit(
        log, features, folds=folds, trees=trees, leaves=leaves, learning_rate=learning_rate,
        seed=seed,
    )  # fmt: skip
    scores = rankers.scores(sum_by_document(log, log.clicks).weights)
    signal = rankers.by_cell(list_softmax(scores, rankers.query_ptr))
    alpha, beta = affine_parameters(log.select(randomized), signal[randomized])
    unknown = np.full(log.positions, np.nan)
    return up_to_scale(unknown, columns={"alpha": alpha, "beta": beta})

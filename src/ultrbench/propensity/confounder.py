"""The confounder: by which scores a log's lists were ordered, logged or imitated."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ultrbench.ranking.crossfit import CrossFit
from ultrbench.ranking.targets import sum_by_document
from ultrbench.simulation.log import ClickLog


@dataclass(frozen=True)
class PolicyScores:
    """Scores that ordered the lists of a log.

    Attributes
    ----------
    values : numpy.ndarray
        float64 ``[lists, positions]``, with mean 0 in a round; 0 in lists whose order was random,
        and where nothing is shown.
    policy : numpy.ndarray
        int64 ``[lists]``, lists with equal numbers were ordered by one policy: the round, or -1
        for lists whose order was random.
    logged : bool
        False when the scores of some round are imitated.
    """

    values: np.ndarray
    policy: np.ndarray
    logged: bool

    def standardised(self) -> np.ndarray:
        """Return the scores with standard deviation 1 in each round (0 where it is constant)."""
        values = self.values.copy()
        for policy in np.unique(self.policy[self.policy >= 0]):
            lists = self.policy == policy
            spread = values[lists].std()
            values[lists] /= spread if spread > 0 else 1.0
        return values


def imitated_scores(
    log: ClickLog, features: np.ndarray, *, folds: int, seed: int, **size: Any
) -> np.ndarray:
    """Predict the order of the lists from the features.

    Softmax rankers learn the targets 1/k at position k, so that a score is about -log k plus a
    constant. Predictions are out of fold: boosted trees would else learn the order by heart, and
    the scores would be the positions themselves.

    Parameters
    ----------
    log : ClickLog
        Displayed lists of one policy.
    features : numpy.ndarray
        float32 ``[documents, features]``.
    folds, seed, **size
        As in `ultrbench.ranking.crossfit.CrossFit`.

    Returns
    -------
    numpy.ndarray
        float64 ``[lists, positions]``.
    """
    rankers = CrossFit(log, features, folds=folds, seed=seed, **size)
    discount = np.broadcast_to(1 / np.arange(1, log.positions + 1), log.documents.shape)
    return rankers.by_cell(rankers.scores(sum_by_document(log, discount).weights))


def policy_scores(
    log: ClickLog, features: np.ndarray, *, targets: str = "scores", **imitation: Any
) -> PolicyScores:
    """Return the scores that ordered the lists, round by round.

    Parameters
    ----------
    log : ClickLog
        Displayed lists.
    features : numpy.ndarray
        float32 ``[documents, features]``.
    targets : {"scores", "positions"}
        ``scores`` takes the logged scores and imitates the order of the rounds that logged none;
        ``positions`` imitates the order of every round.
    **imitation
        Parameters of `imitated_scores`.
    """
    policy = np.where(log.randomized, -1, log.rounds.astype(np.int64))
    values = np.zeros(log.documents.shape)
    shown = log.shown
    logged = True
    for number in np.unique(policy[policy >= 0]):
        lists = policy == number
        inside = shown[lists]
        scores = log.scores[lists]
        if targets == "positions" or not np.isfinite(scores[inside]).all():
            logged = False
            scores = imitated_scores(log.select(lists), features, **imitation)
        values[lists] = np.where(inside, scores - scores[inside].mean(), 0.0)
    return PolicyScores(values, policy, logged)

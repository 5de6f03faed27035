"""Regression-based EM, with cross-fitted boosted trees and the flat direction of EM removed."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ultrbench.errors import UserError
from ultrbench.propensity.estimate import FROM_FEATURES, Estimate, assuming
from ultrbench.propensity.exposures import exposures
from ultrbench.propensity.fixed_point import iterate
from ultrbench.ranking.crossfit import CrossFit
from ultrbench.ranking.objectives import HESSIAN_FLOOR, Objective
from ultrbench.simulation.log import ClickLog

# Relevance stays this far from 0 and 1, so that no logarithm is infinite.
MARGIN = 1e-9


@dataclass(frozen=True)
class Cells:
    """Documents at positions where they were seen.

    Attributes
    ----------
    document, position : numpy.ndarray
        int64 ``[cells]``, index from 0.
    impressions, clicks : numpy.ndarray
        float64 ``[cells]``.
    """

    document: np.ndarray
    position: np.ndarray
    impressions: np.ndarray
    clicks: np.ndarray

    def of(self, documents: np.ndarray) -> "Cells":
        """Return the cells of the documents where the bool array is true, counted anew."""
        kept = documents[self.document]
        index = np.cumsum(documents) - 1
        return Cells(
            index[self.document[kept]],
            self.position[kept],
            self.impressions[kept],
            self.clicks[kept],
        )


def relevance_of(scores: np.ndarray) -> np.ndarray:
    """Return gamma = P(click | examined), the logistic function of the scores.

    Examples
    --------
    >>> relevance_of(np.array([0.0])).tolist()
    [0.5]
    """
    return np.clip(1 / (1 + np.exp(-np.clip(scores, -30, 30))), MARGIN, 1 - MARGIN)


def negative_log_likelihood(cells: Cells, theta: np.ndarray, gamma: np.ndarray) -> float:
    """Return minus the log-likelihood, c log(theta gamma) + (n - c) log(1 - theta gamma)."""
    p = theta[cells.position] * gamma[cells.document]
    skips = cells.impressions - cells.clicks
    return -float(cells.clicks @ np.log(p) + skips @ np.log1p(-p))


def relevance_objective(
    cells: Cells, documents: int, theta: np.ndarray, base: float = 0.0
) -> Objective:
    """E step and M step of relevance as one LightGBM objective, the E step renewed at each tree.

    Parameters
    ----------
    cells : Cells
        Impressions and clicks.
    documents : int
        Number of training rows.
    theta : numpy.ndarray
        float64 ``[positions]``, at most 1.
    base : float
        Score from which boosting starts.

    Returns
    -------
    callable
        ``(scores, dataset) -> (gradient, hessian)``. The gradient is that of logistic regression
        on the expected labels, n gamma - E[relevant], which at the same time is that of the
        likelihood of the clicks themselves. The hessian is the Fisher information of the clicks
        but for its last factor 1 - gamma, without which no step explodes as gamma nears 1.
    """
    scale = documents / cells.impressions.sum()
    n, c = cells.impressions * scale, cells.clicks * scale
    examined = theta[cells.position]

    def objective(scores: np.ndarray, _: object) -> tuple[np.ndarray, np.ndarray]:
        gamma = relevance_of(scores + base)[cells.document]
        p = examined * gamma
        relevant = c + (n - c) * gamma * (1 - examined) / (1 - p)
        information = n * p * (1 - gamma) / (1 - p)
        gradient, hessian = (
            np.bincount(cells.document, weights=values, minlength=documents)
            for values in (n * gamma - relevant, information)
        )
        return gradient, np.maximum(hessian, HESSIAN_FLOOR)

    return objective


def examination_update(cells: Cells, positions: int, gamma: np.ndarray) -> np.ndarray:
    """Return theta that maximises the likelihood of the clicks, given relevance.

    It is where the M step theta_k = mean of c + (1 - c) P(examined | no click) comes to rest: the
    root of sum (c - n theta_k gamma) / (1 - theta_k gamma), up to the theta_k at which a
    document's clicks would be certain.

    Parameters
    ----------
    cells : Cells
        Impressions and clicks.
    positions : int
        Number of positions.
    gamma : numpy.ndarray
        float64 ``[documents]``.

    Returns
    -------
    numpy.ndarray
        float64 ``[positions]``; 0 where nobody clicked.

    Examples
    --------
    Six clicks in ten impressions of a document that three in four find relevant.

    >>> cells = Cells(np.array([0]), np.array([0]), np.array([10.0]), np.array([6.0]))
    >>> examination_update(cells, 1, np.array([0.75])).round(6).tolist()
    [0.8]
    """
    from scipy.optimize import brentq

    def score(theta: float, n: np.ndarray, c: np.ndarray, g: np.ndarray) -> float:
        return float(((c - n * theta * g) / (1 - theta * g)).sum())

    theta = np.zeros(positions)
    for k in range(positions):
        at = cells.position == k
        n, c, g = cells.impressions[at], cells.clicks[at], gamma[cells.document[at]]
        if c.sum() > 0:
            most = (1 - MARGIN) / g.max()
            rises = score(most, n, c, g) >= 0
            theta[k] = most if rises else brentq(score, 0.0, most, args=(n, c, g), xtol=1e-12)
    return theta


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
    """Estimate propensities by regression-based EM (Wang et al., WSDM 2018, section 4).

    Position-based model, P(click) = theta_k gamma(x). E step, for a session without a click:

        P(examined | no click) = theta_k (1 - gamma) / (1 - theta_k gamma),
        P(relevant | no click) = (1 - theta_k) gamma / (1 - theta_k gamma);

    M step: theta_k is the mean of the first (1 for a click) over the impressions of position k,
    and gamma is regressed on the second.

    Adapted for boosted trees: the paper samples binary labels for its regression, ours are their
    expectations, renewed at each tree; gamma is predicted **out of fold**, with the number of
    trees that explains the held-out clicks best, as trees memorise; theta takes all M steps that
    it would take at fixed gamma at once. Clicks tell of theta gamma only, so that theta can be
    scaled at will and plain EM creeps along that direction (from theta = .9, about 1,000
    iterations); here the largest theta is 1 in each regression, which only fixes the scale, and
    the outer alternation is accelerated by `ultrbench.propensity.fixed_point.iterate`.

    Parameters
    ----------
    log : ClickLog
        Displayed lists with all their sessions, those without a click too.
    features : numpy.ndarray
        float32 ``[documents, features]`` of the training split.
    seed, folds, trees, leaves, learning_rate, tolerance, max_iterations
        As in `ultrbench.propensity.dla.estimate`.

    Returns
    -------
    Estimate
        Relative propensities with their trace.

    Raises
    ------
    UserError
        When every session has a click: those without were left out of the log.
    """
    if not (log.mask == 0).any():
        raise UserError(
            "estimator rem: every session of this log has a click, and the impressions of those"
            " without are what it compares clicks with; log them too (`empty_sessions: keep`)"
        )
    rankers = CrossFit(
        log, features, folds=folds, trees=trees, leaves=leaves, learning_rate=learning_rate,
        seed=seed,
    )  # fmt: skip
    table = exposures(log)
    document, position = np.nonzero(table.impressions)
    cells = Cells(
        document, position, *(a[document, position] for a in (table.impressions, table.clicks))
    )

    def update(relative: np.ndarray) -> np.ndarray:
        theta = relative / relative.max()
        base = np.log(cells.clicks.sum() / (cells.impressions @ theta[cells.position]))

        def objective(rows: np.ndarray) -> Objective:
            return relevance_objective(cells.of(rows), int(rows.sum()), theta, base)

        def loss(scores: np.ndarray) -> float:
            return negative_log_likelihood(cells, theta, relevance_of(scores + base))

        scores = rankers.boost(objective, loss)
        new = examination_update(cells, log.positions, relevance_of(scores + base))
        return new / new[0]

    settled = iterate(update, log.positions, tolerance=tolerance, max_iterations=max_iterations)
    return replace(settled, **assuming(log, FROM_FEATURES))

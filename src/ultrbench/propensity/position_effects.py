"""Relative position effects by conditional Poisson, for units that were seen at several positions.

clicks[u, k] ~ Poisson(impressions[u, k] theta_k a_u) with a free effect a_u of each unit. Given
the clicks of a unit, their positions are multinomial and a_u drops out:

    loglik(theta) = sum_uk c_uk log theta_k - sum_u c_u log sum_k n_uk theta_k,

which is concave in log theta. Its score has mean zero whatever the distribution of the clicks, so
that only E[c_uk] = n_uk theta_k a_u is assumed (Hausman, Hall and Griliches 1984; Wooldridge 1999).
Where each unit is a pair of positions, it is a Bradley-Terry model.
"""

from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from ultrbench.errors import UserError
from ultrbench.propensity.estimate import Estimate, up_to_scale
from ultrbench.propensity.exposures import links_of, position_groups

TOLERANCE = 1e-9
MAX_ITERATIONS = 100
SLACK = 1e-10


class UnmovedDocumentsError(UserError):
    """No document of a log was seen at two positions: a later round may still move some."""


def _named(groups: list[list[int]]) -> str:
    positions = sorted(chain.from_iterable(groups))
    word = "position" if len(positions) == 1 else "positions"
    return f"{word} {', '.join(map(str, positions))}"


def check_connected(kind: str, impressions: np.ndarray, clicks: np.ndarray, remedy: str) -> None:
    """Refuse units from which some position effect does not follow.

    Parameters
    ----------
    kind : str
        Estimator named in the message.
    impressions, clicks : numpy.ndarray
        float64 ``[units, positions]``.
    remedy : str
        What the user can do about positions that are out of reach.

    Raises
    ------
    UserError
        When no unit was seen at two positions (`UnmovedDocumentsError`); when the units do not
        connect all positions; when clicks do not connect them, so that an effect would be 0 or
        infinite (Ford's condition).
    """
    links = links_of(impressions, impressions)
    if not (links & ~np.eye(len(links), dtype=bool)).any():
        raise UnmovedDocumentsError(
            f"estimator {kind}: no document of this log was seen at two positions, so examination"
            " and relevance cannot be told apart by it; it needs several orders of the same"
            " documents (a dynamic setting with at least two rounds, or `log: randomized`), while"
            " dla, for example, works on such a log"
        )
    reached, *apart = position_groups(links)
    if apart:
        raise UserError(
            f"estimator {kind}: {_named(apart)} cannot be reached from position 1: no"
            " chain of documents, each seen at two positions, connects them with"
            f" {_named([reached])}; {remedy}"
        )
    _, *apart = position_groups(links_of(clicks, impressions), strong=True)
    if apart:
        raise UserError(
            f"estimator {kind}: the documents that were seen at several positions have too few"
            f" clicks to compare {_named(apart)} with position 1; log more sessions or"
            " show fewer positions (list_size)"
        )


def robust_estimate(
    relative: np.ndarray, influence: np.ndarray, clicked: int, **outcome: Any
) -> Estimate:
    """Return an estimate with standard errors robust to any dependence within a query.

    Where no more queries bear on theta than it has parameters, the fit bends to every one of them,
    and its residuals, from which the errors are computed, say nothing: the errors are NaN then.

    Parameters
    ----------
    relative : numpy.ndarray
        float64 ``[positions]``, theta_k / theta_1.
    influence : numpy.ndarray
        float64 ``[queries, positions - 1]``, of each query on log(theta_k / theta_1), k >= 2.
    clicked : int
        Queries with clicks that bear on theta.
    **outcome
        Other attributes of `ultrbench.propensity.estimate.Estimate`.

    Examples
    --------
    >>> influence = np.array([[0.3], [-0.4]])
    >>> robust_estimate(np.array([1.0, 0.5]), influence, 2).standard_error.tolist()
    [0.0, 0.5]
    >>> robust_estimate(np.array([1.0, 0.5]), influence, 1).notes
    ('1 query bears on it, too few for standard errors of 1 parameter',)
    """
    parameters = influence.shape[1]
    if clicked > parameters:
        errors = np.append(0.0, np.sqrt((influence**2).sum(axis=0)))
        return up_to_scale(relative, errors, **outcome)
    queries = "1 query bears" if clicked == 1 else f"{clicked} queries bear"
    of = "1 parameter" if parameters == 1 else f"{parameters} parameters"
    note = f"{queries} on it, too few for standard errors of {of}"
    return up_to_scale(relative, **outcome, notes=(note,))


@dataclass(frozen=True)
class Fit:
    """A fitted conditional Poisson model.

    Attributes
    ----------
    relative : numpy.ndarray
        float64 ``[positions]``, theta_k / theta_1.
    share : numpy.ndarray
        float64 ``[units, positions]``, n_uk theta_k / sum_l n_ul theta_l: where the clicks of a
        unit are expected.
    information : numpy.ndarray
        float64 ``[positions - 1, positions - 1]``, of log(theta_k / theta_1), k >= 2.
    trace : list of list of float
        `relative` after each iteration.
    converged : bool
        Whether the last step was below 1e-9 in every log(theta_k / theta_1).
    """

    relative: np.ndarray
    share: np.ndarray
    information: np.ndarray
    trace: list[list[float]]
    converged: bool

    def estimate(self, scores: np.ndarray, clicked: int) -> Estimate:
        """Return the estimate, with cluster-robust standard errors.

        Parameters
        ----------
        scores : numpy.ndarray
            float64 ``[queries, positions]``, sum over a query of c_uk - c_u share_uk.
        clicked : int
            Queries with clicks that bear on it.
        """
        influence = np.linalg.solve(self.information, scores[:, 1:].T).T
        return robust_estimate(
            self.relative, influence, clicked, trace=self.trace, converged=self.converged
        )


def fit_effects(impressions: np.ndarray, clicks: np.ndarray) -> Fit:
    """Maximise the conditional likelihood by Newton's method with step halving.

    The alternation a_u = c_u / sum_k n_uk theta_k, theta_k = c_k / sum_u n_uk a_u climbs to the
    same maximum, but needs hundreds of rounds where few documents moved.

    Parameters
    ----------
    impressions, clicks : numpy.ndarray
        float64 ``[units, positions]`` that pass `check_connected`.

    Examples
    --------
    >>> fit_effects(np.array([[10.0, 20.0]]), np.array([[5.0, 2.0]])).relative.round(6).tolist()
    [1.0, 0.2]
    """
    clicked = clicks.sum(axis=1) > 0
    n, c = impressions[clicked], clicks[clicked]
    of_unit, of_position = c.sum(axis=1), c.sum(axis=0)

    def shares(n: np.ndarray, logs: np.ndarray) -> np.ndarray:
        expected = n * np.exp(logs)
        return expected / expected.sum(axis=1, keepdims=True)

    def likelihood(logs: np.ndarray) -> float:
        return float(of_position @ logs - of_unit @ np.log(n @ np.exp(logs)))

    def curvature(share: np.ndarray) -> np.ndarray:
        weighted = of_unit[:, None] * share
        return (np.diag(weighted.sum(axis=0)) - weighted.T @ share)[1:, 1:]

    logs = np.zeros(n.shape[1])
    trace: list[list[float]] = []
    converged = False
    while not converged and len(trace) < MAX_ITERATIONS:
        share = shares(n, logs)
        score = of_position - of_unit @ share
        step = np.append(0.0, np.linalg.solve(curvature(share), score[1:]))
        converged = bool(np.abs(step).max() < TOLERANCE)
        # Near the maximum rounding hides what a step adds, hence the slack.
        now = likelihood(logs)
        while likelihood(logs + step) < now - SLACK * abs(now):
            step /= 2
        logs = logs + step
        trace.append(np.exp(logs).tolist())
    information = curvature(shares(n, logs))
    return Fit(np.exp(logs), shares(impressions, logs), information, trace, converged)

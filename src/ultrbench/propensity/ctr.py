"""Click rate by position: what a naive reader of a log would take for propensities."""

from dataclasses import replace
from typing import Any

import numpy as np

from ultrbench.errors import UserError
from ultrbench.propensity.estimate import AT_FACE_VALUE, Estimate, assuming, up_to_scale
from ultrbench.simulation.log import ClickLog


def refuse_silence(log: ClickLog, clicks: np.ndarray) -> None:
    """Stop when a position has no click, as its click rate then says nothing.

    Parameters
    ----------
    log : ClickLog
        The displayed lists, for the message.
    clicks : numpy.ndarray
        ``[positions]``, clicks by position.

    Raises
    ------
    UserError
        Naming the first such position.

    Examples
    --------
    >>> log = ClickLog(
    ...     np.array([[0]]), np.array([0]), np.zeros((1, 1)), np.zeros(1, np.uint8),
    ...     np.zeros(1, bool), np.zeros(1, np.uint8),
    ...     np.array([0]), np.array([0], np.uint64), np.array([9]),
    ... )
    >>> refuse_silence(log, np.array([0]))
    Traceback (most recent call last):
    ...
    ultrbench.errors.UserError: no click at position 1 in 9 sessions, ...
    """
    if (clicks == 0).any():
        raise UserError(
            f"no click at position {int(np.argmin(clicks)) + 1} in {int(log.sessions.sum())}"
            " sessions, so its click rate says nothing of its propensity; log more sessions or"
            " show fewer positions (list_size)"
        )


def clustered_errors(queries: np.ndarray, influence: np.ndarray) -> np.ndarray:
    """Return standard errors of sums whose terms are independent between queries.

    Parameters
    ----------
    queries : numpy.ndarray
        int64 ``[lists]``.
    influence : numpy.ndarray
        float64 ``[lists, positions]``, what each list adds to the estimate's deviation.

    Returns
    -------
    numpy.ndarray
        float64 ``[positions]``, with the factor Q/(Q - 1) for Q queries; NaN for a single one.

    Examples
    --------
    >>> clustered_errors(np.array([5, 9]), np.array([[3.0], [-3.0]]))  # sqrt(2 (9 + 9))
    array([6.])
    """
    _, query = np.unique(queries, return_inverse=True)
    by_query = np.zeros((query.max() + 1, influence.shape[1]))
    np.add.at(by_query, query, influence)
    if len(by_query) == 1:
        return np.full(influence.shape[1], np.nan)
    return np.sqrt((by_query**2).sum(axis=0) * len(by_query) / (len(by_query) - 1))


def click_rates(log: ClickLog) -> Estimate:
    """Return click rates by position, relative to position 1, with standard errors.

    relative_k = (clicks_k / impressions_k) / (clicks_1 / impressions_1). The standard error of
    its logarithm is the delta method's, with queries as the independent units.

    Parameters
    ----------
    log : ClickLog
        Displayed lists with clicks.

    Returns
    -------
    Estimate
        Relative propensities with standard errors.

    Raises
    ------
    UserError
        When a position has no click in the whole log.

    Examples
    --------
    Two queries, 10 sessions each: 12 clicks at position 1, 3 at position 2.

    >>> log = ClickLog(
    ...     np.array([[0, 1], [2, 3]]), np.array([0, 1]), np.zeros((2, 2)), np.zeros(2, np.uint8),
    ...     np.zeros(2, bool), np.zeros(2, np.uint8),
    ...     np.array([0, 0, 1, 1]), np.array([1, 2, 1, 0], np.uint64), np.array([7, 3, 5, 5]),
    ... )
    >>> click_rates(log).relative.tolist()
    [1.0, 0.25]
    """
    log = log.select(log.sessions > 0)  # a query without sessions is no independent unit
    clicks = log.clicks.astype(np.float64)
    impressions = log.shown * log.sessions[:, None].astype(np.float64)
    total_clicks, total_impressions = clicks.sum(axis=0), impressions.sum(axis=0)
    refuse_silence(log, total_clicks)
    rates = total_clicks / total_impressions
    # Influence of each list on log(rate_k): its clicks less what its impressions lead to expect.
    influence = (clicks - rates * impressions) / total_clicks
    errors = clustered_errors(log.queries, influence - influence[:, :1])
    return up_to_scale(rates / rates[0], errors)


def estimate(log: ClickLog, **_: Any) -> Estimate:
    """Return `click_rates` of the whole log: relevance and examination in one figure.

    Parameters
    ----------
    log : ClickLog
        Displayed lists with clicks.

    Returns
    -------
    Estimate
        Relative propensities with standard errors.

    Raises
    ------
    UserError
        As `click_rates`, whose example it shares.
    """
    return replace(click_rates(log), **assuming(log, AT_FACE_VALUE))

"""Click rate by position: what a naive reader of a log would take for propensities."""

from typing import Any

import numpy as np

from ultrbench.errors import UserError
from ultrbench.propensity.estimate import Estimate, up_to_scale
from ultrbench.simulation.log import ClickLog


def require_clicks(log: ClickLog) -> None:
    """Refuse a log that has a position without any click."""
    total_clicks = log.clicks.sum(axis=0)
    if (total_clicks == 0).any():
        position = int(np.argmin(total_clicks)) + 1
        raise UserError(
            f"no click at position {position} in {int(log.sessions.sum())} sessions, so its click"
            " rate says nothing of its propensity; log more sessions or show fewer positions"
            " (list_size)"
        )


def click_rates(log: ClickLog) -> Estimate:
    """Return click rates by position, relative to position 1, with standard errors.

    relative_k = (clicks_k / impressions_k) / (clicks_1 / impressions_1). The standard error of
    its logarithm is the delta method's, with queries as the independent units.

    Parameters
    ----------
    log : ClickLog
        Displayed lists with clicks.

    Raises
    ------
    UserError
        When a position has no click in the whole log.
    """
    require_clicks(log)
    clicks = log.clicks.astype(np.float64)
    impressions = log.shown * log.sessions[:, None].astype(np.float64)
    total_clicks, total_impressions = clicks.sum(axis=0), impressions.sum(axis=0)
    rates = total_clicks / total_impressions
    # Influence of each query on log(rate_k): its clicks less what its impressions lead to expect.
    influence = (clicks - rates * impressions) / total_clicks
    _, query = np.unique(log.queries, return_inverse=True)
    by_query = np.zeros((query.max() + 1, log.positions))
    np.add.at(by_query, query, influence - influence[:, :1])
    return up_to_scale(rates / rates[0], np.sqrt((by_query**2).sum(axis=0)))


def estimate(log: ClickLog, **_: Any) -> Estimate:
    """Return `click_rates` of the whole log: relevance and examination in one figure."""
    return click_rates(log)

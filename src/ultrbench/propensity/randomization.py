"""IPW-Random: click rate by position on result lists in random order."""

from typing import Any

import numpy as np

from ultrbench.errors import UserError
from ultrbench.propensity.ctr import clustered_errors, refuse_silence
from ultrbench.propensity.estimate import Estimate, up_to_scale
from ultrbench.simulation.log import ClickLog


def estimate(log: ClickLog, **_: Any) -> Estimate:
    """Return the click rates of the randomised lists, where relevance is alike at all positions.

    relative_k = clicks_k / clicks_1 on the lists that reach position k: were lists of other
    lengths counted at position 1 as well, a difference in relevance between long and short lists
    would pass for one in examination. Joachims et al. (WSDM 2017), section 4; Wang et al. (SIGIR
    2016). Unbiased, at the price of showing users random rankings.

    Parameters
    ----------
    log : ClickLog
        Displayed lists with clicks; those in random order are used.

    Returns
    -------
    Estimate
        With standard errors of log(relative), queries being the independent units.

    Raises
    ------
    UserError
        When the log has no randomised list with sessions, or a position without clicks there.

    Examples
    --------
    The list of one document, which is clicked often, says nothing of position 2.

    >>> log = ClickLog(
    ...     np.array([[1, 0], [2, -1]]), np.array([0, 1]), np.zeros((2, 2)), np.zeros(2, np.uint8),
    ...     np.ones(2, bool), np.zeros(2, np.uint8),
    ...     np.array([0, 0, 1]), np.array([1, 2, 1], np.uint64), np.array([8, 2, 90]),
    ... )
    >>> estimate(log).relative.tolist()
    [1.0, 0.25]
    """
    randomized = log.randomized & (log.sessions > 0)
    if not randomized.any():
        raise UserError(
            "estimator randomization: no session of the log saw a list in random order; give"
            " its method `log: randomized` and enough sessions (randomized_share), or mark such"
            " lists in the column `randomized` of a log of one's own"
        )
    log = log.select(randomized)
    first = log.clicks[:, :1] * log.shown
    clicks, first_clicks = log.clicks.sum(axis=0), first.sum(axis=0)
    refuse_silence(log, np.minimum(clicks, first_clicks))
    influence = log.clicks / clicks - first / first_clicks
    return up_to_scale(clicks / first_clicks, clustered_errors(log.queries, influence))

"""IPW-Random: click rate by position on result lists in random order."""

from typing import Any

from ultrbench.errors import UserError
from ultrbench.propensity.ctr import click_rates
from ultrbench.propensity.estimate import Estimate
from ultrbench.simulation.log import ClickLog


def estimate(log: ClickLog, **_: Any) -> Estimate:
    """Return the click rates of the randomised lists, where relevance is alike at all positions.

    Joachims et al. (WSDM 2017), section 4; Wang et al. (SIGIR 2016). Unbiased, at the price of
    showing users random rankings.

    Raises
    ------
    UserError
        When the log has no randomised list with sessions, or a position without clicks there.
    """
    randomized = log.randomized & (log.sessions > 0)
    if not randomized.any():
        raise UserError(
            "estimator randomization: the log has no list in random order; give its method"
            " `log: randomized`, or mark such lists in the column `randomized` of a log of one's"
            " own"
        )
    return click_rates(log.select(randomized))

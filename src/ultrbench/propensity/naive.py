"""No correction: every position counts as examined."""

from typing import Any

import numpy as np

from ultrbench.propensity.estimate import Estimate, up_to_scale
from ultrbench.simulation.log import ClickLog

NO_CORRECTION = "no correction: all positions count as examined alike"


def estimate(log: ClickLog, **_: Any) -> Estimate:
    """Return theta = 1 at every position, so that clicks are taken at face value.

    Parameters
    ----------
    log : ClickLog
        Displayed lists.

    Returns
    -------
    Estimate
        1 at every position shown.

    Examples
    --------
    >>> none = np.empty(0, np.int64)
    >>> log = ClickLog(
    ...     np.array([[0, 1]]), np.array([0]), np.zeros((1, 2)), np.zeros(1, np.uint8),
    ...     np.zeros(1, bool), np.zeros(1, np.uint8), none, none.astype(np.uint64), none,
    ... )
    >>> estimate(log).relative.tolist()
    [1.0, 1.0]
    """
    return up_to_scale(np.ones(log.positions), identified=False, notes=(NO_CORRECTION,))

"""No correction: every position counts as examined."""

from typing import Any

import numpy as np

from ultrbench.propensity.estimate import Estimate, up_to_scale
from ultrbench.simulation.log import ClickLog


def estimate(log: ClickLog, **_: Any) -> Estimate:
    """Return theta = 1 at every position, so that clicks are taken at face value."""
    return up_to_scale(np.ones(log.positions))

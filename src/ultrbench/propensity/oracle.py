"""The simulator's own propensities: a skyline, not available outside a simulation."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from ultrbench.errors import UserError
from ultrbench.propensity.estimate import Estimate
from ultrbench.simulation.log import ClickLog


def estimate(
    log: ClickLog,
    *,
    truth: np.ndarray | None,
    columns: Mapping[str, np.ndarray],
    **_: Any,
) -> Estimate:
    """Return the true probability of examination by position, and what else the simulator knows.

    Raises
    ------
    UserError
        When the log brings no truth: it was not simulated.
    """
    if truth is None:
        raise UserError(
            "estimator oracle: this click log has no truth.csv, as only simulated logs know their"
            " true propensities; leave the oracle's methods out of the setting"
        )
    theta = truth[: log.positions]
    known = {name: values[: log.positions] for name, values in columns.items()}
    return Estimate(theta / theta[0], theta, np.zeros(len(theta)), columns=known)

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
    columns: Mapping[str, np.ndarray] | None = None,
    **_: Any,
) -> Estimate:
    """Return the true probability of examination by position, and what else the simulator knows.

    Parameters
    ----------
    log : ClickLog
        Displayed lists.
    truth : numpy.ndarray or None
        float64, the simulator's theta, at least as long as the lists; None where it is not known.
    columns : mapping of numpy.ndarray, optional
        Other parameters of the simulator by position, at least as long; they are passed on.

    Returns
    -------
    Estimate
        Absolute and relative propensities of the positions shown, with standard errors of 0.

    Raises
    ------
    UserError
        When the log brings no truth: it was not simulated.

    Examples
    --------
    >>> none = np.empty(0, np.int64)
    >>> log = ClickLog(
    ...     np.array([[0, 1]]), np.array([0]), np.zeros((1, 2)), np.zeros(1, np.uint8),
    ...     np.zeros(1, bool), np.zeros(1, np.uint8), none, none.astype(np.uint64), none,
    ... )
    >>> estimate(log, truth=np.array([0.8, 0.4, 0.1])).relative.tolist()
    [1.0, 0.5]
    """
    if truth is None:
        raise UserError(
            "estimator oracle: this click log has no truth.csv, as only simulated logs know their"
            " true propensities; leave the oracle's methods out of the setting"
        )
    theta = truth[: log.positions]
    known = {name: values[: log.positions] for name, values in (columns or {}).items()}
    return Estimate(theta / theta[0], theta, np.zeros(len(theta)), columns=known)

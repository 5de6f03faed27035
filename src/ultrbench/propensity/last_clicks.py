"""Cascade clicks: how often users go on after a click, from where their last clicks are."""

from typing import Any

import numpy as np

from ultrbench.errors import UserError
from ultrbench.propensity.estimate import Estimate, up_to_scale
from ultrbench.simulation.log import ClickLog


def continuation(log: ClickLog) -> np.ndarray:
    """Return lambda_k = 1 - (sessions with their last click at k) / (clicks at k).

    Guo et al. (WSDM 2009), as Vardasbi et al. (SIGIR 2020) use it. It is the
    dependent click model's maximum likelihood if whoever goes on clicks again; as some go on in
    vain, it is too small, most of all near the end of the list, where it is 0.

    Parameters
    ----------
    log : ClickLog
        Displayed lists with clicks.

    Returns
    -------
    numpy.ndarray
        float64 ``[positions]``, from 0 to 1.

    Raises
    ------
    UserError
        When a position has no click.

    Examples
    --------
    Of the 4 clicks at position 1, one is followed by another click.

    >>> log = ClickLog(
    ...     np.array([[4, 2]]), np.array([0]), np.array([[0.9, 0.1]]), np.zeros(1, np.uint8),
    ...     np.zeros(1, bool), np.zeros(1, np.uint8),
    ...     np.array([0, 0]), np.array([1, 3], np.uint64), np.array([3, 1]),
    ... )
    >>> continuation(log).tolist()
    [0.25, 0.0]
    """
    clicks = log.clicks.sum(axis=0)
    if (clicks == 0).any():
        position = int(np.argmin(clicks)) + 1
        raise UserError(
            f"estimator last_clicks: no click at position {position} in"
            f" {int(log.sessions.sum())} sessions, so what follows a click there is not known; log"
            " more sessions or show fewer positions (list_size)"
        )
    last = np.zeros(log.positions)
    for k in range(log.positions):
        last[k] = log.count[log.mask >> np.uint64(k) == 1].sum()
    return 1 - last / clicks


def estimate(log: ClickLog, **_: Any) -> Estimate:
    """Estimate the continuation probabilities of the dependent click model.

    Examination depends on the clicks above, so there is no propensity by position: it is NaN, and
    the column ``continuation`` holds what ``weights: dcm`` needs.
    """
    unknown = np.full(log.positions, np.nan)
    return up_to_scale(unknown, columns={"continuation": continuation(log)})

"""Position-based model: a position is examined with a probability of its own."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ultrbench.simulation import clicks
from ultrbench.simulation.behaviour import Behaviour


def behaviour(
    attraction: np.ndarray, *, eta: float, examination: Sequence[float], **_: Any
) -> Behaviour:
    """Return P(click at k) = theta_k^eta gamma(y).

    Richardson et al. (WWW 2007); in this form Ai et al. (SIGIR 2018), section 5.1.

    Parameters
    ----------
    attraction, eta, examination
        As in `ultrbench.simulation.behaviour.find_click_model`.

    Examples
    --------
    >>> users = behaviour(np.array([[1.0, 0.5]]), eta=1, examination=[0.8, 0.4])
    >>> users.examined().tolist()
    [[0.8, 0.4]]
    """
    theta = clicks.examination(attraction.shape[1], eta=eta, values=examination)
    affine = {"alpha": theta, "beta": np.zeros(len(theta))}
    return Behaviour(attraction, theta[None, :, None], by_position=True, parameters=affine)

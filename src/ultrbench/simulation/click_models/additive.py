"""Additive clicks: position and relevance add up in the logit, as two towers would have it."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ultrbench.simulation import clicks
from ultrbench.simulation.behaviour import Behaviour


def behaviour(
    attraction: np.ndarray, *, eta: float, examination: Sequence[float], **_: Any
) -> Behaviour:
    """Return logit P(click at k) = l_k + r(y).

    The additive two-tower model (Yan et al., SIGIR 2022; Hager et al. 2025, arXiv 2506.20501). Our
    parameters are l_k = eta log(theta_k / theta_1) and r(y) = logit(theta_1^eta gamma(y)): clicks
    at position 1 are those of `pbm`, and a position multiplies the odds of a click by its relative
    propensity. Written as examination times gamma, with t = theta^eta,
    P = gamma t_k / (1 - gamma (t_1 - t_k)): the more attractive a document, the likelier it is
    examined, so examination is no function of position alone.

    Parameters
    ----------
    attraction, eta, examination
        As in `ultrbench.simulation.behaviour.find_click_model`.

    Examples
    --------
    >>> users = behaviour(np.array([[0.5, 0.5]]), eta=1, examination=[0.8, 0.4])
    >>> users.examined().round(3).tolist()
    [[0.8, 0.5]]
    """
    theta = clicks.examination(attraction.shape[1], eta=eta, values=examination)
    theta = np.maximum(theta, np.finfo(np.float64).tiny)  # no 0/0 where the power underflows
    complement = 1 - attraction * theta[0] + attraction * theta
    return Behaviour(attraction, (theta / complement)[:, :, None])

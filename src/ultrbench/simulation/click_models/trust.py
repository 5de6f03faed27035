"""Trust bias: what is ranked high is also clicked for being ranked high."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ultrbench.simulation import clicks
from ultrbench.simulation.behaviour import Behaviour
from ultrbench.simulation.click_models import pbm


def behaviour(
    attraction: np.ndarray, *, eps_plus: Sequence[float], eps_minus: Sequence[float], **keys: Any
) -> Behaviour:
    """Return P(click at k) = theta_k^eta (eps+_k gamma(y) + eps-_k (1 - gamma(y))).

    A document is relevant to the user with probability gamma(y); examined at position k it is
    clicked with probability eps+_k if it is, eps-_k if not. This is TrustPBM of Agarwal et al.
    (WWW 2019), and affine in gamma (Vardasbi et al., CIKM 2020): theta_k^eta (eps+_k - eps-_k)
    times gamma, plus theta_k^eta eps-_k. With eps+ = 1 and eps- = 0 it is `pbm`.

    Parameters
    ----------
    attraction : numpy.ndarray
        As in `ultrbench.simulation.behaviour.find_click_model`.
    eps_plus, eps_minus : sequence of float
        From position 1 on; later positions keep the last. The schema's defaults are 1 - (k + 1)/100
        and 0.65/k of Vardasbi et al. (SIGIR 2021), equations 10 and 11, at the first ten.
    **keys
        As `ultrbench.simulation.click_models.pbm.behaviour` takes them.

    Examples
    --------
    >>> users = behaviour(
    ...     np.array([[0.0, 1.0]]), eps_plus=[0.9], eps_minus=[0.5], eta=0, examination=[1]
    ... )
    >>> users.attraction.tolist()
    [[0.5, 0.9]]
    """
    positions = attraction.shape[1]
    plus, minus = (clicks.by_position(values, positions) for values in (eps_plus, eps_minus))
    users = pbm.behaviour(attraction, **keys)
    theta = users.parameters["alpha"]
    return replace(
        users,
        attraction=plus * attraction + minus * (1 - attraction),
        parameters={"alpha": theta * (plus - minus), "beta": theta * minus},
    )

"""Cascade and dependent click model: users read from the top until they are satisfied."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ultrbench.simulation import clicks
from ultrbench.simulation.behaviour import Behaviour


def behaviour(attraction: np.ndarray, *, continuation: Sequence[float], **_: Any) -> Behaviour:
    """Return the dependent click model of Guo et al. (WSDM 2009).

    Position 1 is examined. Who does not click examines the next position; who clicks at k examines
    it with probability lambda_k, and otherwise nothing more.

    Parameters
    ----------
    attraction : numpy.ndarray
        As in `ultrbench.simulation.behaviour.find_click_model`.
    continuation : sequence of float
        lambda from position 1 on; later positions keep the last.

    Examples
    --------
    >>> behaviour(np.array([[0.5, 0.5, 0.5]]), continuation=[0.6, 0]).examined().tolist()
    [[1.0, 0.8, 0.4]]
    """
    on = clicks.by_position(continuation, attraction.shape[1])
    return Behaviour(attraction, continuation=on[None, :], parameters={"continuation": on})


def cascade(attraction: np.ndarray, **_: Any) -> Behaviour:
    """Return the cascade model of Craswell et al. (WSDM 2008): the first click is the last.

    Examples
    --------
    >>> cascade(np.array([[0.5, 0.5, 0.5]])).examined().tolist()
    [[1.0, 0.5, 0.25]]
    """
    return behaviour(attraction, continuation=[0.0])

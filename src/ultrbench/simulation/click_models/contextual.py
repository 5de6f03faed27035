"""Contextual position bias: sessions of several kinds, each with a severity of its own."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ultrbench.simulation import clicks
from ultrbench.simulation.behaviour import Behaviour


def behaviour(
    attraction: np.ndarray,
    *,
    contexts: np.ndarray,
    examination: Sequence[float],
    etas: Sequence[float],
    **_: Any,
) -> Behaviour:
    """Return P(click at k | context x) = theta_k^(eta_x) gamma(y).

    Examination that depends on the context of a session: Fang et al. (SIGIR 2019).

    Parameters
    ----------
    attraction, contexts, examination
        As in `ultrbench.simulation.behaviour.find_click_model`.
    etas : sequence of float
        Severity of the position bias in each context, from context 0 on.

    Examples
    --------
    >>> users = behaviour(
    ...     np.ones((2, 2)), contexts=np.array([0, 1]), examination=[1, 0.5], etas=[0, 2]
    ... )
    >>> users.examined().tolist()
    [[1.0, 1.0], [1.0, 0.25]]
    """
    theta = clicks.examination(attraction.shape[1], values=examination)
    severity = np.asarray(etas, dtype=np.float64)[contexts]
    return Behaviour(attraction, (theta ** severity[:, None])[:, :, None])

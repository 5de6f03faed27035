"""User browsing model: examination depends on the position and the distance to the last click."""

from typing import Any

import numpy as np

from ultrbench.simulation.behaviour import Behaviour

# Row k - 1 is position k; its entries are distances 1 to k to the position clicked last, where
# distance k stands for no click yet.
EXAMINATION = (
    (1.0,),
    (0.98, 1.0),
    (1.0, 0.62, 0.95),
    (1.0, 0.77, 0.42, 0.82),
    (1.0, 0.92, 0.55, 0.31, 0.69),
    (1.0, 0.96, 0.63, 0.4, 0.22, 0.54),
    (1.0, 0.99, 0.73, 0.46, 0.29, 0.17, 0.47),
    (1.0, 1.0, 0.89, 0.52, 0.35, 0.24, 0.14, 0.43),
    (1.0, 1.0, 0.95, 0.68, 0.4, 0.29, 0.19, 0.12, 0.41),
    (1.0, 1.0, 1.0, 0.96, 0.52, 0.36, 0.27, 0.18, 0.12, 0.43),
)


def examination_after(positions: int) -> np.ndarray:
    """Return P(examined | last click), float64 ``[positions, positions + 1]``.

    Column 0 is no click yet, column j a last click at position j; from position k on it is 0.
    Positions past the tenth are examined like the tenth at the same distance, at distances past
    the ninth like at the ninth.

    Examples
    --------
    >>> examination_after(3).tolist()
    [[1.0, 0.0, 0.0, 0.0], [1.0, 0.98, 0.0, 0.0], [0.95, 0.62, 1.0, 0.0]]
    """
    table = np.zeros((positions, positions + 1))
    for k in range(1, positions + 1):
        row = EXAMINATION[min(k, len(EXAMINATION)) - 1]
        table[k - 1, 0] = row[-1]
        for last in range(1, k):
            table[k - 1, last] = row[min(k - last, len(row) - 1) - 1]
    return table


def behaviour(attraction: np.ndarray, *, eta: float, **_: Any) -> Behaviour:
    """Return the user browsing model of Dupret and Piwowarski (SIGIR 2008).

    P(click at k | last click at j) = gamma_kj^eta gamma(y), with the table of gamma_kj that the
    simulator of the ULTRA toolbox (Tran et al., CIKM 2021) uses.

    Parameters
    ----------
    attraction, eta
        As in `ultrbench.simulation.behaviour.find_click_model`.

    Examples
    --------
    At position 3: nothing clicked yet, position 1 clicked last, or position 2.

    >>> examined = behaviour(np.array([[0.5, 0.5, 0.5]]), eta=1).examined()
    >>> bool(np.isclose(examined[0, 2], 0.25 * 0.95 + 0.255 * 0.62 + 0.495 * 1))
    True
    """
    return Behaviour(attraction, examination_after(attraction.shape[1])[None] ** eta)

"""Iteration to a fixed point of theta, accelerated, for estimators that alternate."""

from collections.abc import Callable

import numpy as np

from ultrbench.errors import UserError
from ultrbench.propensity.estimate import Estimate, up_to_scale

MEMORY = 2


def iterate(
    update: Callable[[np.ndarray], np.ndarray],
    positions: int,
    *,
    tolerance: float,
    max_iterations: int,
) -> Estimate:
    """Iterate theta -> update(theta) from theta = 1 until it settles.

    Anderson acceleration (scipy.optimize.anderson, memory 2) on log(theta_k / theta_1): the
    alternation itself moves by a near-constant factor a step, .7 to .8 where the policy is strong,
    and would need three to five times as many fits.

    Parameters
    ----------
    update : callable
        Maps theta_k / theta_1 to its next value, float64 ``[positions]``.
    positions : int
        Number of positions.
    tolerance : float
        Settled when one update moves no log(theta_k / theta_1) by more.
    max_iterations : int
        Where it ends with ``converged`` false.

    Returns
    -------
    Estimate
        The last update, its trace, and whether it settled.

    Raises
    ------
    UserError
        When an update leaves the positive numbers.

    Examples
    --------
    >>> halfway = lambda theta: np.sqrt(theta * np.array([1.0, 0.25]))
    >>> iterate(halfway, 2, tolerance=1e-6, max_iterations=50).relative.round(4).tolist()
    [1.0, 0.25]
    """
    from scipy.optimize import NoConvergence, anderson

    trace: list[list[float]] = []

    def residual(logs: np.ndarray) -> np.ndarray:
        new = update(np.exp(np.concatenate([[0.0], logs])))
        if not (np.isfinite(new).all() and (new > 0).all()):
            position = int(np.argmin(np.isfinite(new) & (new > 0))) + 1
            raise UserError(
                f"iteration {len(trace) + 1}: the propensity of position {position} became"
                f" {new[position - 1]}; the log has too few clicks there: log more sessions or"
                " show fewer positions (list_size)"
            )
        trace.append(new.tolist())
        return np.log(new[1:]) - logs

    converged = True
    if positions == 1:
        residual(np.empty(0))
    else:
        try:
            anderson(
                residual,
                np.zeros(positions - 1),
                f_tol=tolerance,
                maxiter=max_iterations - 1,
                line_search=None,
                alpha=1.0,
                M=MEMORY,
            )
        except NoConvergence:
            converged = False
    return up_to_scale(np.array(trace[-1]), trace=trace, converged=converged)

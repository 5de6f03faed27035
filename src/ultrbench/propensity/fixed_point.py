"""Iteration to a fixed point of theta, accelerated, for estimators that alternate."""

import contextlib
import warnings
from collections.abc import Callable, Sequence

import numpy as np

from ultrbench.errors import UserError
from ultrbench.propensity.estimate import Estimate, up_to_scale

MEMORY = 2
WINDOW = 10
LOG_LIMIT = np.log(1e100)


class _DivergedError(Exception):
    """Theta has left the numbers that can be a propensity ratio."""


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
        When the first update is not positive, as where a position has no clicks. An iteration that
        leaves the positive numbers later, or goes beyond a ratio of 1e100, has diverged: a result.

    Examples
    --------
    >>> halfway = lambda theta: np.sqrt(theta * np.array([1.0, 0.25]))
    >>> iterate(halfway, 2, tolerance=1e-6, max_iterations=50).relative.round(4).tolist()
    [1.0, 0.25]
    """
    from scipy.linalg import LinAlgWarning
    from scipy.optimize import NoConvergence, anderson

    trace: list[list[float]] = []
    moves: list[float] = []

    def residual(logs: np.ndarray) -> np.ndarray:
        if not np.abs(logs).max(initial=0.0) < LOG_LIMIT:
            raise _DivergedError
        new = update(np.exp(np.concatenate([[0.0], logs])))
        positive = np.isfinite(new) & (new > 0)
        if not positive.all():
            if trace:
                raise _DivergedError
            position = int(np.argmin(positive))
            raise UserError(
                f"the propensity of position {position + 1} comes out as {new[position]} at the"
                " first iteration: the log has no click there that tells it; log more sessions or"
                " show fewer positions (list_size)"
            )
        move = np.log(new[1:]) - logs
        trace.append(new.tolist())
        moves.append(np.abs(move).max(initial=0.0))
        return move

    if positions == 1:
        residual(np.empty(0))
    else:
        # It neither looks at the last residual nor returns it: `moves` says whether it settled.
        with contextlib.suppress(NoConvergence, _DivergedError), warnings.catch_warnings():
            # A degenerate step is no news: `moves` says whether theta settled.
            warnings.simplefilter("ignore", LinAlgWarning)
            anderson(
                residual,
                np.zeros(positions - 1),
                f_tol=tolerance,
                maxiter=max_iterations - 1,
                line_search=None,
                alpha=1.0,
                M=MEMORY,
            )
    return up_to_scale(np.array(trace[-1]), trace=trace, converged=bool(moves[-1] <= tolerance))


def at_rest(trace: Sequence[Sequence[float] | np.ndarray], tolerance: float) -> bool:
    """Tell whether figures that change a little with every tree have come to rest.

    Parameters
    ----------
    trace : sequence of sequence of float
        The figures after each tree.
    tolerance : float
        At rest when none has varied by more in the last 10 trees.

    Examples
    --------
    >>> at_rest([[0.0]] + [[1.0]] * 10, 0.1), at_rest([[0.0]] + [[1.0]] * 11, 0.1)
    (False, True)
    """
    recent = np.array(trace[-WINDOW - 1 :])
    return len(recent) > WINDOW and bool(np.ptp(recent, axis=0).max() <= tolerance)

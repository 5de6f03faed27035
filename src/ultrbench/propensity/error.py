"""How far estimated propensities are from the simulator's own."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ultrbench.propensity.estimate import read_by_position
from ultrbench.simulation.truth import is_by_position, read_truth


def theta_error(relative: np.ndarray, truth: np.ndarray) -> tuple[float, float]:
    """Return the error of theta and its signed mean.

    Parameters
    ----------
    relative : numpy.ndarray
        float64 ``[positions]``, theta_k / theta_1 as estimated.
    truth : numpy.ndarray
        float64, the true theta, up to a factor; no shorter.

    Returns
    -------
    error : float
        Mean over k >= 2 of abs(log(relative_k / relative_1) - log(truth_k / truth_1)); NaN where
        a value is not positive, or there is one position only.
    signed : float
        The same without abs: below 0 where propensities fall too fast.

    Examples
    --------
    >>> error, signed = theta_error(np.array([1, 0.5, 0.25]), np.array([1, 1, 0.25]))
    >>> bool(np.isclose(error, np.log(2) / 2)), bool(np.isclose(signed, -np.log(2) / 2))
    (True, True)
    """
    truth = truth[: len(relative)]
    if len(relative) < 2 or not ((relative > 0) & (truth > 0)).all():
        return np.nan, np.nan
    off = np.log(relative[1:] / relative[0]) - np.log(truth[1:] / truth[0])
    return float(np.abs(off).mean()), float(off.mean())


def read_theta_error(table: Path, truths: Sequence[Path]) -> tuple[float, float]:
    """Return `theta_error` of an estimate on the logs of some rounds.

    Parameters
    ----------
    table : pathlib.Path
        ``theta.csv``.
    truths : sequence of pathlib.Path
        ``truth.csv`` of the rounds.

    Returns
    -------
    tuple of float
        NaN where examination is not a function of position alone, or no truth is known.

    Examples
    --------
    >>> import tempfile
    >>> from ultrbench.propensity.estimate import up_to_scale, write_estimate
    >>> from ultrbench.simulation.truth import write_truth
    >>> folder = Path(tempfile.mkdtemp())
    >>> write_truth(folder / "truth.csv", np.array([0.8, 0.4]))
    >>> estimate = up_to_scale(np.array([1.0, 0.5]))
    >>> write_estimate(estimate, folder / "theta.csv", folder / "theta.json")
    >>> read_theta_error(folder / "theta.csv", [folder / "truth.csv"])
    (0.0, 0.0)
    """
    truth = read_truth(truths)
    if truth is None or not is_by_position(truths):
        return np.nan, np.nan
    return theta_error(read_by_position(table, "relative"), truth)

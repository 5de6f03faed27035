"""The error of an estimate, read from its files and those of its logs."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ultrbench.propensity.error import theta_error
from ultrbench.propensity.estimate import read_by_position
from ultrbench.simulation.truth import is_by_position, read_truth


def read_theta_error(table: Path, truths: Sequence[Path]) -> tuple[float, float]:
    """Return the error of an estimate and its signed mean, every position alike.

    Parameters
    ----------
    table : pathlib.Path
        ``theta.csv``.
    truths : sequence of pathlib.Path
        ``truth.csv`` of the rounds of its log.

    Returns
    -------
    error, signed : float
        Of `ultrbench.propensity.error.theta_error`; NaN where examination is not a function of
        position alone, or no truth is known.

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
    relative = read_by_position(table, "relative")
    found = theta_error(relative, truth[: len(relative)], np.ones(len(relative)))
    return found.error, found.signed

"""How far learned propensities are from the truth."""

from typing import NamedTuple

import numpy as np


class ThetaError(NamedTuple):
    """Errors of log(theta_k / theta_1) over the positions k = 2..N.

    Attributes
    ----------
    error, by_clicks : float
        Mean absolute error, every position alike or weighted by its clicks.
    signed : float
        Mean error with its sign: below 0 where theta_k is too small, which overestimates how much
        more the top is examined.
    """

    error: float
    by_clicks: float
    signed: float


def theta_error(relative: np.ndarray, truth: np.ndarray, clicks: np.ndarray) -> ThetaError:
    """Return the errors of propensities: e_k = log(theta_k / theta_1) - log(true ratio).

    Parameters
    ----------
    relative, truth : numpy.ndarray
        float64 ``[positions]``, learned and true propensities, each on any scale.
    clicks : numpy.ndarray
        ``[positions]``, clicks of the log that the estimate was made from.

    Returns
    -------
    ThetaError
        Infinite where a propensity is 0; NaN where one is no number or below 0, or where there is
        no second position. Without a click below position 1 `by_clicks` is NaN.

    Examples
    --------
    >>> learned, true = np.array([1.0, 0.5, 0.5]), np.array([0.8, 0.8, 0.4])
    >>> error = theta_error(learned, true, np.array([9, 3, 1]))  # e_2 = -log 2, e_3 = 0
    >>> [round(float(part / np.log(2)), 3) for part in error]
    [0.5, 0.75, -0.5]
    """
    if len(relative) < 2:
        return ThetaError(np.nan, np.nan, np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        error = np.log(relative[1:] / relative[0]) - np.log(truth[1:] / truth[0])
    used = clicks[1:] > 0
    by_clicks = np.average(np.abs(error[used]), weights=clicks[1:][used]) if used.any() else np.nan
    return ThetaError(float(np.abs(error).mean()), float(by_clicks), float(error.mean()))

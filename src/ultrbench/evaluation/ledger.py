"""The gap ledger: where a method's nDCG goes, from the logging policy to the true grades."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from ultrbench.evaluation.significance import crossed_bootstrap

if TYPE_CHECKING:
    import pandas as pd

# Each step leads from a level to another; `clicks` and `noise` are the same for all methods.
STEPS = {
    "clicks": ("policy", "naive"),
    "correction": ("naive", "expected"),
    "noise": ("grades", "oracle"),
    "theta": ("oracle", "expected"),
    "variance": ("expected", "method"),
}


def ledger(
    levels: Mapping[str, np.ndarray], *, bootstraps: int = 2000, rng: np.random.Generator
) -> "pd.DataFrame":
    """Split the difference between a method and the logging policy, and the grades, into steps.

    There are two ways to a method, and the steps of each add up exactly:
    ``policy + clicks + correction + variance = method``, from what is there before anything is
    learned, and ``grades + noise + theta + variance = method``, from the best that there is.

    Parameters
    ----------
    levels : mapping of str to numpy.ndarray
        float64 ``[replicates, queries]``, a metric of rankers: ``policy``, the logging policy;
        ``naive`` and ``oracle``, trained on infinitely many sessions without and with the true
        propensities; ``expected``, the same with the method's propensities; ``method``, trained on
        the sessions that there are; ``grades``, trained on true grades.
    bootstraps : int
        Resamples of queries and replicates.
    rng : numpy.random.Generator
        Source of the draws, which all steps share.

    Returns
    -------
    pandas.DataFrame
        A row a step of `STEPS`: step, start (mean of the level that it starts from), value (mean
        change), low and high (95 % crossed bootstrap interval of the change).

    Examples
    --------
    >>> names = ("policy", "naive", "expected", "method", "oracle", "grades")
    >>> levels = {name: np.full((2, 3), 0.5 + 0.05 * n) for n, name in enumerate(names)}
    >>> steps = ledger(levels, bootstraps=10, rng=np.random.default_rng(1))
    >>> dict(zip(steps["step"], steps["value"].round(2)))
    {'clicks': 0.05, 'correction': 0.05, 'noise': -0.05, 'theta': -0.1, 'variance': 0.05}
    """
    import pandas as pd

    changes = np.array([levels[end] - levels[start] for start, end in STEPS.values()])
    low, high = crossed_bootstrap(changes, bootstraps=bootstraps, rng=rng)
    return pd.DataFrame(
        {
            "step": list(STEPS),
            "start": [float(levels[start].mean()) for start, _ in STEPS.values()],
            "value": changes.mean(axis=(1, 2)),
            "low": low,
            "high": high,
        }
    )

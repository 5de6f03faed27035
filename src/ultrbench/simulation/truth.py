"""The simulator's own propensities beside a log."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ultrbench.files import write_text


def write_truth(path: str | Path, theta: np.ndarray) -> None:
    """Write ``truth.csv``: the mean probability of examination by position; may be empty."""
    rows = [f"{k},{value!r}" for k, value in enumerate(theta.tolist(), start=1)]
    write_text(path, "\n".join(["position,theta", *rows]) + "\n")


def read_truth(paths: Sequence[str | Path]) -> np.ndarray | None:
    """Return the mean truth of some logging rounds, float64 ``[positions]``.

    None when a round brings no truth, as a click log of one's own may not.
    """
    rounds = [np.loadtxt(path, delimiter=",", skiprows=1, ndmin=2) for path in paths]
    if any(theta.size == 0 for theta in rounds):
        return None
    return np.mean([theta[:, 1] for theta in rounds], axis=0)

"""The simulator's own propensities beside a log."""

import csv
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ultrbench.files import write_text


def write_truth(path: str | Path, theta: np.ndarray, *, by_position: bool = True) -> None:
    """Write ``truth.csv``: a row ``position,theta,by_position`` for each position.

    Parameters
    ----------
    path : path-like
        File to write.
    theta : numpy.ndarray
        float64 ``[positions]``, mean probability of examination; empty where it is not known.
    by_position : bool
        Whether examination is a function of position alone. False: theta is its mean over the
        logged lists, and no estimate is to be called wrong for differing from it.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "truth.csv"
    >>> write_truth(path, np.array([0.68, 0.61]))
    >>> path.read_text().split()
    ['position,theta,by_position', '1,0.68,true', '2,0.61,true']
    """
    flag = str(by_position).lower()
    rows = [f"{k},{value!r},{flag}" for k, value in enumerate(theta.tolist(), start=1)]
    write_text(path, "\n".join(["position,theta,by_position", *rows]) + "\n")


def _rows(path: str | Path) -> list[dict[str, str]]:
    return list(csv.DictReader(Path(path).read_text(encoding="utf-8").splitlines()))


def read_truth(paths: Sequence[str | Path]) -> np.ndarray | None:
    """Return the mean truth of some logging rounds.

    Parameters
    ----------
    paths : sequence of path-like
        Files of `write_truth`, one a round.

    Returns
    -------
    numpy.ndarray or None
        float64 ``[positions]``; None when a round brings no truth, as a click log of one's own may
        not.

    Examples
    --------
    >>> import tempfile
    >>> paths = [Path(tempfile.mkdtemp()) / "truth.csv" for _ in range(2)]
    >>> write_truth(paths[0], np.array([0.8, 0.4])), write_truth(paths[1], np.array([0.6, 0.2]))
    (None, None)
    >>> read_truth(paths).round(9).tolist()
    [0.7, 0.3]
    """
    rounds = [[float(row["theta"]) for row in _rows(path)] for path in paths]
    return np.mean(rounds, axis=0) if all(rounds) else None


def is_by_position(paths: Sequence[str | Path]) -> bool:
    """Whether the truth of some logging rounds is one that estimates can be compared with.

    It is where it is known and examination was a function of position alone in every round, which
    a file without the column ``by_position`` claims. Otherwise no error of theta is to be printed.

    Parameters
    ----------
    paths : sequence of path-like
        As in `read_truth`.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "truth.csv"
    >>> write_truth(path, np.array([1.0, 0.7]), by_position=False)
    >>> is_by_position([path])
    False
    """
    rounds = [
        [(row.get("by_position") or "true").lower() == "true" for row in _rows(path)]
        for path in paths
    ]
    return all(flags and all(flags) for flags in rounds)

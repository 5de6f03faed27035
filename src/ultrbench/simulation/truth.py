"""The simulator's own propensities beside a log."""

import csv
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ultrbench.files import write_text

# What weights other than plain IPW need: alpha and beta of P(click) = alpha_k gamma + beta_k, and
# the chance to go on after a click.
PARAMETERS = ("alpha", "beta", "continuation")


def write_truth(path: str | Path, theta: np.ndarray, **columns: np.ndarray) -> None:
    """Write ``truth.csv``: a row ``position,theta`` for each position, and further columns.

    Parameters
    ----------
    path : path-like
        File to write.
    theta : numpy.ndarray
        float64 ``[positions]``, mean probability of examination; empty where it is not known.
    **columns : numpy.ndarray
        Other parameters of the click model by position, of `PARAMETERS`.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "truth.csv"
    >>> write_truth(path, np.array([0.68, 0.61]))
    >>> path.read_text().split()
    ['position,theta', '1,0.68', '2,0.61']
    """
    table = np.column_stack([theta, *columns.values()]).tolist()
    rows = [",".join([str(k), *map(repr, row)]) for k, row in enumerate(table, start=1)]
    write_text(path, "\n".join([",".join(["position", "theta", *columns]), *rows]) + "\n")


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
    rounds = []
    for path in paths:
        rows = Path(path).read_text(encoding="utf-8").split()[1:]
        if not rows:
            return None
        rounds.append([float(row.split(",")[1]) for row in rows])
    return np.mean(rounds, axis=0)


def read_truth_columns(paths: Sequence[str | Path]) -> dict[str, np.ndarray]:
    """Return the other parameters of the click model by position, mean of some logging rounds.

    Parameters
    ----------
    paths : sequence of path-like
        Files of `write_truth`, one a round.

    Returns
    -------
    dict of numpy.ndarray
        float64 ``[positions]`` by name, those of `PARAMETERS` that every round has.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "truth.csv"
    >>> write_truth(path, np.array([0.8, 0.4]), beta=np.array([0.1, 0.0]))
    >>> read_truth_columns([path])["beta"].tolist()
    [0.1, 0.0]
    """
    rounds = [list(csv.DictReader(Path(path).read_text().splitlines())) for path in paths]
    if not all(rounds):
        return {}
    return {
        name: np.mean([[float(row[name]) for row in rows] for rows in rounds], axis=0)
        for name in PARAMETERS
        if all(name in rows[0] for rows in rounds)
    }

"""The simulator's own propensities beside a log."""

import csv
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ultrbench.errors import UserError
from ultrbench.files import reading, write_text

# What weights other than plain IPW need: alpha and beta of P(click) = alpha_k gamma + beta_k, and
# the chance to go on after a click; with the least and the most that each can be.
LIMITS = {"alpha": (-1, 1), "beta": (0, 1), "continuation": (0, 1)}
PARAMETERS = tuple(LIMITS)


def write_truth(
    path: str | Path, theta: np.ndarray, *, by_position: bool = True, **parameters: np.ndarray
) -> None:
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
    **parameters : numpy.ndarray
        Further columns, of `PARAMETERS`: float64 ``[positions]``.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "truth.csv"
    >>> write_truth(path, np.array([0.68, 0.61]))
    >>> read_truth([path]).tolist()
    [0.68, 0.61]
    """
    names = ["position", "theta", "by_position", *parameters]
    flags = [str(by_position).lower()] * len(theta)
    columns = [map(repr, values.tolist()) for values in parameters.values()]
    rows = zip(range(1, len(theta) + 1), map(repr, theta.tolist()), flags, *columns, strict=True)
    write_text(path, "\n".join([",".join(names), *(",".join(map(str, row)) for row in rows), ""]))


def _rows(path: str | Path) -> list[dict[str, str]]:
    with reading(path, "a table position,theta"):
        lines = Path(path).read_text(encoding="utf-8-sig").splitlines()
        table = csv.DictReader(line for line in lines if line.strip())
        rows = list(table)
        if not {"position", "theta"} <= set(table.fieldnames or ()):
            raise ValueError("it has other columns")
        for row in rows:
            for name in ("position", "theta", *PARAMETERS):
                float(row.get(name, 1) or "")  # a line that is cut off lacks some
    return rows


def _rounds(paths: Sequence[str | Path]) -> list[list[dict[str, str]]]:
    """Rows of the rounds, which must have as many positions, if any."""
    rounds = [_rows(path) for path in paths]
    for path, rows in zip(paths, rounds, strict=True):
        if rows and len(rows) != len(max(rounds, key=len)):
            raise UserError(
                f"{path} has {len(rows)} positions, and that of another round"
                f" {len(max(rounds, key=len))}: rounds with as many are wanted"
            )
    return rounds


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

    Raises
    ------
    ultrbench.errors.UserError
        Where the rounds have different numbers of positions, or a file is no table.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "truth.csv"
    >>> write_truth(path, np.empty(0))
    >>> read_truth([path]) is None
    True
    """
    rounds = [[float(row["theta"]) for row in rows] for rows in _rounds(paths)]
    return np.mean(rounds, axis=0) if all(rounds) else None


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
    rounds = _rounds(paths)
    if not all(rounds):
        return {}
    return {
        name: np.mean([[float(row[name]) for row in rows] for rows in rounds], axis=0)
        for name in PARAMETERS
        if all(name in rows[0] for rows in rounds)
    }


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

"""Propensities that somebody else estimated, as a table."""

import csv
from pathlib import Path

import numpy as np

from ultrbench.errors import UserError
from ultrbench.files import decimal, write_text


def read_own_propensity(path: Path, positions: int) -> np.ndarray:
    """Read propensities relative to position 1 from a table of one's own.

    Parameters
    ----------
    path : pathlib.Path
        ``.csv`` with the columns position, and relative (theta_k / theta_1) or theta, in the order
        of the positions, as the ``theta.csv`` of a study.
    positions : int
        Positions that the click log shows.

    Returns
    -------
    numpy.ndarray
        float64 ``[positions]``.

    Raises
    ------
    UserError
        Where a column or a position is missing, or a propensity has no usable inverse.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "mine.csv"
    >>> _ = path.write_text("position,theta\\n1,0.8\\n2,0.4\\n")
    >>> read_own_propensity(path, 2).tolist()
    [1.0, 0.5]
    """
    form = "wanted is a table with the columns position, and relative or theta"
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
        rows = [[cell.strip() for cell in row] for row in csv.reader(lines, strict=True) if row]
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"{path}: {form} ({error})") from None
    columns = rows.pop(0) if rows else []
    ragged = any(len(row) != len(columns) for row in rows)
    given = {
        name: [row[columns.index(name)] for row in rows]
        for name in ("position", "relative", "theta")
        if columns.count(name) == 1 and not ragged
    }
    there = [name for name in ("relative", "theta") if name in given]
    if ragged or "position" not in given or not there:
        found = f"the columns {', '.join(columns)}"[:80] + " in some lines alone" * ragged
        raise UserError(f"{path}: it has {found}; {form}, once each")
    known = [name for name in there if any(given[name])]
    if not known:
        raise UserError(f"{path}: no line has a number in the columns {', '.join(there)}")
    try:
        position, value = (np.array([decimal(t) for t in given[n]]) for n in ("position", known[0]))
    except ValueError as error:
        raise UserError(f"{path}: {error}; {form}, all numbers") from None
    if not np.array_equal(position, np.arange(1, len(position) + 1)):
        raise UserError(f"{path}: the positions must be 1, 2, 3, ... in this order")
    if len(position) != positions:
        raise UserError(
            f"{path}: it has {len(position)} positions, and the click log shows {positions}"
        )
    wrong = np.flatnonzero(~((value > 1e-100) & (value < 1e100)))
    if len(wrong):
        raise UserError(
            f"{path}: {known[0]} at position {wrong[0] + 1} is {value[wrong[0]]}; a number above 0"
            " is wanted"
        )
    return value / value[0]


def write_relative(path: Path, relative: np.ndarray) -> None:
    """Write propensities relative to position 1 as a ``theta.csv``.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "theta.csv"
    >>> write_relative(path, np.array([1.0, 0.5]))
    >>> read_own_propensity(path, 2).tolist()
    [1.0, 0.5]
    """
    rows = [f"{k},{value!r}" for k, value in enumerate(relative.tolist(), start=1)]
    write_text(path, "\n".join(["position,relative", *rows, ""]))

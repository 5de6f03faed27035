"""Files are renamed into place, so that no half file is ever taken for a whole one."""

import glob
import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import is_zipfile

import numpy as np

from ultrbench.errors import UserError

if TYPE_CHECKING:
    import pandas as pd


@contextmanager
def reading(path: str | os.PathLike[str], form: str) -> Iterator[None]:
    """Turn what a library says of a file that is cut off or of another kind into a sentence.

    Parameters
    ----------
    path : path-like
        The file that the block reads.
    form : str
        What the file ought to be.

    Raises
    ------
    ultrbench.errors.UserError
        Where the block cannot read it. That a file is not there, or not ours to read, stays an
        `OSError`.

    Examples
    --------
    >>> with reading("a.json", "JSON"):
    ...     json.loads("{")
    Traceback (most recent call last):
        ...
    ultrbench.errors.UserError: a.json cannot be read as JSON (Expecting property name enclosed in
    double quotes: line 1 column 2 (char 1)): it is cut off, damaged or something else. Make it
    again; what belongs to a study comes again with snakemake once it is deleted
    """
    try:
        yield
    except (UserError, MemoryError):
        raise
    except Exception as error:  # of the many kinds that zip, npy, arrow and JSON have
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise UserError(
            f"{path} cannot be read as {form} ({error}): it is cut off, damaged or something else."
            " Make it again; what belongs to a study comes again with snakemake once it is deleted"
        ) from error


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path beside `path`; rename it to `path` when the block succeeds.

    Parameters
    ----------
    path : path-like
        The file to write; its folder is made if it is missing.

    Yields
    ------
    pathlib.Path
        Where to write; it keeps the suffix of `path`. Removed when the block raises.

    Examples
    --------
    >>> import tempfile
    >>> target = Path(tempfile.mkdtemp()) / "a.txt"
    >>> with replacing(target) as half:
    ...     _ = half.write_text("whole")
    >>> target.read_text()
    'whole'
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    half = half_of(path)
    try:
        yield half
        half.replace(path)
    finally:
        half.unlink(missing_ok=True)


def half_of(path: Path) -> Path:
    """Return where this process prepares `path`, without what killed processes left of theirs.

    Parameters
    ----------
    path : pathlib.Path
        A file or folder to be, in a folder that is there.

    Examples
    --------
    >>> half_of(Path("a.pdf")).suffix
    '.pdf'
    """
    for old in path.parent.glob(f".{glob.escape(path.stem)}.*.partial{glob.escape(path.suffix)}"):
        owner = re.search(r"\.(\d+)\.partial", old.name)
        # In a container numbers come again: what has this process's own is of another before.
        if owner is None or (int(owner[1]) != os.getpid() and _runs(int(owner[1]))):
            continue
        if old.is_dir():
            shutil.rmtree(old)
        else:
            old.unlink(missing_ok=True)
    return path.with_name(f".{path.stem}.{os.getpid()}.partial{path.suffix}")


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:  # somebody else's
        pass
    return True


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a UTF-8 text file atomically.

    Parameters
    ----------
    path : path-like
        As in `replacing`.
    text : str
        Content, written as it is: line ends are not translated.

    Examples
    --------
    >>> import tempfile
    >>> target = Path(tempfile.mkdtemp()) / "new folder" / "a.txt"
    >>> write_text(target, "whole")
    >>> target.read_bytes()
    b'whole'
    """
    with replacing(path) as half:
        half.write_text(text, encoding="utf-8", newline="")


def write_json(path: str | os.PathLike[str], value: Any) -> None:
    """Write JSON atomically, keys in the order given.

    Parameters
    ----------
    path : path-like
        As in `replacing`.
    value : object
        What JSON can hold.

    Raises
    ------
    ValueError
        When there is a NaN or an infinity in it: JSON has none.

    Examples
    --------
    >>> import tempfile
    >>> target = Path(tempfile.mkdtemp()) / "a.json"
    >>> write_json(target, {"b": 1, "a": [0.1]})
    >>> read_json(target)
    {'b': 1, 'a': [0.1]}
    """
    write_text(path, json.dumps(value, indent=1, allow_nan=False) + "\n")


def read_json(path: str | os.PathLike[str]) -> Any:
    """Read a JSON file.

    Parameters
    ----------
    path : path-like
        File to read.

    Returns
    -------
    object
        What it holds.

    Raises
    ------
    ultrbench.errors.UserError
        Where it is no JSON.

    Examples
    --------
    >>> import tempfile
    >>> target = Path(tempfile.mkdtemp()) / "a.json"
    >>> write_json(target, None)
    >>> read_json(target) is None
    True
    """
    with reading(path, "JSON"):
        return json.loads(Path(path).read_text(encoding="utf-8"))


def write_arrays(path: str | os.PathLike[str], arrays: Mapping[str, np.ndarray]) -> None:
    """Write named arrays to one ``.npz`` file atomically; equal arrays give equal bytes.

    Parameters
    ----------
    path : path-like
        As in `replacing`; its suffix is ``.npz``.
    arrays : mapping of str to numpy.ndarray
        By name.

    Raises
    ------
    ValueError
        When an array holds Python objects, which only a pickle could hold.

    Examples
    --------
    >>> import tempfile
    >>> target = Path(tempfile.mkdtemp()) / "a.npz"
    >>> write_arrays(target, {"theta": np.ones(2)})
    >>> read_arrays(target)
    {'theta': array([1., 1.])}
    """
    with replacing(path) as half:
        np.savez(half, allow_pickle=False, **arrays)


def read_arrays(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """Read the named arrays of an ``.npz`` file.

    Parameters
    ----------
    path : path-like
        File to read.

    Returns
    -------
    dict of str to numpy.ndarray
        In the order in which they were written.

    Raises
    ------
    ultrbench.errors.UserError
        Where it is no whole ``.npz`` file, or holds a pickle.

    Examples
    --------
    >>> import tempfile
    >>> target = Path(tempfile.mkdtemp()) / "a.npz"
    >>> write_arrays(target, {"b": np.array(["x"]), "a": np.arange(2)})
    >>> list(read_arrays(target))
    ['b', 'a']
    """
    with reading(path, "arrays (.npz)"), Path(path).open("rb") as file:
        if not is_zipfile(file):  # of which numpy says that it might be a pickle to be trusted
            raise ValueError("it is no zip archive")
        file.seek(0)
        with np.load(file, allow_pickle=False) as archive:
            return dict(archive)


def sha256_of(path: str | os.PathLike[str]) -> str:
    """Return the SHA-256 checksum of a file.

    Examples
    --------
    >>> sha256_of(os.devnull)[:8]
    'e3b0c442'
    """
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def decimal(text: str) -> float:
    """Read a decimal number; `float` would take 0_4, a slip for 0.4, for 4.

    Parameters
    ----------
    text : str
        What a cell of a table says; nothing is NaN.

    Raises
    ------
    ValueError
        Where it is no number.

    Examples
    --------
    >>> decimal("0.4"), decimal("")
    (0.4, nan)
    """
    if "_" in text:
        raise ValueError(f"could not convert string to float: {text!r}")
    return float(text or "nan")


def read_table(
    path: str | os.PathLike[str], columns: Mapping[str, type], **options: Any
) -> "pd.DataFrame":
    """Read a table that a stage wrote: ``.parquet``, or ``.csv`` whose last line has an end.

    Parameters
    ----------
    path : path-like
        File to read.
    columns : mapping of str to type
        Columns that it must have, and what is in them; further ones may be there.
    **options
        Of `pandas.read_csv`.

    Raises
    ------
    ultrbench.errors.UserError
        Where it is no such table.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "a.csv"
    >>> write_text(path, "method,error\\ndla,0.25\\n")
    >>> read_table(path, {"method": str, "error": float})["error"].tolist()
    [0.25]
    """
    import pandas as pd

    path = Path(path)
    with reading(path, f"a table with the columns {', '.join(columns)}"):
        if path.suffix == ".parquet":
            frame = pd.read_parquet(path)
        else:
            text = path.read_text(encoding="utf-8")
            if not text.endswith("\n"):
                raise ValueError("its last line has no end")
            frame = pd.read_csv(StringIO(text), dtype=dict(columns), **options)
        if lacking := columns.keys() - set(frame):
            raise ValueError(f"it lacks {', '.join(sorted(lacking))}")
    return frame

"""Files are renamed into place, so that no half file is ever taken for a whole one."""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np


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
    half = path.with_name(f".{path.stem}.{os.getpid()}.partial{path.suffix}")
    try:
        yield half
        half.replace(path)
    finally:
        half.unlink(missing_ok=True)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a UTF-8 text file atomically."""
    with replacing(path) as half:
        half.write_text(text, encoding="utf-8")


def write_json(path: str | os.PathLike[str], value: Any) -> None:
    """Write JSON atomically, keys in the order given; NaN and infinities are refused."""
    write_text(path, json.dumps(value, indent=1, allow_nan=False) + "\n")


def read_json(path: str | os.PathLike[str]) -> Any:
    """Read a JSON file."""
    return json.loads(Path(path).read_text(encoding="utf-8"))


def write_arrays(path: str | os.PathLike[str], arrays: Mapping[str, np.ndarray]) -> None:
    """Write named arrays to one ``.npz`` file atomically; equal arrays give equal bytes."""
    with replacing(path) as half:
        np.savez(half, allow_pickle=False, **arrays)


def read_arrays(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """Read the named arrays of an ``.npz`` file; pickled content is refused."""
    with np.load(path, allow_pickle=False) as archive:
        return dict(archive)

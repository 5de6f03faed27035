"""One split (train, vali or test) of a learning-to-rank data set, in memory and on disk."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ultrbench.files import read_arrays, reading, replacing, write_arrays
from ultrbench.seeding import stream

SPLITS = ("train", "vali", "test")


@dataclass(frozen=True)
class Split:
    """Queries with their documents, in canonical order (query, then document as in the file).

    Attributes
    ----------
    features : numpy.ndarray
        float32 ``[documents, features]``; values beyond float32 are NaN. Memory-mapped when read
        from disk.
    grades : numpy.ndarray
        uint8 ``[documents]``, relevance grades 0..ymax.
    query_ptr : numpy.ndarray
        int64 ``[queries + 1]``; query ``q`` has the rows ``query_ptr[q]:query_ptr[q + 1]``.
    query_ids : numpy.ndarray
        text ``[queries]``, as named in the source.

    Examples
    --------
    >>> ptr, ids = np.array([0, 2, 3]), np.array(["7", "9"])
    >>> split = Split(np.zeros((3, 1)), np.array([0, 1, 2]), ptr, ids)
    >>> split.lengths.tolist(), split.query_of_row.tolist()
    ([2, 1], [0, 0, 1])
    """

    features: np.ndarray
    grades: np.ndarray
    query_ptr: np.ndarray
    query_ids: np.ndarray

    @property
    def lengths(self) -> np.ndarray:
        """Documents a query, int64 ``[queries]``."""
        return np.diff(self.query_ptr)

    @property
    def query_of_row(self) -> np.ndarray:
        """Query index of each document row, int64 ``[documents]``."""
        return np.repeat(np.arange(len(self.query_ids)), self.lengths)


def split_files(folder: str | Path, name: str) -> tuple[Path, Path]:
    """Return the two files of a split: features (``.npy``) and lists (``.npz``).

    Parameters
    ----------
    folder, name
        As in `write_split`.

    Returns
    -------
    tuple of pathlib.Path
        Features, then lists.

    Examples
    --------
    >>> [file.name for file in split_files("data", "vali")]
    ['vali.features.npy', 'vali.lists.npz']
    """
    return Path(folder) / f"{name}.features.npy", Path(folder) / f"{name}.lists.npz"


def write_split(split: Split, folder: str | Path, name: str) -> None:
    """Write a split to the two files of `split_files`, each atomically.

    Parameters
    ----------
    split : Split
        Written in the types that `Split` documents.
    folder : path-like
        Folder of the data set.
    name : {"train", "vali", "test"}
        Which split it is.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> write_split(
    ...     Split(np.eye(2), np.array([0, 4]), np.array([0, 2]), np.array(["q1"])), folder, "test"
    ... )
    >>> read_split(folder, "test").grades.tolist()
    [0, 4]
    """
    features, lists = split_files(folder, name)
    with replacing(features) as half:
        np.save(half, np.ascontiguousarray(split.features, dtype=np.float32), allow_pickle=False)
    write_arrays(
        lists,
        {
            "grades": split.grades.astype(np.uint8),
            "query_ptr": split.query_ptr.astype(np.int64),
            "query_ids": split.query_ids.astype(np.str_),
        },
    )


def read_split(folder: str | Path, name: str) -> Split:
    """Read a split; the features stay on disk and are read where they are used.

    Parameters
    ----------
    folder, name
        As in `write_split`, whose example reads a split back.

    Returns
    -------
    Split
        Its features are a read-only memory map.

    Raises
    ------
    UserError
        Where a file is not whole, or the two are not of one split.
    """
    features, lists = split_files(folder, name)
    arrays = read_arrays(lists)
    with reading(features, "an array (.npy)"):
        matrix = np.lib.format.open_memmap(features, mode="r")
        if matrix.offset + matrix.nbytes != features.stat().st_size:  # a map of more is no error
            raise ValueError(f"{features.stat().st_size} bytes for {list(matrix.shape)} numbers")
    with reading(lists, f"the lists of {features.name}"):
        split = Split(features=matrix, **arrays)
        sizes = (len(split.grades), int(split.query_ptr[-1]))
        if matrix.ndim != 2 or matrix.dtype != np.float32 or set(sizes) != {len(matrix)}:
            raise ValueError(f"{sizes[0]} grades, {matrix.dtype} features {list(matrix.shape)}")
    return split


def hide_features(features: np.ndarray, share: float, seed: int) -> np.ndarray:
    """Blank a random share of the features, so that trees can split on none of them.

    Parameters
    ----------
    features : numpy.ndarray
        float32 ``[documents, features]``.
    share : float
        From 0 to below 1, of the features; rounded down.
    seed : int
        Replicate seed. A greater share hides what a smaller one hides, and more.

    Returns
    -------
    numpy.ndarray
        As `features`, in a copy where there is something to hide.

    Examples
    --------
    >>> hide_features(np.ones((1, 4), np.float32), 0.5, 1).sum()
    np.float32(2.0)
    """
    # 0.1 + 0.2 of ten features is three of them, and what is below 1 is never all.
    count = min(int(round(share * features.shape[1], 9)), features.shape[1] - 1)
    if not count:
        return features
    blanked = np.array(features)
    blanked[:, stream(seed, "hidden features").permutation(features.shape[1])[:count]] = 0
    return blanked

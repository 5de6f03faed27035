"""The train, vali and test file of a data set, out of an archive or folder of any layout.

Nothing is written under a name from the archive: a member is streamed into a file that we name.
"""

import bz2
import gzip
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from lzma import LZMAError
from pathlib import Path, PurePosixPath
from typing import IO, Any, NamedTuple

from ultrbench.errors import UserError

SUFFIXES = (".zip", ".tar.gz", ".tgz", ".tar.bz2")

# LETOR text packs 5- to 20-fold; a far higher ratio is a broken or hostile archive.
_MAX_RATIO = 200
_FREE_BYTES = 64 << 20
# No piece of a tar is read whole but headers, and those of real archives hold a path.
_PIECE_BYTES = 1 << 20

_FAILURES = (
    zipfile.BadZipFile,
    tarfile.TarError,
    zlib.error,
    LZMAError,
    struct.error,
    EOFError,
    NotImplementedError,
    OSError,
    ValueError,
    RecursionError,  # of headers that announce headers
)


class _Member(NamedTuple):
    name: str
    open: Callable[[], IO[bytes] | None]  # gives None where it is no plain file
    encrypted: bool = False


def locate_files(
    source: str | Path, patterns: Mapping[str, str], work: str | Path
) -> dict[str, Path]:
    """Find the files of a data set in a folder, or unpack them from an archive.

    Parameters
    ----------
    source : path-like
        A folder, or an archive that ends in .zip, .tar.gz, .tgz or .tar.bz2. Where it holds none
        of the files but one archive, that one is looked into (one level deep).
    patterns : mapping
        From a split to the end of the path of its file, for example ``Fold1/train.txt``;
        wildcards ``*`` and ``?`` stand for parts of one name.
    work : path-like
        Existing folder that takes unpacked files.

    Returns
    -------
    dict
        From a split to its file, below `source` (a folder) or `work`.

    Raises
    ------
    UserError
        Where a file is missing or ambiguous, or the archive is broken, encrypted or hostile.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> (folder / "sample").mkdir()
    >>> _ = (folder / "sample" / "train.txt").write_text("0 qid:1 1:1")
    >>> locate_files(folder, {"train": "train.txt"}, folder)["train"].parent.name
    'sample'
    """
    source, work = Path(source), Path(work)
    allowance = _allowance(source)
    names = _names(source, allowance)
    if not any(_matches(name, pattern) for name in names for pattern in patterns.values()):
        inner = [name for name in names if name.lower().endswith(SUFFIXES)]
        if len(inner) == 1:
            suffix = next(s for s in SUFFIXES if inner[0].lower().endswith(s))
            packed = _fetch(source, {"inner": inner[0]}, work, suffix, allowance)["inner"]
            if source.is_dir():
                allowance = _allowance(packed)
            try:
                return _located(packed, patterns, _names(packed, allowance), work, allowance)
            except UserError as error:  # the user knows no unpacked file
                raise UserError(str(error).replace(str(packed), str(source / inner[0]))) from None
    return _located(source, patterns, names, work, allowance)


def _allowance(source: Path) -> int:
    """Return how many bytes may come out of an archive, with all that archives in it hold."""
    return _FREE_BYTES + _MAX_RATIO * source.stat().st_size


def _located(
    source: Path, patterns: Mapping[str, str], names: list[str], work: Path, allowance: int
) -> dict[str, Path]:
    wanted = {split: _only(source, names, pattern) for split, pattern in patterns.items()}
    if len(set(wanted.values())) < len(wanted):
        raise UserError(
            f"{source}: {', '.join(wanted)} are to come from {', '.join(wanted.values())}; each"
            " needs a file of its own. Name them by the key files of the data set."
        )
    return _fetch(source, wanted, work, ".txt", allowance)


def _matches(name: str, pattern: str) -> bool:
    return bool(PurePosixPath(pattern).parts) and PurePosixPath(name).match(pattern)


def _only(source: Path, names: list[str], pattern: str) -> str:
    """Return the one name that matches."""
    found = [name for name in names if _matches(name, pattern)]
    if len(found) == 1:
        return found[0]
    if found:
        raise UserError(
            f"{source}: several files match {pattern}: {', '.join(sorted(found)[:5])}. Name one by"
            " the key files of the data set, as in files: {train: Fold1/train.txt, ...}."
        )
    held = ", ".join(sorted(names)[:10]) or "nothing"
    more = f" and {len(names) - 10} more" if len(names) > 10 else ""
    raise UserError(
        f"{source}: no file matches {pattern}; it holds {held}{more}. Name the files by the key"
        " files of the data set."
    )


def _names(source: Path, allowance: int) -> list[str]:
    """List the files below a folder or in an archive."""
    if source.is_dir():
        return [p.relative_to(source).as_posix() for p in sorted(source.rglob("*")) if p.is_file()]
    with _members(source, allowance) as members:
        names = [member.name for member in members]
    for name in names:
        path = PurePosixPath(name.replace("\\", "/"))
        if path.is_absolute() or ".." in path.parts:
            raise UserError(
                f"{source}: the archive holds {name!r}, a path that leads out of its folder; it is"
                " not used. Get the archive from its publisher."
            )
    return names


def _fetch(
    source: Path, wanted: Mapping[str, str], work: Path, suffix: str, allowance: int
) -> dict[str, Path]:
    """Return the wanted files: where they are in a folder, unpacked from an archive."""
    if source.is_dir():
        return {key: source / name for key, name in wanted.items()}
    keys = {name: key for key, name in wanted.items()}
    files = {}
    with _members(source, allowance) as members:
        for member in members:
            if member.name not in keys or keys[member.name] in files:
                continue
            if member.encrypted:
                raise UserError(
                    f"{source}: {member.name} is encrypted. Unpack it yourself and put the folder"
                    " down instead."
                )
            stream = member.open()
            if stream is None:
                raise UserError(
                    f"{source}: {member.name} is a link or no plain file and is not followed."
                    " Unpack it yourself and put the folder down instead."
                )
            key = keys[member.name]
            files[key] = work / f"{key}{suffix}"
            with stream, files[key].open("wb") as file:
                while block := stream.read(1 << 20):
                    allowance -= len(block)
                    if allowance < 0:
                        raise UserError(_absurd(source))
                    file.write(block)
    return files


def _absurd(source: Path) -> str:
    return (
        f"{source}: the archive unpacks to more than {_MAX_RATIO} times its size, which no LETOR"
        " text does; it is not used. Get it anew, or unpack it yourself and put the folder down."
    )


@contextmanager
def _members(source: Path, allowance: int) -> Iterator[Iterator[_Member]]:
    """Iterate over the members of an archive; what breaks on the way becomes a sentence."""
    name = source.name.lower()
    if not name.endswith(SUFFIXES):
        raise UserError(
            f"{source} is neither a folder nor an archive that ends in {', '.join(SUFFIXES)}."
        )
    try:
        if name.endswith(".zip"):
            with zipfile.ZipFile(source) as archive:
                yield _zip_members(archive)
        else:
            # Only packed ones have checksums, at their very end.
            opened = bz2.BZ2File if name.endswith(".bz2") else gzip.GzipFile
            with opened(source) as stream:
                bounded: Any = _Bounded(stream, source, allowance)
                with tarfile.open(fileobj=bounded, mode="r:") as archive:
                    yield _tar_members(archive)
                    while bounded.read(_PIECE_BYTES):
                        pass
    except _FAILURES as error:
        raise UserError(
            f"{source} cannot be unpacked: {error}. If it is broken or cut short, get it anew."
        ) from None


def _nothing() -> None:
    """Open what is no plain file."""


def _zip_members(archive: zipfile.ZipFile) -> Iterator[_Member]:
    for info in archive.infolist():
        if not info.is_dir():
            link = (info.external_attr >> 16) & 0o170000 == 0o120000
            opened = _nothing if link else partial(archive.open, info)
            yield _Member(info.filename, opened, bool(info.flag_bits & 1))


class _Bounded:
    """What is unpacked of a tar, as far as an archive of LETOR text could reach."""

    def __init__(self, stream: gzip.GzipFile | bz2.BZ2File, source: Path, allowance: int) -> None:
        self.stream, self.source, self.allowance = stream, source, allowance
        self.tell = stream.tell

    def read(self, size: int) -> bytes:
        if not 0 <= size <= _PIECE_BYTES:
            raise tarfile.ReadError(f"a header of {size:,} bytes")
        self._refuse_beyond(self.tell())
        return self.stream.read(size)

    def seek(self, position: int) -> None:
        self._refuse_beyond(position)  # what is only skipped is decompressed as well
        self.stream.seek(position)

    def _refuse_beyond(self, position: int) -> None:
        if position > self.allowance:
            raise UserError(_absurd(self.source))


def _tar_members(archive: tarfile.TarFile) -> Iterator[_Member]:
    for info in archive:
        if info.size < 0:  # which leads back, to the same member without end
            raise tarfile.ReadError(f"a member of {info.size:,} bytes")
        if not info.isdir():
            opened = partial(archive.extractfile, info) if info.isreg() else _nothing
            yield _Member(info.name, opened)

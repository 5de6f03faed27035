"""Stage data: from a registry entry to the split files of a data set."""

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from ultrbench.datasets.split import SPLITS, Split, read_split, split_files, write_split
from ultrbench.errors import UserError
from ultrbench.files import half_of, sha256_of, write_json


def find_source(entry: Mapping[str, Any], downloads: str | Path) -> Path | None:
    """Return the archive or folder of a letor entry that is there, if one is.

    Parameters
    ----------
    entry : mapping
        Registry entry of kind ``letor``.
    downloads : path-like
        The folder that relative places of ``path`` start from.

    Examples
    --------
    >>> import tempfile
    >>> find_source({"path": ["a.zip"]}, tempfile.mkdtemp()) is None
    True
    """
    return next((place for place in _places(entry, downloads) if place.exists()), None)


def _places(entry: Mapping[str, Any], downloads: str | Path) -> list[Path]:
    # By text, as `downloads/..` does not exist while the downloads folder does not.
    return [Path(os.path.normpath(Path(downloads, place))) for place in entry["path"]]


def fetch_dataset(entry: Mapping[str, Any], name: str, downloads: str | Path) -> Path:
    """Return the archive or folder of a letor entry, downloaded if it is absent and has addresses.

    Parameters
    ----------
    entry, name, downloads
        Registry entry of kind ``letor``, its name, and the folder for downloads. A download goes
        to the first place of ``path``; the addresses are tried in order. Of processes that want
        the same file, one downloads it.

    Raises
    ------
    UserError
        Where there is no source: what is missing, where to ask for it, where to put it.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "a.zip").write_bytes(b"")
    >>> fetch_dataset({"path": ["a.zip"]}, "mine", folder).name
    'a.zip'
    """
    from ultrbench.datasets.download import download
    from ultrbench.locks import alone

    failures = []
    target = _places(entry, downloads)[0]
    with alone(target) if entry.get("urls") else nullcontext():
        if source := find_source(entry, downloads):
            return source
        for address in entry.get("urls", []):
            try:
                return download(address["url"], target, address.get("sha256"))
            except UserError as error:
                failures.append(str(error))
    raise UserError("\n".join([*failures, _absent(entry, name, downloads)]))


def _absent(entry: Mapping[str, Any], name: str, downloads: str | Path) -> str:
    places = " or ".join(map(str, _places(entry, downloads)))
    obtain = f" {entry['obtain']}" if "obtain" in entry else ""
    return f"The data set {name} is not there.{obtain} Put it at {places}."


def prepare_dataset(
    entry: Mapping[str, Any], name: str, downloads: str | Path, out: str | Path
) -> None:
    """Write the split files of a data set and ``dataset.json``, which describes them.

    Parameters
    ----------
    entry : mapping
        Registry entry, as `ultrbench.datasets.registry.load_registry` gives it.
    name : str
        Name of the data set.
    downloads : path-like
        Folder of what was downloaded or put down.
    out : path-like
        Folder for the files of `ultrbench.datasets.split.split_files` and ``dataset.json``
        (name, entry, for each split queries, documents, grade shares, values beyond float32 and
        queries without relevant documents, and the sha256 checksums of the source files and of the
        features).

    Raises
    ------
    UserError
        Where the source is absent, not what the registry expects, or malformed.

    Examples
    --------
    >>> import tempfile
    >>> out = Path(tempfile.mkdtemp())
    >>> queries = {"train": 2, "vali": 1, "test": 1}
    >>> entry = {"kind": "synthetic", "version": 1, "seed": 1, "ymax": 4, "features": 10,
    ...          "documents": 8, "queries": queries}
    >>> prepare_dataset(entry, "tiny", out, out)
    >>> sorted(path.name for path in out.iterdir())[:2]
    ['dataset.json', 'test.features.npy']
    """
    if entry["kind"] == "synthetic":
        from ultrbench.datasets.synthetic import write_synthetic

        for split in SPLITS:
            write_synthetic(entry, split, out)
        missing: dict[str, int] = dict.fromkeys(SPLITS, 0)
        checksums: dict[str, str] = {}
    else:
        missing, checksums = _convert(entry, name, Path(downloads), Path(out))
    splits = {}
    for split in SPLITS:
        splits[split] = _summary(read_split(out, split), entry["ymax"], missing[split])
    write_json(
        Path(out, "dataset.json"),
        {
            "name": name,
            "ymax": entry["ymax"],
            "features": entry["features"],
            "splits": splits,
            "sha256": checksums,
            "features_sha256": {split: sha256_of(split_files(out, split)[0]) for split in SPLITS},
            "entry": dict(entry),
        },
    )


def _summary(split: Split, ymax: int, missing: int) -> dict[str, Any]:
    counts = np.bincount(split.grades, minlength=ymax + 1)
    best = np.maximum.reduceat(split.grades, split.query_ptr[:-1])
    return {
        "queries": len(split.query_ids),
        "documents": len(split.grades),
        "grade_shares": (counts / counts.sum()).tolist(),
        "queries_without_relevant": int((best == 0).sum()),
        "values_beyond_float32": missing,
    }


def _convert(
    entry: Mapping[str, Any], name: str, downloads: Path, out: Path
) -> tuple[dict[str, int], dict[str, str]]:
    """Write the splits of a letor entry; return their missing values and all checksums."""
    from ultrbench.datasets.archives import locate_files
    from ultrbench.datasets.letor import read_letor

    source = find_source(entry, downloads)
    if source is None:
        raise UserError(_absent(entry, name, downloads))
    checksums, missing = {}, {}
    if source.is_file():
        checksums[source.name] = _checked(source, entry.get("sha256", {}).get(source.name))
    patterns = {s: p.replace("{fold}", str(entry.get("fold"))) for s, p in entry["files"].items()}
    out.mkdir(parents=True, exist_ok=True)
    seen: dict[str, str] = {}
    with _workspace(out) as work:
        files = locate_files(source, patterns, work)
        for split in SPLITS:
            expected = entry.get("file_sha256", {}).get(split)
            checksums[split] = _checked(files[split], expected, f"{source} ({patterns[split]})")
        for split in SPLITS:
            try:
                read, missing[split] = read_letor(files[split], entry["features"], entry["ymax"])
            except UserError as error:
                # An unpacked file is gone when the user reads this: name its place in the source.
                shown = str(error).replace(f"{work}/{split}.txt", str(source / patterns[split]))
                raise UserError(shown) from None
            _check_counts(entry, name, split, read)
            for query in read.query_ids.tolist():
                if seen.setdefault(query, split) != split:
                    raise UserError(
                        f"{name}: the query {query} is both in {seen[query]} and in {split}; a"
                        " query in two splits leaks grades. Give each query to one split."
                    )
            write_split(read, out, split)
            del read
    return missing, checksums


@contextmanager
def _workspace(out: Path) -> Iterator[Path]:
    """Yield a folder for unpacked files, and take away what a killed run left of its own."""
    work = half_of(out / "unpacked")
    work.mkdir()
    try:
        yield work
    finally:
        shutil.rmtree(work)


def _checked(path: Path, expected: str | None, shown: str | None = None) -> str:
    """Return the sha256 of a file, refusing another than expected; the file stays untouched."""
    found = sha256_of(path)
    if expected and found != expected:
        raise UserError(
            f"{shown or path}: the sha256 checksum is {found}, the registry expects {expected}."
            " Nothing was deleted. Get the file anew, or correct the registry if yours is right."
        )
    return found


def _check_counts(entry: Mapping[str, Any], name: str, split: str, read: Split) -> None:
    counts = entry.get("counts", {})
    if counts.get("fold", entry.get("fold")) != entry.get("fold"):
        return
    found = {"queries": len(read.query_ids), "documents": len(read.grades)}
    for what, expected in counts.get(split, {}).items():
        if found[what] != expected:
            raise UserError(
                f"{name}: {split} has {found[what]:,} {what}, the registry expects {expected:,}."
                " Get the data anew, or correct counts in the registry if yours are right."
            )

"""What a run was made of, configuration, versions, commit and checksums, and what disk it takes."""

import platform
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

from ultrbench.files import read_json, write_json, write_text


def git_commit(folder: Path) -> str | None:
    """Return the commit of a checkout, with ``+changes`` where its files differ; else None."""

    def git(*arguments: str) -> str:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    try:
        changes = "+changes" if git("status", "--porcelain", "--untracked-files=no") else ""
        return git("rev-parse", "HEAD") + changes
    except (OSError, subprocess.CalledProcessError):
        return None


def write_provenance(
    path: Path, datasets: Mapping[str, Path], *, config: dict[str, Any], source: Path
) -> None:
    """Write ``provenance.json`` beside the results.

    Parameters
    ----------
    path : pathlib.Path
        ``.json`` to write.
    datasets : mapping of str to pathlib.Path
        The ``dataset.json`` of each data set, with sizes and checksums.
    config : dict
        The configuration with all defaults filled in.
    source : pathlib.Path
        The folder of the workflow, whose commit is noted.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "provenance.json"
    >>> write_provenance(path, {}, config={"list_size": 10}, source=path.parent)
    >>> read_json(path)["config"]
    {'list_size': 10}
    """
    packages = {dist.metadata["Name"]: dist.version for dist in distributions()}
    write_json(
        path,
        {
            "commit": git_commit(source),
            "python": platform.python_version(),
            "machine": platform.machine(),
            "packages": dict(sorted(packages.items(), key=lambda item: item[0].lower())),
            "datasets": {name: read_json(file) for name, file in datasets.items()},
            "config": config,
        },
    )


def write_disk_use(path: Path, results: Path, downloads: Path) -> None:
    """Write a Markdown table of what files lie on disk, by what they are.

    Parameters
    ----------
    path : pathlib.Path
        ``.md`` to write.
    results, downloads : pathlib.Path
        The folders to add up; files that another job takes away meanwhile count as none.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> write_text(folder / "results/runs/train.clicks.parquet", "x" * 250_000)
    >>> write_disk_use(folder / "disk.md", folder / "results", folder / "downloads")
    >>> (folder / "disk.md").read_text().splitlines()[-2:]
    ['| click logs | 1 | 0.2 |', '| total | 1 | 0.2 |']
    """
    sizes: dict[str, list[int]] = {}
    for folder in (downloads, results):
        for file in sorted(folder.rglob("*")):
            with suppress(FileNotFoundError):
                if file.is_file():
                    size = file.stat().st_size
                    kind = "downloads" if folder == downloads else _kind(file.relative_to(results))
                    sizes.setdefault(kind, []).append(size)
    sizes["total"] = [size for kind in sizes.values() for size in kind]
    rows = [f"| {kind} | {len(found)} | {sum(found) / 1e6:.1f} |" for kind, found in sizes.items()]
    write_text(path, "\n".join(["| what | files | MB |", "|---|---:|---:|", *rows, ""]))


def _kind(file: Path) -> str:
    """Name what a file below ``results`` is by its place."""
    folder, *inner = file.parts
    if folder != "runs":
        return folder if inner else "pages"
    if file.suffix == ".parquet":
        return "click logs"
    return "propensities" if "theta" in inner else "rankers and truths"

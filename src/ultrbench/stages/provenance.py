"""What a run was made of: configuration, versions, commit and data checksums."""

import platform
import subprocess
from collections.abc import Mapping
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

from ultrbench.files import read_json, write_json


def git_commit(folder: Path) -> str | None:
    """Return the commit of a checkout, with ``+changes`` where files differ from it; else None."""

    def git(*arguments: str) -> str:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    try:
        changes = "+changes" if git("status", "--porcelain") else ""
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

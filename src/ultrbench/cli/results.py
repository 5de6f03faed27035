"""The results folder of a study, and the part of it that a command is about."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ultrbench.cli.shared import choose
from ultrbench.errors import UserError
from ultrbench.files import read_json, reading


@dataclass(frozen=True)
class Place:
    """A data set, policy and setting of a results folder."""

    results: Path
    dataset: str
    policy: str
    setting: str

    @property
    def data(self) -> Path:
        """Folder of the prepared data set."""
        return self.results / "data" / self.dataset

    @property
    def runs(self) -> Path:
        """Folder of the logs and rankers of all replicates."""
        return self.results / "runs" / self.dataset / self.policy / self.setting

    @property
    def evaluation(self) -> Path:
        """Folder of the per-query metrics and tests."""
        return self.results / "evaluation" / self.dataset / self.policy / self.setting

    def candidates(self, seed: int) -> Path:
        """File of the candidates of a replicate."""
        return self.results / "policies" / self.dataset / self.policy / f"seed{seed}.npz"

    def round(self, seed: int, track: str, number: int) -> Path:
        """Folder of a logging round."""
        return self.runs / f"seed{seed}" / track / f"round{number}"

    @property
    def seeds(self) -> list[int]:
        """Replicates that are there."""
        found = (path.name.removeprefix("seed") for path in self.runs.glob("seed*"))
        return sorted(int(name) for name in found if name.isdigit())


def add_place_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that `find_place` reads."""
    parser.add_argument(
        "results",
        nargs="?",
        type=Path,
        default=Path("results"),
        help="results folder of a study (default results)",
    )
    for name in ("dataset", "policy", "setting"):
        parser.add_argument(
            f"--{name}", metavar="NAME", help=f"{name} of the study, where it has several"
        )


def only(given: Any, found: Sequence[Any], what: str, where: Path) -> Any:
    """Return what was given, or the one thing there is to choose.

    Raises
    ------
    UserError
        Where there is nothing, or several and none was named.

    Examples
    --------
    >>> only(None, ["weak"], "policy", Path("results"))
    'weak'
    >>> only(None, ["strong", "weak"], "policy", Path("results/runs"))
    Traceback (most recent call last):
        ...
    ultrbench.errors.UserError: results/runs has several: strong, weak; choose one with --policy
    """
    if given is not None:
        if given not in found:
            choose(str(given), [str(name) for name in found], what, f" in {where}")
        return given
    if len(found) != 1:
        raise UserError(
            f"{where} has several: {', '.join(map(str, found))}; choose one with --{what}"
        )
    return found[0]


def find_place(options: argparse.Namespace) -> Place:
    """Return the data set, policy and setting that the arguments name.

    Raises
    ------
    UserError
        Where the folder has no results, or the names do not fit.
    """
    folder = options.results / "runs"
    names = []
    for what in ("dataset", "policy", "setting"):
        found = sorted(path.name for path in folder.glob("*") if path.is_dir())
        if not found:
            raise UserError(
                f"{folder} has no click logs of a study; name the results folder of one, or run"
                " `snakemake --cores all` first"
            )
        names.append(only(getattr(options, what), found, what, folder))
        folder = folder / names[-1]
    return Place(options.results, *names)


def study_config(results: Path) -> dict[str, Any] | None:
    """Return what the study noted of itself when it ended (``provenance.json``), if it did."""
    path = results / "provenance.json"
    if not path.is_file():
        return None
    with reading(path, "what a study notes of itself"):
        noted = read_json(path)
        if not {"config", "commit"} <= noted.keys():
            raise ValueError("it says nothing of the configuration")
    return noted

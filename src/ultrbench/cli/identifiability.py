"""Report what a click log can tell of propensities, and which estimators can work on it.

Takes simulated logs and one's own. Prints the report; --output writes it as .md, .csv and .json."""

import argparse
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

from ultrbench.cli.shared import checked_logs, dataset_folder, log_sources, new_files, new_folder

EXAMPLE = "log"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument(
        "log", nargs="+", type=Path, help="folder of a click log, one for each logging round"
    )
    parser.add_argument(
        "--dataset", type=Path, help="folder of the prepared data set, to look its documents up"
    )
    parser.add_argument("--output", type=Path, help="folder to write")


def run(options: argparse.Namespace) -> None:
    """Report on the log."""
    from ultrbench.stages.diagnosis import LogFiles, write_identifiability

    for folder in options.log:
        log_sources(folder)
    dataset = dataset_folder(options.dataset) if options.dataset else None
    name = options.log[0].resolve().name
    if options.output:
        new_files(options.output)
    with TemporaryDirectory(prefix="ultrbench-") as work:
        stem = Path(work, "identifiability")
        with checked_logs(options.log, dataset) as logs:
            log = LogFiles("click log", name, "train", 0, logs)
            write_identifiability([log], stem.with_suffix(".json"), stem)
        print(stem.with_suffix(".md").read_text(encoding="utf-8"))
        if options.output:
            with new_folder(options.output) as folder:
                shutil.copytree(work, folder, dirs_exist_ok=True)
            print(f"wrote {options.output}")

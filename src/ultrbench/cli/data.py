"""Prepare a data set: LETOR text, or the generated one, as arrays.

Either SOURCE is a folder or archive with train.txt, vali.txt and test.txt, or --dataset names an
entry of the registry, which says all the rest."""

import argparse
import os
from pathlib import Path

from ultrbench.cli.shared import add_config_arguments, choose, new_folder, read_entries
from ultrbench.errors import UserError

EXAMPLE = """--dataset synthetic --output synthetic
  python -m ultrbench data MSLR-WEB10K/Fold1 --features 136 --output mslr"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("source", nargs="?", type=Path, help="folder or archive of LETOR text")
    parser.add_argument("--dataset", metavar="NAME", help="entry of the registry instead")
    parser.add_argument("--features", type=int, metavar="N", help="features of SOURCE")
    parser.add_argument(
        "--ymax", type=int, default=4, metavar="N", help="top grade of SOURCE (default 4)"
    )
    parser.add_argument(
        "--files",
        nargs=3,
        default=["train.txt", "vali.txt", "test.txt"],
        metavar=("TRAIN", "VALI", "TEST"),
        help="files in SOURCE (default train.txt vali.txt test.txt)",
    )
    parser.add_argument("--output", type=Path, required=True, help="folder to write")
    add_config_arguments(parser)


def run(options: argparse.Namespace) -> None:
    """Prepare the data set."""
    from ultrbench.datasets.split import SPLITS
    from ultrbench.stages.data import fetch_dataset, prepare_dataset

    if (options.source is None) == (options.dataset is None):
        raise UserError("Give either a folder or archive of LETOR text, or --dataset NAME.")
    if options.dataset:
        config, registry = read_entries(options)
        name, downloads = options.dataset, config["downloads"]
        entry = registry[choose(name, registry, "data set")]
        if entry["kind"] == "letor":
            fetch_dataset(entry, name, downloads)
    else:
        if not options.source.exists():
            raise UserError(f"{options.source}: no such folder or archive")
        if not 1 <= (options.features or 0) <= 100_000 or not 1 <= options.ymax <= 31:
            raise UserError(
                "A folder of LETOR text needs --features N, the highest feature number of its"
                " lines, such as 136, up to 100,000; --ymax, its top grade, goes from 1 to 31."
            )
        name, downloads = Path(os.path.realpath(options.output)).name, Path()
        entry = {
            "kind": "letor",
            "ymax": options.ymax,
            "features": options.features,
            "path": [str(options.source)],
            "files": dict(zip(SPLITS, options.files, strict=True)),
        }
    with new_folder(options.output) as folder:
        try:
            prepare_dataset(entry, name, downloads, folder)
        except UserError as error:
            named = str(error).replace("by the key files of the data set", "by --files")
            raise UserError(named) from None
    print(f"wrote {options.output}")

"""Simulate a click log: show the candidates of a policy and log what is clicked.

Writes the first logging round of a setting: displayed lists and clicks of each split, truth.csv,
and log.json, which says what the log was made of."""

import argparse
import os
from pathlib import Path

import ultrbench
from ultrbench.cli.shared import (
    ABOUT_LOG,
    add_config_arguments,
    candidates_file,
    dataset_folder,
    new_folder,
    read_definition,
    seed_argument,
)
from ultrbench.errors import UserError
from ultrbench.study import LOGS

EXAMPLE = """synthetic strong.npz --setting static --seed 1 --output log
  python -m ultrbench clicks synthetic strong.npz --set eta=2 sessions=50000 --output severe"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("dataset", type=Path, help="folder of a prepared data set")
    parser.add_argument("candidates", type=Path, help=".npz of the command policies")
    parser.add_argument(
        "--setting", default="static", metavar="NAME", help="entry of `settings` (default static)"
    )
    parser.add_argument(
        "--log",
        choices=LOGS,
        default="initial",
        help="of the setting: the policy's own order (default), a share of shuffled lists, or an"
        " independent second log",
    )
    seed_argument(parser)
    parser.add_argument("--output", type=Path, required=True, help="folder to write")
    add_config_arguments(parser, "the setting")


def run(options: argparse.Namespace) -> None:
    """Simulate the log."""
    from ultrbench.datasets.split import SPLITS
    from ultrbench.files import write_json
    from ultrbench.stages.clicks import LOGGED_SPLITS, simulate_clicks

    dataset = dataset_folder(options.dataset)
    candidates = candidates_file(options.candidates, dataset)
    _, setting = read_definition(options, "settings", options.setting)
    if "click_log" in setting:
        raise UserError(
            f"The setting {options.setting} has a click log of its own, {setting['click_log']};"
            " there is nothing to simulate."
        )
    with new_folder(options.output) as folder:
        simulate_clicks(
            dataset,
            candidates,
            folder,
            setting=setting,
            log=options.log,
            round_=0,
            seed=options.seed,
            splits=SPLITS if options.log == "initial" else LOGGED_SPLITS,
        )
        write_json(
            folder / ABOUT_LOG,
            {
                "dataset": os.path.relpath(dataset, options.output),
                "candidates": os.path.relpath(candidates, options.output),
                "setting": {k: v for k, v in setting.items() if k != "methods"},
                "log": options.log,
                "seed": options.seed,
                "ultrbench": ultrbench.__version__,
            },
        )
    print(f"wrote {options.output}")

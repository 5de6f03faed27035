"""Estimate theta, the probability that a position is examined, from a click log.

Prints the table; --output writes it, with a .json beside it that says whether the iteration
converged, and for a joint estimator a .txt with its ranker."""

import argparse
import inspect
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from ultrbench.cli.shared import (
    add_config_arguments,
    checked_logs,
    dataset_folder,
    log_sources,
    new_files,
    read_definition,
    seed_argument,
    with_suffix,
)
from ultrbench.errors import UserError

EXAMPLE = "log --estimator crossfit --output theta.csv"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument(
        "log", nargs="+", type=Path, help="folder of a click log, one for each logging round"
    )
    parser.add_argument("--estimator", required=True, metavar="NAME", help="entry of `estimators`")
    parser.add_argument(
        "--dataset",
        type=Path,
        help="folder of the prepared data set, for estimators that learn from features (default:"
        " what the log folder names)",
    )
    seed_argument(parser)
    parser.add_argument("--output", type=Path, help=".csv to write")
    add_config_arguments(parser, "the estimator")


def run(options: argparse.Namespace) -> None:
    """Estimate the propensities."""
    from ultrbench.files import read_json
    from ultrbench.propensity.estimate import find_estimator
    from ultrbench.stages.propensity import estimate_propensity
    from ultrbench.study import JOINT, SIZE

    config, estimator = read_definition(options, "estimators", options.estimator)
    sources = [log_sources(log) for log in options.log]
    dataset = options.dataset or sources[0].get("dataset")
    features = inspect.signature(find_estimator(estimator["kind"])).parameters.get("features")
    if features is None:
        dataset = options.dataset
    elif dataset is None and features.default is inspect.Parameter.empty:
        raise UserError(
            f"The estimator {options.estimator} learns from features, and {options.log[0]} does"
            " not say of which data set; add --dataset FOLDER (of a study: results/data/NAME)."
        )
    if dataset is not None:
        dataset_folder(dataset)
    joint = estimator["kind"] in JOINT
    with TemporaryDirectory(prefix="ultrbench-") as work:
        table = with_suffix(options.output, ".csv") if options.output else Path(work, "theta.csv")
        report, model = table.with_suffix(".json"), table.with_suffix(".txt")
        new_files(table, report, *([model] if joint else []))
        with checked_logs(options.log, dataset) as logs:
            estimate_propensity(
                dataset,
                sources[0].get("candidates"),
                logs,
                table,
                report,
                name=options.estimator,
                estimator=estimator,
                seed=options.seed,
                training={key: config["training"][key] for key in SIZE} if joint else None,
                model=model if joint else None,
            )
        outcome = read_json(report)
        if not outcome["converged"]:
            print("The iteration ended without settling.", file=sys.stderr)
        for note in outcome["notes"]:
            print(f"note: {note}", file=sys.stderr)
        if options.output:
            print(f"wrote {table} and {report}")
        else:
            print(table.read_text(encoding="utf-8"), end="")

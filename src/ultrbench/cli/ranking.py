"""Train a ranker on the clicks of a log, weighted by inverse propensities.

Writes theta.csv as it was used, ranker.txt (LightGBM), ranker.json (validation curve),
test_scores.npz, and for each validation a TREC run of the test queries, with qrels.txt beside it
for the command evaluation."""

import argparse
import os
import sys
from pathlib import Path

from ultrbench.cli.shared import (
    add_config_arguments,
    candidates_file,
    checked_logs,
    choose,
    dataset_folder,
    log_sources,
    new_folder,
    read_definition,
    seed_argument,
)
from ultrbench.errors import UserError

EXAMPLE = "log --theta theta.csv --output ranker"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument(
        "log", nargs="+", type=Path, help="folder of a click log, one for each logging round"
    )
    parser.add_argument("--theta", type=Path, required=True, help=".csv of the command propensity")
    parser.add_argument(
        "--dataset", type=Path, help="folder of the data set (default: what the log folder names)"
    )
    parser.add_argument(
        "--candidates",
        type=Path,
        help=".npz of the command policies, for validation by grades (default: what the log folder"
        " names)",
    )
    parser.add_argument(
        "--ranker", default="softmax", metavar="NAME", help="entry of `rankers` (default softmax)"
    )
    seed_argument(parser)
    parser.add_argument("--output", type=Path, required=True, help="folder to write")
    add_config_arguments(parser, "`training`")


def run(options: argparse.Namespace) -> None:
    """Train the ranker."""
    from ultrbench.propensity.own import read_own_propensity, write_relative
    from ultrbench.simulation.log import log_files, read_log
    from ultrbench.simulation.truth import read_truth
    from ultrbench.stages.ranking import train_ranker
    from ultrbench.stages.trec import export_qrels, export_runs
    from ultrbench.study import stopping_cutoff

    config, training = read_definition(options, "training")
    ranker = config["rankers"][choose(options.ranker, config["rankers"], "ranker")]
    if ranker["objective"] == "joint":
        raise UserError(
            f"The ranker {options.ranker} is the one that a joint estimator trains itself: it is"
            " the .txt that the command propensity writes; nothing is trained here."
        )
    sources = log_sources(options.log[0])
    dataset = options.dataset or sources.get("dataset")
    if dataset is None:
        raise UserError(
            f"{options.log[0]} does not say of which data set it is; add --dataset FOLDER"
            " (of a study: results/data/NAME)."
        )
    dataset_folder(dataset)
    candidates = options.candidates or sources.get("candidates")
    if "grades" in training["validation"]:
        if candidates is None:
            raise UserError(
                "Validation by grades needs the candidates of the policy; add --candidates FILE, or"
                " grow all trees with --set validation=[fixed], or validate by clicks with"
                " --set validation=[clicks], if the log has clicks on validation queries."
            )
        candidates_file(candidates, dataset)
    with checked_logs(options.log, dataset) as logs, new_folder(options.output) as folder:
        positions = read_log(*log_files(logs[0], "train")).positions
        theta = folder / "theta.csv"
        write_relative(theta, read_own_propensity(options.theta, positions))
        unknown = read_truth([log / "truth.csv" for log in logs]) is None
        if unknown and "clicks" in training["validation"]:
            print(f"validation clicks are weighted by {options.theta}", file=sys.stderr)
        scores = folder / "test_scores.npz"
        train_ranker(
            dataset,
            candidates,
            logs,
            folder / "ranker.txt",
            folder / "ranker.json",
            scores,
            method={"target": "clicks", "weights": "ipw", "lists": "all"},
            objective=ranker["objective"],
            training=training,
            eps=0.0,
            cutoff=stopping_cutoff(config),
            seed=options.seed,
            theta=theta,
            validation_theta=theta if unknown else None,
        )
        # A column of the run, in UTF-8, whatever the folder is called.
        tag = "-".join(os.fsencode(options.output.name).decode(errors="replace").split())
        runs = {(tag, scores, v): folder / f"{v}.run" for v in training["validation"]}
        export_runs(dataset, runs)
        export_qrels(dataset, folder / "qrels.txt")
    print(f"wrote {options.output}")

"""Train a logging policy and keep the top of each query.

Writes the candidates as .npz, and beside it a .json that says what the policy was trained on and
the binned features of the candidates for LightGBM (.bin)."""

import argparse
from pathlib import Path

from ultrbench.cli.shared import (
    add_config_arguments,
    dataset_folder,
    new_files,
    read_definition,
    seed_argument,
    with_suffix,
)

EXAMPLE = "synthetic --policy strong --seed 1 --output strong.npz"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("dataset", type=Path, help="folder of a prepared data set")
    parser.add_argument("--policy", required=True, metavar="NAME", help="entry of `policies`")
    seed_argument(parser)
    parser.add_argument("--output", type=Path, required=True, help=".npz to write")
    add_config_arguments(parser, "the policy")


def run(options: argparse.Namespace) -> None:
    """Train the policy."""
    from ultrbench.stages.features import binned_files
    from ultrbench.stages.policies import train_policy
    from ultrbench.study import list_size, policy_queries

    output = with_suffix(options.output, ".npz")
    report = output.with_suffix(".json")
    new_files(output, report, *binned_files(output))
    dataset = dataset_folder(options.dataset)
    config, policy = read_definition(options, "policies", options.policy)
    apart = ("policy_queries", "list_size")
    train_policy(
        dataset,
        output,
        report,
        policy={key: value for key, value in policy.items() if key not in apart},
        policy_queries=policy_queries(config, options.policy),
        list_size=list_size(config, options.policy),
        seed=options.seed,
    )
    print(f"wrote {output} and {report}")

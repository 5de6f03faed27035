"""``python -m ultrbench.evaluation run.txt qrels.txt --metrics nDCG@10 ERR@10``."""

import argparse
import sys
from collections.abc import Sequence

from ultrbench.errors import UserError
from ultrbench.evaluation.trec import evaluate_run, read_qrels, read_run
from ultrbench.terminal import leave


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    parser.add_argument(
        "run_file", metavar="RUN", help="lines: query Q0 document rank score tag; or .gz"
    )
    parser.add_argument("qrels", metavar="QRELS", help="lines: query 0 document grade; or .gz")
    parser.add_argument(
        "--metrics",
        nargs="+",
        default=["nDCG@10"],
        metavar="NAME",
        help="for example nDCG@10 ERR@10 'RBP(p=.8)@10' AP RR R@100 P@5 Hit@1 (default nDCG@10)",
    )
    parser.add_argument(
        "--ymax",
        type=int,
        metavar="GRADE",
        help="top grade, for ERR (default: the highest grade of the qrels)",
    )
    parser.add_argument(
        "--queries",
        choices=["equal", "judged", "common"],
        default="equal",
        help="equal: run and qrels must have the same queries; judged: those missing in the run "
        "count 0 (trec_eval -c); common: those in both (trec_eval's default)",
    )
    parser.add_argument("--per-query", action="store_true", help="print each query, then the mean")


def run(options: argparse.Namespace) -> None:
    """Print the metrics of a TREC run, tab-separated."""
    run, qrels = read_run(options.run_file), read_qrels(options.qrels)
    table = evaluate_run(run, qrels, options.metrics, ymax=options.ymax, queries=options.queries)
    if options.ymax is None and any(name.startswith("ERR") for name in table):
        top = max(grade for query in table.index for grade in qrels[query].values())
        print(f"ERR: top grade {top}, the highest of the qrels (see --ymax)", file=sys.stderr)
    left_out = len(run.keys() | qrels.keys()) - len(table)
    if left_out:
        print(f"Left out, as not in both files: {left_out} queries", file=sys.stderr)
    rows = [*table.itertuples(name=None)] if options.per_query else []
    rows.append((f"mean of {len(table)}", *table.mean()))
    # Cells of a column have one width, so that tabs align.
    first = max(len("query"), *(len(row[0]) for row in rows))
    widths = [max(8, len(name)) for name in table.columns]
    names = [f"{name:>{width}}" for name, width in zip(table.columns, widths, strict=True)]
    print(f"{'query':{first}}", *names, sep="\t")
    for query, *values in rows:
        cells = [f"{value:{width}.6f}" for value, width in zip(values, widths, strict=True)]
        print(f"{query:{first}}", *cells, sep="\t")


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the metrics of a TREC run; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m ultrbench.evaluation",
        usage="%(prog)s RUN QRELS [--metrics NAME ...] [--ymax GRADE] "
        "[--queries equal|judged|common] [--per-query]",
        description="Evaluate a TREC run file. Ties are ordered by descending document name, as "
        "trec_eval does; unjudged documents have grade 0; nDCG has gain 2^grade - 1.",
    )
    add_arguments(parser)
    try:
        run(parser.parse_args(arguments))
    except UserError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    leave(main)

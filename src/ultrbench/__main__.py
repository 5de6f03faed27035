"""``python -m ultrbench``: each stage alone, on files."""

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module

from ultrbench.cli.shared import choose
from ultrbench.errors import UserError
from ultrbench.stages.job import one_thread, sentence_of
from ultrbench.terminal import leave

COMMANDS = (
    "data",
    "policies",
    "clicks",
    "identifiability",
    "propensity",
    "ranking",
    "evaluation",
    "export",
    "score",
)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m ultrbench",
        description="Each stage alone, on files, by the functions that the workflow calls.",
        epilog="`python -m ultrbench COMMAND --help` shows an example. The whole study is"
        " `snakemake --cores all`; docs/command-line.md goes through the commands.",
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name in COMMANDS:
        module = import_module(f"ultrbench.cli.{name}")
        summary, _, more = (module.__doc__ or name).partition("\n\n")
        command = commands.add_parser(
            name,
            help=summary[0].lower() + summary[1:].rstrip("."),
            description=f"{summary}\n\n{more}".strip(),
            epilog=f"example:\n  python -m ultrbench {name} {module.EXAMPLE}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.add_arguments(command)
        command.set_defaults(call=module.run)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return the exit status: 0, or 2 after a mistake.

    Parameters
    ----------
    arguments : sequence of str, optional
        What follows ``python -m ultrbench``.

    Raises
    ------
    SystemExit
        With 0 after ``--help``, with 2 where the arguments do not fit.

    Examples
    --------
    >>> main(["identifiability", "no-such-folder"])
    2
    """
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    parser = _parser()
    if not arguments:
        parser.print_help(sys.stderr)
        return 2
    try:
        if not arguments[0].startswith("-"):
            choose(arguments[0], COMMANDS, "command")
        for word in arguments:
            if word.endswith("=--"):  # of which argparse makes an empty list
                raise UserError(f"{word}: a value is wanted after =")
        options = parser.parse_args(arguments)
        with one_thread():
            options.call(options)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except KeyboardInterrupt:
        print("ultrbench: interrupted", file=sys.stderr)
        return 130
    except Exception as error:
        sentence = sentence_of(error)
        if sentence is None and isinstance(error, OSError) and error.filename:
            sentence = f"{error.filename}: {error.strerror}"
        if sentence is None:
            raise
        print(f"ultrbench: {sentence}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    leave(main)

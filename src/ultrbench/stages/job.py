"""What every workflow script does around its stage function."""

import contextlib
import faulthandler
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ultrbench.errors import UserError

Part = Callable[[Any], list[Path]]


@contextlib.contextmanager
def job(snakemake: Any) -> Iterator[None]:
    """Run a stage with its output in the rule's log and one thread in every library.

    A `ultrbench.errors.UserError` ends the job with its sentence, in the log and on the terminal;
    any other exception ends it with a traceback in the log.
    """
    started = time.monotonic()
    with Path(snakemake.log[0]).open("w", buffering=1) as log:
        faulthandler.enable(log)
        try:
            with (
                contextlib.redirect_stdout(log),
                contextlib.redirect_stderr(log),
                _one_thread(),
            ):
                yield
        except UserError as error:
            print(error, file=log)
            print(f"ultrbench: {error}", file=sys.stderr)
            sys.exit(1)
        except Exception:
            traceback.print_exc(file=log)
            print(f"ultrbench: unexpected error, see {snakemake.log[0]}", file=sys.stderr)
            sys.exit(1)
        print(f"done in {time.monotonic() - started:.1f} s", file=log)


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1):
        yield


def replicates(snakemake: Any) -> Iterator[tuple[int, Part]]:
    """Yield each seed of a job with a function that picks the seed's files out of a file list.

    The replicates of a step are one job, since each would cost more to start than to run. Lists
    of files are ordered by seed first.
    """
    seeds = snakemake.params.seeds
    for index, seed in enumerate(seeds):

        def part(files: Any, index: int = index) -> list[Path]:
            size = len(files) // len(seeds)
            return [Path(file) for file in files[index * size : (index + 1) * size]]

        yield seed, part

"""Time and memory of a piece of work in a process of its own, and the row that a case prints.

Every other script of this folder is a benchmark: it prints csv, `HEADER` and then a row a case
(`report`), with the ratio to a reference that ran on the same machine within the same minutes.
Linux only, whose kernel keeps the memory peak and forgets that of the preparation when told to.
"""

import re
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

HEADER = "benchmark,case,seconds,reference_seconds,ratio,peak_mb,goal"


@dataclass(frozen=True)
class Measured:
    """What a piece of work took.

    Attributes
    ----------
    seconds : float
        Of processor time, the best of the repetitions: other work on the machine counts little.
    peak_mb : float
        Highest resident memory of the first run, its result included, above what the process held
        when it began, in 10^6 bytes.
    """

    seconds: float
    peak_mb: float


def measure(prepare: Callable[..., Callable[[], object]], *arguments, times: int = 5) -> Measured:
    """Run ``prepare(*arguments)()`` in a fresh process, the work `times` times.

    Parameters
    ----------
    prepare : callable
        A function of a module. It makes the input, does what must not be measured (imports,
        compilation) and returns the work, a callable without arguments.
    *arguments
        Of `prepare`; they are pickled.
    times : int
        Repetitions of the work.
    """
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        return process.submit(_measured, prepare, arguments, times).result()


def _measured(prepare, arguments, times):
    work = prepare(*arguments)
    Path("/proc/self/clear_refs").write_text("5")
    held, seconds = _peak_mb(), []
    for _ in range(times):
        start = time.process_time()
        result = work()
        seconds.append(time.process_time() - start)
        if len(seconds) == 1:
            peak = _peak_mb() - held
        del result
    return Measured(min(seconds), peak)


def _peak_mb():
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\s*(\d+) kB", status)[1]) * 1024 / 1e6


def report(benchmark: str, case: str, ours: Measured, reference: float, goal: str) -> None:
    """Print the row of a case.

    Parameters
    ----------
    benchmark, case : str
        Without commas.
    ours : Measured
        What is judged.
    reference : float
        Seconds of the reference, scaled to the same amount of work.
    goal : str
        ``>= 10``: so many times as fast as the reference; ``<= 1.2``: at most so many times its
        seconds. More may follow; ``none`` judges nothing.
    """
    slower = ours.seconds / reference
    ratio = 1 / slower if goal.startswith(">=") else slower
    print(
        f"{benchmark},{case},{ours.seconds:.4g},{reference:.4g},{ratio:.3g},{ours.peak_mb:.0f},{goal}",
        flush=True,
    )

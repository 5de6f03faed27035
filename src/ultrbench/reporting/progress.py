"""A live view of a run, from the log that Snakemake keeps of it.

``python -m ultrbench.reporting.progress`` in the folder of the run; the run itself may go on in
another terminal, or have ended.
"""

import argparse
import re
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from ultrbench.errors import INTERRUPTED, UserError
from ultrbench.terminal import leave

EVERY = 2.0  # seconds between two looks
TAIL = 8  # lines of a failed job's log
_WIDTH = 24


@dataclass
class Run:
    """What a log of Snakemake tells of a run.

    Attributes
    ----------
    jobs, done : collections.Counter
        By rule: all jobs, and those that are finished.
    running : dict of int to (str, float)
        By job: its message and when it began, in seconds since 1970.
    failed : list of (str, str)
        Rule and log of each job that failed.
    seconds : dict of str to list of float
        By rule: how long its finished jobs took.
    cores : int
        Given to the run.
    stopped : bool
        Whether somebody stopped it, with Ctrl-C for example.
    ended : bool
        Whether Snakemake has said its last word.
    """

    jobs: Counter[str] = field(default_factory=Counter)
    done: Counter[str] = field(default_factory=Counter)
    running: dict[int, tuple[str, float]] = field(default_factory=dict)
    failed: list[tuple[str, str]] = field(default_factory=list)
    seconds: dict[str, list[float]] = field(default_factory=dict)
    cores: int = 1
    stopped: bool = False
    ended: bool = False

    @property
    def left(self) -> float | None:
        """Seconds of work left over the cores, by the mean of the finished jobs of each rule."""
        known = [second for seconds in self.seconds.values() for second in seconds]
        if not known:
            return None
        usual = sum(known) / len(known)
        mean = {rule: sum(took) / len(took) for rule, took in self.seconds.items()}
        work = sum((n - self.done[rule]) * mean.get(rule, usual) for rule, n in self.jobs.items())
        return work / self.cores


def read_run(text: str) -> Run:
    """Read the log of a run, whole or not.

    Parameters
    ----------
    text : str
        A file of ``.snakemake/log``.

    Examples
    --------
    >>> run = read_run('''Provided cores: 2
    ... job      count
    ... -----  -------
    ... train        2
    ... total        2
    ...
    ... [Mon Nov 30 19:26:48 2026]
    ... Job 3: Train the ranker of dla
    ... [Mon Nov 30 19:26:52 2026]
    ... Finished jobid: 3 (Rule: train)
    ... ''')
    >>> dict(run.jobs), dict(run.done), run.running, run.left
    ({'train': 2}, {'train': 1}, {}, 2.0)
    """
    run = Run()
    now, stats, failing, signalled, started = 0.0, False, "", False, {}
    for line in text.splitlines():
        if stats:
            found = re.fullmatch(r"(\w+) +(\d+)", line)
            if found and found[1] != "total":
                run.jobs[found[1]] = int(found[2])
            stats = bool(found) or line.startswith("---")
        elif re.fullmatch(r"job +count", line):
            stats = True
            run.jobs.clear()  # a later table, after checkpoints, is the whole one
        elif found := re.fullmatch(r"\[(\w{3} \w{3} [ \d]\d [\d:]{8} \d{4})\]", line):
            with suppress(ValueError):  # a log that is damaged
                now = datetime.strptime(found[1], "%a %b %d %H:%M:%S %Y").timestamp()
        elif found := re.match(r"Job (\d+): (.*)", line):
            run.running[int(found[1])] = (found[2], now)
            started[int(found[1])] = now
        elif found := re.match(r"Finished jobid: (\d+) \(Rule: (\w+)\)", line):
            job, rule = int(found[1]), found[2]
            run.done[rule] += 1
            run.running.pop(job, None)
            if job in started:
                run.seconds.setdefault(rule, []).append(now - started[job])
        elif found := re.match(r"Error in rule (\w+):", line):
            failing = found[1]
        elif failing and (found := re.match(r" +jobid: (\d+)", line)):
            run.running.pop(int(found[1]), None)
        elif failing and (found := re.match(r" +log: (\S+)", line)):
            if not signalled:
                run.failed.append((failing, found[1]))
            failing, signalled = "", False
        elif found := re.match(r"Provided cores: (\d+)", line):
            run.cores = int(found[1])
        elif "Signals.SIGINT" in line or "Signals.SIGTERM" in line or "on user request" in line:
            run.stopped = True
            signalled = "Signals" in line  # the next error is that of a job that was told to end
        elif line.startswith(("Complete log(s):", "Nothing to be done")):
            run.ended = True
    return run


def rule_stages(workflow: Path) -> dict[str, str]:
    """Return the stage of each rule: the name of its rules file.

    Parameters
    ----------
    workflow : pathlib.Path
        Folder of the ``.smk`` files.
    """
    return {
        found[1]: file.stem
        for file in sorted(workflow.glob("*.smk"))
        for found in re.finditer(
            r"^(?:use rule \w+ as|rule) (\w+)\b", file.read_text(encoding="utf-8"), re.MULTILINE
        )
    }


def advice(tail: str) -> str:
    """Return what to try after a job failed, by the end of its log.

    Examples
    --------
    >>> advice("")
    'It ended without a word, as a job does that is killed, mostly for want of memory: use fewer \
--cores, or fewer sessions or documents, and start again.'
    """
    if "Traceback" in tail:
        return (
            "This is a fault of the program, not of your input. Please report the log and "
            "results/provenance.json or your configuration; all finished jobs are kept."
        )
    if not tail.strip() or "Fatal Python error" in tail or re.search(r"\d+%\|[^\n]*$", tail):
        return (
            "It ended without a word, as a job does that is killed, mostly for want of memory: "
            "use fewer --cores, or fewer sessions or documents, and start again."
        )
    return "Put right what the last line says and start again; all finished jobs are kept."


def last_lines(log: Path, count: int = TAIL) -> str:
    """Return the end of a log, of a progress bar its last state; nothing where there is no log."""
    if not log.exists():
        return ""
    text = log.read_bytes().decode("utf-8", errors="replace")  # a carriage return is kept
    lines = [line.rstrip("\r").rpartition("\r")[2].rstrip() for line in text.split("\n")]
    return "\n".join([line for line in lines if line][-count:])


def without_interrupted(run: Run, folder: Path) -> Run:
    """Return the run with jobs that Ctrl-C ended as stopped, not as failed: they say so in a word.

    Parameters
    ----------
    run : Run
        From `read_run`.
    folder : pathlib.Path
        What logs are relative to.
    """
    failed = [(rule, log) for rule, log in run.failed if last_lines(folder / log, 1) != INTERRUPTED]
    return replace(run, failed=failed, stopped=run.stopped or len(failed) < len(run.failed))


def advice_on(run: Run) -> list[str]:
    """Return a line on each job that failed: where its log is and what to try."""
    run = without_interrupted(run, Path())
    lines = [
        f"{rule} failed, see {log}. {advice(last_lines(Path(log)))}" for rule, log in run.failed
    ]
    return lines or ["Stopped. Start again: all finished jobs are kept."] * run.stopped


def failure_text(failed: Sequence[tuple[str, str]], folder: Path) -> list[str]:
    """Return the last lines of the log of each failed job, with what to try.

    Parameters
    ----------
    failed : sequence of (str, str)
        Rule and log.
    folder : pathlib.Path
        What logs are relative to.
    """
    lines = []
    for rule, log in failed:
        tail = last_lines(folder / log)
        lines += ["", f"FAILED {rule}; the end of {log}:"]
        lines += [f"    {line}" for line in tail.splitlines()] or ["    (nothing)"]
        lines += [f"  What to try: {advice(tail)}"]
    return lines


def view(run: Run, stages: Mapping[str, str], folder: Path, alive: bool, now: float) -> str:
    """Return the view of a run as text.

    Parameters
    ----------
    run : Run
        From `read_run`.
    stages : mapping of str to str
        Stage by rule, from `rule_stages`.
    folder : pathlib.Path
        Where the run takes place.
    alive : bool
        Whether its Snakemake process is there.
    now : float
        Seconds since 1970.
    """
    run = without_interrupted(run, folder)
    total, done = run.jobs.total(), run.done.total()
    # Of a target there is nothing to wait for.
    by_stage: dict[str, list[int]] = {}
    for rule, count in run.jobs.items():
        counts = by_stage.setdefault(stages.get(rule, "targets"), [0, 0])
        counts[0] += count
        counts[1] += run.done[rule]
    lines = [f"{_bar(done, total)} {done} of {total} jobs done, {len(run.failed)} failed"]
    lines[0] += f", {len(run.running)} running" if alive else ""
    if alive and done < total:
        lines[0] += "; time left: " + ("not known yet" if run.left is None else _time(run.left))
    lines += [
        f"  {stage:16s} {_bar(finished, count)} {finished} of {count}"
        for stage, (count, finished) in by_stage.items()
    ]
    if alive:
        for message, began in run.running.values():
            lines.append(f"running for {_time(now - began)}: {message}")
        first = min((began for _, began in run.running.values()), default=now)
        lines += [f"  {log}: {state}" for log, state in _bars(folder, first)]
    lines += failure_text(run.failed, folder)
    if not alive:
        lines.append(_ending(run, total, done))
    return "\n".join(lines)


def _ending(run: Run, total: int, done: int) -> str:
    if not (total or run.ended):
        return "The run ended before its first job; what it printed says why."
    if done == total:
        return "The run is finished."
    if run.failed:
        return "The run has ended with a failure."
    if run.stopped or run.ended:
        return "The run was stopped. Start it again: finished jobs are kept."
    return (
        "The run was killed. Start it again: finished jobs are kept; first `snakemake --unlock` "
        "if Snakemake says that the folder is locked."
    )


def _bars(folder: Path, since: float) -> list[tuple[str, str]]:
    """The progress bars that logs end in, of logs that were written to since a time."""
    logs = sorted((folder / "results/logs").rglob("*.log"))
    recent = [log for log in logs if log.stat().st_mtime >= since]
    states = [(str(log.relative_to(folder)), last_lines(log, 1)) for log in recent]
    return [(log, state) for log, state in states if re.search(r"\d+%\|", state)]


def _bar(done: int, total: int) -> str:
    full = _WIDTH * done // max(total, 1)
    return "[" + "#" * full + "." * (_WIDTH - full) + "]"


def _time(seconds: float) -> str:
    minutes, rest = divmod(max(0, round(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {rest:02d} s"


def is_running(folder: Path) -> bool:
    """Whether a Snakemake process works in a folder."""
    import psutil

    for process in psutil.process_iter(["cmdline", "cwd"]):
        about = process.info
        words = [Path(word).name for word in about["cmdline"] or []]
        if "snakemake" in words and about["cwd"] == str(folder.resolve()):
            return True
    return False


def look(folder: Path, log: Path | None = None) -> tuple[str, bool]:
    """Return the view of the newest run of a folder, and whether the run goes on.

    Parameters
    ----------
    folder : pathlib.Path
        Where Snakemake was started.
    log : pathlib.Path, optional
        The log of another run.

    Raises
    ------
    UserError
        When no run has started there.
    """
    logs = sorted((folder / ".snakemake/log").glob("*.snakemake.log"))
    if log is None and not logs:
        raise UserError(f"{folder}: no run has started here; `snakemake --cores all` starts one")
    # A start that was refused, as beside a run that goes on, leaves a log without jobs.
    files = [log] if log else logs[::-1]
    runs = [read_run(file.read_text(encoding="utf-8", errors="replace")) for file in files]
    run = next((run for run in runs if run.jobs), runs[0])
    alive = not run.ended and is_running(folder)
    text = view(run, rule_stages(folder / "workflow/rules"), folder, alive, time.time())
    return text, alive


def main(arguments: Sequence[str] | None = None) -> int:
    """Show a run until it ends; return 0."""
    parser = argparse.ArgumentParser(
        prog="python -m ultrbench.reporting.progress", description="Show how far a run is."
    )
    parser.add_argument("folder", nargs="?", default=".", type=Path, help="where snakemake runs")
    parser.add_argument("--once", action="store_true", help="show it once, and do not wait")
    options = parser.parse_args(arguments)
    try:
        text, alive = look(options.folder)
        while alive and not options.once and sys.stdout.isatty():
            print("\033[2J\033[H" + text + "\n(Ctrl-C ends this view, not the run)", flush=True)
            time.sleep(EVERY)
            text, alive = look(options.folder)
    except (UserError, OSError) as error:
        print(f"ultrbench: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 0
    print(("\033[2J\033[H" if sys.stdout.isatty() and not options.once else "") + text)
    return 0


if __name__ == "__main__":
    leave(main)

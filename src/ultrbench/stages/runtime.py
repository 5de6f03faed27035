"""Stage `runtime`: what jobs took, from the workflow's benchmark files."""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path

from ultrbench.errors import UserError
from ultrbench.files import reading, write_text


@dataclass(frozen=True)
class Runtime:
    """What the jobs of a stage took, or those of one estimator or method.

    Attributes
    ----------
    stage : str
        Stage.
    what : str
        Estimator (stage `propensity`) or method (stage `ranking`); empty for others.
    jobs : int
        Jobs with a benchmark file.
    seconds, cpu_seconds : float
        Of all jobs. Snakemake samples processor time, and misses some of short jobs.
    peak_mb : float
        Most memory of a job, resident.
    """

    stage: str
    what: str
    jobs: int
    seconds: float
    cpu_seconds: float
    peak_mb: float


def read_runtimes(benchmarks: Path) -> list[Runtime]:
    """Sum up the benchmark files below a folder.

    Parameters
    ----------
    benchmarks : pathlib.Path
        ``results/benchmarks``; its first level are the stages.

    Returns
    -------
    list of Runtime
        In the order of stages and names.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> head = "s\\tcpu_time\\tmax_rss\\n"
    >>> write_text(folder / "propensity/weak.dla.tsv", head + "9.5\\t6.0\\t200.5\\n")
    >>> write_text(folder / "propensity/strong.dla.tsv", head + "8.5\\t5.0\\t-\\n")
    >>> read_runtimes(folder)[0]
    Runtime(stage='propensity', what='dla', jobs=2, seconds=18.0, cpu_seconds=11.0, peak_mb=200.5)
    """
    jobs: dict[tuple[str, str], list[list[float]]] = {}
    for file in sorted(benchmarks.rglob("*.tsv")):
        stage = file.relative_to(benchmarks).parts[0]
        parts = file.stem.split(".")
        what = {"propensity": parts[-1], "ranking": parts[0]}.get(stage, "")
        jobs.setdefault((stage, what), []).append(_measured(file, "s", "cpu_time", "max_rss"))
    return [
        Runtime(*key, len(rows), sum(r[0] for r in rows), sum(r[1] for r in rows),
                max(r[2] for r in rows))
        for key, rows in sorted(jobs.items())
    ]  # fmt: skip


def write_runtimes(benchmarks: Path, out: Path) -> None:
    """Write what the jobs of a run took as ``.csv``, a row a `Runtime`.

    Parameters
    ----------
    benchmarks : pathlib.Path
        As in `read_runtimes`.
    out : pathlib.Path
        To write.
    """
    lines = [",".join(Runtime.__dataclass_fields__)]
    for row in read_runtimes(benchmarks):
        stage, what, jobs, *numbers = astuple(row)
        lines.append(",".join([stage, what, str(jobs), *(f"{n:.2f}" for n in numbers)]))
    write_text(out, "\n".join([*lines, ""]))


def write_runtime(
    rows: Sequence[tuple[Mapping[str, str], Path]], replicates: int, out: Path
) -> None:
    """Write CPU seconds a replicate, a row a benchmark file.

    Parameters
    ----------
    rows : sequence of (mapping, pathlib.Path)
        What a row is about, by column, with the ``.tsv`` that Snakemake wrote for its job.
    replicates : int
        Replicates in each job.
    out : pathlib.Path
        ``.csv`` to write; ``cpu_seconds`` is empty for a job that left no benchmark or was too
        short for one.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "dla.tsv").write_text("s\\tcpu_time\\n9.5\\t6.0\\n")
    >>> write_runtime([({"method": "dla"}, folder / "dla.tsv")], 3, folder / "runtime.csv")
    >>> (folder / "runtime.csv").read_text().splitlines()
    ['method,cpu_seconds', 'dla,2.00']
    """
    lines = [",".join([*rows[0][0], "cpu_seconds"])]
    for about, file in rows:
        seconds = ""
        if file.exists():
            [measured] = _measured(file, "cpu_time")
            seconds = f"{measured / replicates:.2f}" if measured else ""
        lines.append(",".join([*about.values(), seconds]))
    write_text(out, "\n".join([*lines, ""]))


def _measured(file: Path, *columns: str) -> list[float]:
    if not file.is_file():
        raise UserError(f"{file} is no file any more: take it away, and start again")
    with reading(file, "what Snakemake measured of a job"):
        *_, row = csv.DictReader(file.read_text(encoding="utf-8").splitlines(), delimiter="\t")
        return [_number(row[name]) for name in columns]


def _number(text: str) -> float:
    """What Snakemake measured; 0 where a job was too short to be measured."""
    try:
        return float(text)
    except ValueError:
        return 0.0

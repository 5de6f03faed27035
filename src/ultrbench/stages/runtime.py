"""Stage `runtime`: the CPU time of estimators, from the workflow's benchmark files."""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

from ultrbench.files import write_text


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
            *_, last = csv.DictReader(file.read_text(encoding="utf-8").splitlines(), delimiter="\t")
            measured = last["cpu_time"]
            seconds = f"{float(measured) / replicates:.2f}" if _is_number(measured) else ""
        lines.append(",".join([*about.values(), seconds]))
    write_text(out, "\n".join([*lines, ""]))


def _is_number(text: str) -> bool:
    try:
        return float(text) > 0
    except ValueError:
        return False

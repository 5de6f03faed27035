"""What the workflow itself costs in the default study: the start-up of its jobs, and idle cores.

``python benchmarks/overhead.py [cores]`` runs the default study in a temporary folder. Start-up is
what a job takes before and after its stage (each stage logs its own seconds), and the imports of
the ranking stage, the heaviest, for every job.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from datetime import datetime
from pathlib import Path

from measure import HEADER, Measured, report

ROOT = Path(__file__).resolve().parents[1]
COPIED = ("Snakefile", "workflow", "src", "config", "profiles", "pyproject.toml")
TIME = re.compile(r"^\[(\w{3} \w{3} [ \d]\d [\d:]{8} \d{4})\]$")
IMPORTS = """
import time; from ultrbench.stages import job; start = time.perf_counter()
job.import_lightgbm(); from ultrbench.stages import ranking; print(time.perf_counter() - start)
"""


def times_of_jobs(log: str) -> dict[int, list[datetime]]:
    """Start and end of each job, from the times in Snakemake's own log."""
    jobs: dict[int, list[datetime]] = {}
    now = None
    for line in log.splitlines():
        if found := TIME.match(line):
            now = datetime.strptime(found[1], "%a %b %d %H:%M:%S %Y")
        elif found := re.match(r"Job (\d+):|    jobid: (\d+)$|Finished jobid: (\d+) ", line):
            jobs.setdefault(int(next(filter(None, found.groups()))), []).append(now)
    return {job: [times[0], times[-1]] for job, times in jobs.items()}


def cost_of(folder: Path, cores: int) -> None:
    """Report what the workflow cost in a folder where the default study has just run."""
    (log,) = (folder / ".snakemake/log").glob("*.snakemake.log")
    times = times_of_jobs(log.read_text())
    done = [
        float(found[1])
        for file in (folder / "results/logs").rglob("*.log")
        if (found := re.search(r"^done in ([\d.]+) s$", file.read_text(), re.MULTILINE))
    ]
    imports = min(float(subprocess.check_output([sys.executable, "-c", IMPORTS])) for _ in range(3))
    busy = sum((end - start).total_seconds() for start, end in times.values())
    wall = (max(e for _, e in times.values()) - min(s for s, _ in times.values())).total_seconds()
    startup = busy - sum(done) + imports * len(done)
    report("overhead", f"start-up of {len(done)} jobs", Measured(startup, 0), busy, "<= 0.3")
    idle = Measured(cores * wall - busy, 0)
    report("overhead", f"idle of {cores} cores over {wall:.0f} s", idle, cores * wall, "<= 0.15")


def copy_workflow(folder: Path) -> None:
    """Copy what a study needs into an empty folder."""
    for item in COPIED:
        copy = shutil.copytree if (ROOT / item).is_dir() else shutil.copy
        copy(ROOT / item, folder / item)


def main(cores=2):
    print(HEADER)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        copy_workflow(folder)
        snakemake = [sys.executable, "-m", "snakemake", "--cores", str(cores)]
        subprocess.run(snakemake, check=True, cwd=folder, capture_output=True)
        cost_of(folder, cores)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))

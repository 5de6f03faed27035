"""Kill -9 at random moments, fifty times: the bytes are those of a run that nobody disturbed."""

import os
import random
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from .conftest import Study, copy_study

KILLS = 50
LONGEST = 20  # seconds until a kill, of a run that takes about twice as long on a free machine
SMALLEST = {
    "study": {"settings": ["static"], "seeds": [1]},
    "settings": {"static": {"sessions": 1000, "methods": ["naive", "oracle"]}},
}


def job_of(process: subprocess.Popen, rng: random.Random) -> int | None:
    """A process that snakemake has started, if it has just now."""
    members = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            group = stat.read_text().rpartition(")")[2].split()[2]
        except OSError:  # it has ended in between
            continue
        if int(group) == process.pid != int(stat.parent.name):
            members.append(int(stat.parent.name))
    return rng.choice(sorted(members)) if members else None


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="jobs are looked up in /proc")
def test_fifty_kills_leave_the_bytes_of_an_undisturbed_run(study: Study, tmp_path_factory) -> None:
    calm = copy_study(tmp_path_factory.mktemp("calm"))
    for each in (study, calm):
        each.configure(SMALLEST)
    calm.run("--cores", "2")
    expected = calm.hashes()
    rng = random.Random(0)
    kills = ended = 0
    while kills < KILLS:
        process = study.start("--cores", "2")
        try:
            process.wait(timeout=rng.uniform(0, LONGEST))
        except subprocess.TimeoutExpired:
            victim = job_of(process, rng) if kills % 2 else None
            kills += 1
            if victim is None:
                study.kill(process)
                study.run("--unlock")
            else:  # snakemake sees that a job has gone, and ends by itself
                os.kill(victim, signal.SIGKILL)
                process.wait()
            continue
        assert process.returncode == 0
        ended += 1
        assert study.hashes() == expected
        for name in ("results", ".snakemake"):
            shutil.rmtree(study.folder / name)
    study.run("--cores", "2")
    assert study.hashes() == expected
    assert ended  # or the kills left no run any time to get anywhere

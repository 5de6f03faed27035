"""The study on a real Slurm of one node: every job by the controller, the bytes of a local run."""

import importlib.util
import os
import re
import subprocess
from pathlib import Path

import pytest

from .cluster import cluster, obstacle
from .conftest import copy_study

pytestmark = pytest.mark.skipif(bool(obstacle()), reason=obstacle() or "")

# A joint estimator and two rounds, and no more, as each job costs seconds here.
DYNAMIC = {
    "study": {"seeds": [1], "settings": ["dynamic"]},
    "settings": {"dynamic": {"methods": ["naive", "paird"]}},
}
BOTH = {
    "study": {"seeds": [1, 2]},
    "settings": {"static": {"methods": ["naive", "paird"]}, "dynamic": {"methods": ["naive"]}},
}


@pytest.mark.parametrize(
    ("target", "change"),
    [("evaluation", DYNAMIC), pytest.param("all", BOTH, marks=pytest.mark.slow)],
)
def test_a_slurm_run_gives_the_bytes_of_a_local_one(
    tmp_path: Path, target: str, change: dict
) -> None:
    (tmp_path / "local").mkdir()
    (tmp_path / "cluster").mkdir()
    local, study = copy_study(tmp_path / "local"), copy_study(tmp_path / "cluster")
    local.configure(change)
    local.run("--cores", "2", target)
    study.configure(change)
    plugin = Path(importlib.util.find_spec("snakemake_executor_plugin_slurm").origin).parents[1]
    with cluster() as (folder, environment):
        done = subprocess.run(
            study.command(
                target,
                *("--profile", "profiles/slurm", "--slurm-init-seconds-before-status-checks", "1"),
            ),
            cwd=study.folder,
            env={
                **environment,
                "PYTHONPATH": os.pathsep.join([str(study.folder / "src"), str(plugin)]),
            },
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        controller = (folder / "slurmctld.log").read_text()
        print(done.stdout, controller)
    assert done.returncode == 0
    assert study.hashes() == local.hashes()
    # Every job that snakemake submitted has ended well, and groups have made them few.
    submitted = set(re.findall(r"SLURM jobid (\d+)", done.stdout))
    ended = re.findall(r"_job_complete: JobId=(\d+) WEXITSTATUS (\d+)", controller)
    assert dict.fromkeys(submitted, "0") == dict(ended)
    assert 3 <= len(submitted) <= 10

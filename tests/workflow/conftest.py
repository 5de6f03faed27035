"""A study small enough to run many times, in a copy of the repository of its own."""

import fcntl
import hashlib
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

REPOSITORY = Path(__file__).parents[2]
# Written anew by every run: what the machine did, not what the study found.
TIMED = (
    "results/logs",
    "results/benchmarks",
    "results/provenance",
    "results/disk_use",
    "results/runtime",
)

TINY = {
    "study": {
        "datasets": ["tiny"],
        "policies": ["weak"],
        "settings": ["static", "dynamic"],
        "seeds": [1, 2],
    },
    "registry": "tiny-datasets.yaml",
    "claims": "tiny-claims.yaml",
    "settings": {
        "static": {
            "sessions": 6000,
            "methods": ["naive", "randomization", "dla", "paird", "affine", "naive_aa", "labeled"],
        },
        "dynamic": {"rounds": 2, "sessions": 3000, "methods": ["naive", "dla", "paird", "labeled"]},
    },
    "estimators": {"dla": {"trees": 5, "max_iterations": 3}},
    "training": {"trees": 6, "leaves": 4, "min_data_in_leaf": 5},
    "list_size": 5,
    "evaluation": {"cutoffs": [1, 3, 5], "resamples": 500, "bootstraps": 100},
    "catalogue": {"items": 1000, "users": 100},
}
DATASETS = {
    "tiny": {
        "kind": "synthetic",
        "version": 1,
        "seed": 1,
        "ymax": 4,
        "features": 12,
        "documents": 12,
        "queries": {"train": 60, "vali": 15, "test": 30},
    }
}
CLAIMS = {
    "correction": {
        "statement": "DLA beats naive clicks.",
        "source": "Ai et al. 2018",
        "kind": "better",
        "measure": "nDCG@5",
        "methods": ["dla"],
        "against": ["naive", "upe"],
        "where": {"policies": ["weak"], "settings": ["static", "dynamic"]},
        "margin": 0.005,
    },
    "unbiased": {
        "statement": "Shuffled lists give unbiased propensities.",
        "source": "Joachims et al. 2017",
        "kind": "unbiased",
        "measure": "signed_theta_error",
        "methods": ["randomization"],
        "where": {"policies": ["weak"], "settings": ["static"]},
        "margin": 0.05,
    },
}


@dataclass
class Study:
    """A copy of the workflow in a folder, with the tiny study laid over the default."""

    folder: Path

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "snakemake", *arguments, "--configfile", "tiny.yaml"]

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "PYTHONPATH": str(self.folder / "src")}

    def run(self, *arguments: str, ok: bool = True) -> str:
        """Run snakemake and return what it printed."""
        done = subprocess.run(
            self.command(*arguments),
            cwd=self.folder,
            env=self.environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        assert (done.returncode == 0) is ok, done.stdout
        return done.stdout

    def start(self, *arguments: str) -> subprocess.Popen:
        """Start snakemake in a process group of its own."""
        return subprocess.Popen(
            self.command(*arguments),
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def kill(self, process: subprocess.Popen, how: int = signal.SIGKILL) -> None:
        """End a run with all its jobs."""
        os.killpg(process.pid, how)
        process.wait()

    def jobs(self, *arguments: str) -> dict[str, int]:
        """Return the number of jobs by rule that a run would start."""
        counts, table = {}, False
        for line in self.run("-n", *arguments).splitlines():
            table = line.startswith("---") or (table and bool(line.strip()))
            if table and not line.startswith("---"):
                rule, count = line.split()
                counts[rule] = int(count)
        return counts

    def hashes(self) -> dict[str, str]:
        """Return the SHA-256 of every result that a run must repeat."""
        return {
            str(path.relative_to(self.folder)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted((self.folder / "results").rglob("*"))
            if path.is_file() and not str(path.relative_to(self.folder)).startswith(TIMED)
        }

    def configure(self, change: dict) -> None:
        """Lay another change over the tiny study."""
        merged = merge(yaml.safe_load((self.folder / "tiny.yaml").read_text()), change)
        (self.folder / "tiny.yaml").write_text(yaml.safe_dump(merged))


def merge(base: dict, change: dict) -> dict:
    """Return `base` with `change` laid over it, mapping by mapping."""
    both = {key: merge(base[key], change[key]) for key in base.keys() & change.keys()
            if isinstance(base[key], dict) and isinstance(change[key], dict)}  # fmt: skip
    return {**base, **change, **both}


def copy_study(folder: Path) -> Study:
    """Put the workflow, its config and the package into an empty folder."""
    shutil.copy(REPOSITORY / "Snakefile", folder)
    for name in ("workflow", "config", "profiles", "src"):
        shutil.copytree(
            REPOSITORY / name, folder / name, ignore=shutil.ignore_patterns("__pycache__")
        )
    (folder / "tiny.yaml").write_text(yaml.safe_dump(TINY))
    (folder / "tiny-datasets.yaml").write_text(yaml.safe_dump(DATASETS))
    (folder / "tiny-claims.yaml").write_text(yaml.safe_dump(CLAIMS))
    return Study(folder)


@pytest.fixture
def study(tmp_path: Path) -> Study:
    """A study that has not run yet."""
    return copy_study(tmp_path)


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Study:
    """A study that has run on one core, once for all workers; tests must not change it."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "finished"
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "results/provenance.json").exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            copy_study(folder).run("--cores", "1")
    return Study(folder)


@pytest.fixture
def rerun(finished: Study, tmp_path: Path) -> Study:
    """A copy of the finished study that a test may change."""
    folder = tmp_path / "rerun"
    shutil.copytree(finished.folder, folder, symlinks=True)
    return Study(folder)

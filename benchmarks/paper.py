"""A whole study beside its plain LightGBM fits: by default the one at the size of Istella-S.

``python benchmarks/paper.py [config file] [cores]`` runs the study in a temporary folder and counts
the trees that LightGBM grows. The reference grows as many of as many leaves on as many documents
with plain lambdarank on grades, lists of ten, and bins the features of every number of documents
once. Not counted on either side: the data step, and `lightgbm_position`, whose rows multiply.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage

from measure import HEADER, Measured, measure, report
from overhead import COPIED, ROOT

from ultrbench.datasets.split import read_split
from ultrbench.ranking.model import BASE_PARAMETERS
from ultrbench.stages.runtime import read_runtimes

MULTIPLIED = "lightgbm_position"
MEASURED_TREES = 20


def binning(data, documents):
    import lightgbm as lgb

    features = read_split(data, "train").features[:documents]
    return lambda: lgb.Dataset(features, params=BASE_PARAMETERS).construct()


def growing(data, documents, leaves):
    import lightgbm as lgb

    split = read_split(data, "train")
    documents -= documents % 10
    own = {"objective": "lambdarank", "metric": "None", "num_leaves": leaves, "seed": 1}
    parameters = BASE_PARAMETERS | own | {"learning_rate": 0.1, "min_data_in_leaf": 20}
    binned = lgb.Dataset(
        split.features[:documents],
        split.grades[:documents],
        group=[10] * (documents // 10),
        params=parameters,
    ).construct()
    return lambda: lgb.train(parameters, binned, num_boost_round=MEASURED_TREES)


def plain_fits(data, trees, most):
    """Seconds of processor time of all trees and bins, those of more documents left out."""
    seconds = 0.0
    for documents in {size[0] for size in trees if size[0] <= most}:
        seconds += measure(binning, data, documents, times=1).seconds
    for (documents, leaves), number in trees.items():
        if documents <= most:
            each = measure(growing, data, documents, leaves, times=1).seconds / MEASURED_TREES
            seconds += number * each
            print(
                f"{number} trees of {leaves} leaves on {documents}: {each:.3f} s", file=sys.stderr
            )
    return seconds


def processor_time():
    used = getrusage(RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(folder, config, cores):
    """Run the study; return seconds (clock, processor) and trees by documents and leaves."""
    for item in COPIED:
        copy = shutil.copytree if (ROOT / item).is_dir() else shutil.copy
        copy(ROOT / item, folder / item)
    notes = folder / "fits"
    path = [ROOT / "benchmarks/count_fits", folder / "src"]
    environment = os.environ | {"FITS": str(notes), "PYTHONPATH": ":".join(map(str, path))}
    snakemake = [sys.executable, "-m", "snakemake", "--cores", str(cores), "--quiet", "all"]
    study = [*snakemake, "--configfile", config]
    subprocess.run([*study, "--until", "prepare_dataset"], check=True, cwd=folder, env=environment)
    start, before = time.perf_counter(), processor_time()
    subprocess.run(study, check=True, cwd=folder, env=environment)
    seconds = time.perf_counter() - start, processor_time() - before
    trees: Counter[tuple[int, int]] = Counter()
    for line in notes.read_text().splitlines():
        for size, number in json.loads(line).items():
            documents, _, leaves = map(int, size.split())
            trees[documents, leaves] += number
    return seconds, trees


def main(config="config/istella-size.yaml", cores="2"):
    print(HEADER)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (wall, chain), trees = run(folder, config, cores)
        (data,) = (folder / "results/data").glob("*/")
        jobs = read_runtimes(folder / "results/benchmarks")
        peak = max(job.peak_mb for job in jobs)
        chain -= sum(job.cpu_seconds for job in jobs if job.what == MULTIPLIED)
        most = len(read_split(data, "train").grades)
        case = f"all jobs after the data step on {cores} cores: clock"
        report("paper", case, Measured(wall, peak), 2700, "<= 1 and peak <= 8590 MB")
        case = f"{sum(trees.values())} trees and all that goes with them"
        report("paper", case, Measured(chain, peak), plain_fits(data, trees, most), "<= 1.3")


if __name__ == "__main__":
    main(*sys.argv[1:])

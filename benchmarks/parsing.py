"""Reading of LETOR text beside scikit-learn's reader.

``python benchmarks/parsing.py [lines]``. scikit-learn's reader returns a sparse matrix; ours a
dense one, with the lines checked and the queries brought together.
"""

import sys
import tempfile
from functools import partial
from pathlib import Path

import numpy as np
from measure import HEADER, measure, report

from ultrbench.datasets.letor import read_letor

FEATURES = 220
ISTELLA_S = 2_043_304 + 684_076 + 681_250


def write_lines(path, lines):
    rng = np.random.default_rng(1)
    with path.open("w") as file:
        for line in range(lines):
            values = rng.normal(size=FEATURES)
            values[rng.random(FEATURES) < 0.4] = 0
            pairs = " ".join(f"{i}:{v:.6g}" for i, v in enumerate(values, 1) if v)
            file.write(f"{rng.integers(5)} qid:{line // 100} {pairs}\n")


def ultrbench(path):
    import sklearn.datasets  # noqa: F401 - read_letor uses it

    return partial(read_letor, path, FEATURES, 4)


def scikit_learn(path):
    from sklearn.datasets import load_svmlight_file

    return partial(
        load_svmlight_file,
        str(path),
        n_features=FEATURES,
        dtype=np.float32,
        query_id=True,
        zero_based=False,
    )


def main(lines=100_000):
    print(HEADER)
    matrix = lines * FEATURES * 4 / 1e6
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "train.txt")
        write_lines(path, lines)
        theirs = measure(scikit_learn, path, times=3)
        ours = measure(ultrbench, path, times=3)
    minutes = ours.seconds * ISTELLA_S / lines / 60
    report(
        "parsing",
        f"{lines} lines of {FEATURES} features (all of Istella-S: {minutes:.1f} min)"
        f" beside scikit-learn ({theirs.peak_mb:.0f} MB)",
        ours,
        theirs.seconds,
        f"<= 1.2 and peak <= {1.5 * matrix:.0f} MB",
    )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))

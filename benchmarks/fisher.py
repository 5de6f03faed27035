"""Fisher's randomisation tests of a table beside scipy's permutation test.

``python benchmarks/fisher.py [comparisons] [resamples] [queries]``. scipy flips the signs of one
comparison at a time; its seconds are those of fewer resamples, scaled.
"""

import sys
from functools import partial

import numpy as np
from measure import HEADER, measure, report

from ultrbench.evaluation.significance import fisher_randomization

FEWER = 1000


def differences(comparisons, queries):
    return np.random.default_rng(1).normal(0.002, 0.1, (queries, comparisons))


def ultrbench(comparisons, resamples, queries):
    rng = np.random.default_rng(2)
    return partial(
        fisher_randomization, differences(comparisons, queries), resamples=resamples, rng=rng
    )


def scipy(queries):
    from scipy.stats import permutation_test

    return partial(
        permutation_test,
        (differences(1, queries)[:, 0],),
        lambda x, axis: x.mean(axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=FEWER,
        rng=np.random.default_rng(2),
    )


def main(comparisons=64, resamples=100_000, queries=6_562):
    print(HEADER)
    ours = measure(ultrbench, comparisons, resamples, queries, times=1)
    one = measure(scipy, queries, times=2)
    report(
        "fisher",
        f"{comparisons} comparisons x {resamples} resamples x {queries} queries beside scipy",
        ours,
        one.seconds * comparisons * resamples / FEWER,
        ">= 100",
    )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))

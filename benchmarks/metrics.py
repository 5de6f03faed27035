"""The whole set of metrics on a million lists of ten, beside the tools that people trust.

``python benchmarks/metrics.py [lists] [lists for the other tools]``, after
``pip install -r benchmarks/requirements.txt``. Each tool gets its own form of input, built before
the clock starts, and computes what it has of the set; its seconds are scaled to our number of
lists. The whole set is compared with the tool that has most values a second.
"""

import sys
from functools import partial

import numpy as np
from measure import HEADER, measure, report

from ultrbench.evaluation.metrics import compute_metrics

CUTOFFS = (1, 3, 5, 10)
WHOLE = [f"{kind}@{k}" for kind in ("nDCG", "ERR", "P", "R", "Hit") for k in CUTOFFS]
WHOLE += ["DCG@10", "AP", "RR", "RBP(p=.8)@10", "RBPresidual(p=.8)@10"]
SHARED = [f"{kind}@{k}" for kind in ("nDCG", "P", "R", "Hit") for k in CUTOFFS] + ["AP", "RR"]


def arrays(lists):
    rng = np.random.default_rng(1)
    scores = rng.normal(size=(lists, 10))
    return scores, rng.integers(0, 5, scores.shape, dtype=np.uint8), np.ones(scores.shape, bool)


def dictionaries(lists):
    """A run and qrels, each a dictionary by query and document."""
    return [
        {f"{q:07}": {f"d{i}": value for i, value in enumerate(row)} for q, row in enumerate(rows)}
        for rows in (array.tolist() for array in arrays(lists)[:2])
    ]


def ultrbench(lists, names, mean):
    given = arrays(lists)
    compute_metrics(names, *(array[:100] for array in given), 4)
    return partial(compute_metrics, names, *given, 4, mean=mean)


def pytrec_eval(lists):
    import pytrec_eval

    run, qrels = dictionaries(lists)
    cutoffs = ",".join(map(str, CUTOFFS))
    asked = {f"{kind}.{cutoffs}" for kind in ("ndcg_cut", "P", "recall", "success")}
    evaluator = pytrec_eval.RelevanceEvaluator(qrels, asked | {"map", "recip_rank"})
    return partial(evaluator.evaluate, run)


def ir_measures(lists):
    import ir_measures as ir

    run, qrels = dictionaries(lists)
    asked = [kind @ k for kind in (ir.nDCG, ir.P, ir.R, ir.Success) for k in CUTOFFS]
    return lambda: list(ir.iter_calc([*asked, ir.AP, ir.RR], qrels, run))


def ranx(lists):
    import ranx

    run, qrels = dictionaries(lists)
    kinds = ("ndcg_burges", "precision", "recall", "hit_rate")
    asked = [f"{kind}@{k}" for kind in kinds for k in CUTOFFS] + ["map", "mrr"]
    work = partial(ranx.evaluate, ranx.Qrels(qrels), ranx.Run(run), asked)
    work()  # compiles
    return work


def main(lists=1_000_000, fewer=20_000):
    print(HEADER)
    given = sum(array.nbytes for array in arrays(1)) * lists / 1e6
    shared = measure(ultrbench, lists, SHARED, False)
    rates = {}
    for tool in (pytrec_eval, ir_measures, ranx):
        try:
            theirs = measure(tool, fewer).seconds * lists / fewer
        except ImportError as error:
            sys.exit(f"{error}; pip install -r benchmarks/requirements.txt")
        rates[tool.__name__] = theirs / len(SHARED)
        case = f"{len(SHARED)} metrics beside {tool.__name__}"
        report("metrics", case, shared, theirs, ">= 10")
    fastest = min(rates, key=rates.get)
    for mean, kept in ((False, "of every query"), (True, "means")):
        report(
            "metrics",
            f"whole set ({len(WHOLE)}) {kept} beside {fastest}",
            measure(ultrbench, lists, WHOLE, mean),
            rates[fastest] * len(WHOLE),
            f">= 10 and peak <= {2 * given:.0f} MB",
        )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))

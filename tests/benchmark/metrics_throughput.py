"""Time and memory of the whole set of metrics, beside other tools that are installed.

``python tests/benchmark/metrics_throughput.py [lists] [lists for the other tools]``: each tool gets
its own form of input, built before the clock starts, and computes what it can of the set. Seconds
are of processor time.
"""

import importlib.util
import resource
import sys
import time

import numpy as np

from ultrbench.evaluation.metrics import compute_metrics

CUTOFFS = (1, 3, 5, 10)
OURS = [f"{kind}@{k}" for kind in ("nDCG", "ERR", "P", "R", "Hit") for k in CUTOFFS]
OURS += ["DCG@10", "AP", "RR", "RBP(p=.8)@10", "RBPresidual(p=.8)@10"]


def report(tool, metrics, lists, seconds):
    rate = lists * metrics / seconds / 1e6
    print(f"{tool:12} {metrics:3} metrics {lists:8} lists {seconds:8.2f} s {rate:8.2f} M values/s")


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main(lists=1_000_000, fewer=20_000):
    rng = np.random.default_rng(1)
    scores = rng.normal(size=(lists, 10))
    grades = rng.integers(0, 5, scores.shape, dtype=np.uint8)
    mask = np.ones(scores.shape, bool)
    given = scores.nbytes + grades.nbytes + mask.nbytes
    compute_metrics(OURS, scores[:100], grades[:100], mask[:100], 4)
    before, start = peak(), time.process_time()
    values = compute_metrics(OURS, scores, grades, mask, 4)
    report("ultrbench", len(OURS), lists, time.process_time() - start)
    result = sum(value.nbytes for value in values.values())
    working = peak() - before - result
    print(f"  input {given / 1e6:.0f} MB, result {result / 1e6:.0f}, working {working / 1e6:.0f}")

    run = {f"{q:07}": {f"d{i}": float(s) for i, s in enumerate(scores[q])} for q in range(fewer)}
    qrels = {f"{q:07}": {f"d{i}": int(g) for i, g in enumerate(grades[q])} for q in range(fewer)}
    cuts = ",".join(map(str, CUTOFFS))
    if importlib.util.find_spec("pytrec_eval"):
        import pytrec_eval

        asked = [f"{kind}.{cuts}" for kind in ("ndcg_cut", "P", "recall", "success")]
        evaluator = pytrec_eval.RelevanceEvaluator(qrels, {*asked, "map", "recip_rank"})
        start = time.process_time()
        evaluator.evaluate(run)
        report("pytrec_eval", 4 * 4 + 2, fewer, time.process_time() - start)
    if importlib.util.find_spec("ir_measures"):
        import ir_measures as ir

        asked = [kind @ k for kind in (ir.nDCG, ir.P, ir.R, ir.Success) for k in CUTOFFS]
        asked += [ir.AP, ir.RR]
        start = time.process_time()
        list(ir.iter_calc(asked, qrels, run))
        report("ir_measures", len(asked), fewer, time.process_time() - start)
    if importlib.util.find_spec("ranx"):
        import ranx

        asked = [
            f"{kind}@{k}"
            for kind in ("ndcg_burges", "precision", "recall", "hit_rate")
            for k in CUTOFFS
        ]
        asked += ["map", "mrr", "rbp.80"]
        judged, ranked = ranx.Qrels(qrels), ranx.Run(run)
        ranx.evaluate(judged, ranked, asked)  # compiles
        start = time.process_time()
        ranx.evaluate(judged, ranked, asked)
        report("ranx", len(asked), fewer, time.process_time() - start)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))

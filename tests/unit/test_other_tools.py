"""Equal to trec_eval, gdeval and ranx, where installed (they are no requirement)."""

import numpy as np
import pytest

from ultrbench.evaluation.trec import evaluate_run


@pytest.fixture(scope="module")
def judged_run():
    """Ties, lists of 1 to 60, unjudged and unranked documents, queries without relevance."""
    rng = np.random.default_rng(0)
    documents = [f"d{i}" for i in range(100)]
    run, qrels = {}, {}
    for query in map(str, range(200)):
        ranked = rng.permutation(documents)[: rng.integers(1, 61)].tolist()
        run[query] = {d: float(s) for d, s in zip(ranked, rng.integers(0, 40, 60), strict=False)}
        grades = rng.integers(0, 5, 40) * (rng.random() > 0.05)
        qrels[query] = dict(
            zip(rng.permutation(documents)[:40].tolist(), grades.tolist(), strict=True)
        )
    return run, qrels


TREC_EVAL = {
    "nDCG(gain=linear)@10": "ndcg_cut_10",
    "nDCG(gain=linear)": "ndcg",
    "P@10": "P_10",
    "R@10": "recall_10",
    "AP": "map",
    "AP@10": "map_cut_10",
    "RR": "recip_rank",
    "Hit@5": "success_5",
}


def test_trec_eval(judged_run):
    pytrec_eval = pytest.importorskip("pytrec_eval", reason="pytrec_eval is not installed")
    run, qrels = judged_run
    ours = evaluate_run(run, qrels, list(TREC_EVAL))
    theirs = pytrec_eval.RelevanceEvaluator(
        qrels,
        {
            "ndcg_cut.10",
            "ndcg",
            "P.10",
            "recall.10",
            "map",
            "map_cut.10",
            "recip_rank",
            "success.5",
        },
    ).evaluate(run)
    for name, other in TREC_EVAL.items():
        expected = [theirs[query][other] for query in ours.index]
        np.testing.assert_allclose(ours[name], expected, atol=1e-12, err_msg=name)


def test_gdeval(judged_run):
    ir_measures = pytest.importorskip("ir_measures", reason="ir_measures is not installed")
    run, qrels = judged_run
    ours = evaluate_run(run, qrels, ["ERR@10", "nDCG@10"], ymax=4)
    for name, measure in (
        ("ERR@10", ir_measures.ERR @ 10),
        ("nDCG@10", ir_measures.nDCG(dcg="exp-log2") @ 10),
    ):
        theirs = {row.query_id: row.value for row in ir_measures.iter_calc([measure], qrels, run)}
        expected = [theirs[query] for query in ours.index]
        np.testing.assert_allclose(ours[name], expected, atol=5.1e-6)  # gdeval prints 5 digits


def test_ranx_without_ties(judged_run):
    ranx = pytest.importorskip("ranx", reason="ranx is not installed")
    run, qrels = judged_run
    untied = {
        q: {d: s + i / 100 for i, (d, s) in enumerate(run[q].items())}
        for q in sorted(qrels)  # the order in which ranx returns queries
        if any(qrels[q].values())
    }
    graded = {q: qrels[q] for q in untied}
    binary = {q: {d: min(g, 1) for d, g in of.items()} for q, of in graded.items()}
    for name, other, judged in (
        ("nDCG@10", "ndcg_burges@10", graded),
        ("RBP(p=.8)", "rbp.80", binary),  # ranx multiplies by the grade itself
    ):
        theirs = ranx.evaluate(ranx.Qrels(judged), ranx.Run(untied), other, return_mean=False)
        ours = evaluate_run(untied, judged, [name])[name]
        np.testing.assert_allclose(ours, theirs, atol=1e-9, err_msg=name)

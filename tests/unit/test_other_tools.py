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
        ("P@10", "precision@10", graded),
        ("R@10", "recall@10", graded),
        ("AP", "map", graded),
        ("RR", "mrr", graded),
        ("Hit@5", "hit_rate@5", graded),
        ("RBP(p=.8)", "rbp.80", binary),  # ranx multiplies by the grade itself
    ):
        theirs = ranx.evaluate(ranx.Qrels(judged), ranx.Run(untied), other, return_mean=False)
        ours = evaluate_run(untied, judged, [name])[name]
        np.testing.assert_allclose(ours, theirs, atol=1e-9, err_msg=name)


# The rows of the table of differences in docs/metrics.md.


def trec_eval(run, qrels, measure, name=None):
    pytrec_eval = pytest.importorskip("pytrec_eval", reason="pytrec_eval is not installed")
    found = pytrec_eval.RelevanceEvaluator(qrels, {measure}).evaluate(run)
    return {query: values[name or measure] for query, values in found.items()}


def gdeval(run, qrels, kind, **parameters):
    ir_measures = pytest.importorskip("ir_measures", reason="ir_measures is not installed")
    measure = getattr(ir_measures, kind)(**parameters) @ 10
    return {row.query_id: row.value for row in ir_measures.iter_calc([measure], qrels, run)}


def test_gains_of_ndcg_are_linear_in_trec_eval_and_exponential_in_gdeval():
    run, qrels = {"1": {"a": 2.0, "b": 1.0}}, {"1": {"a": 1, "b": 3}}
    ours = evaluate_run(run, qrels, ["nDCG@10", "nDCG(gain=linear)@10"]).loc["1"]
    assert ours["nDCG@10"] == pytest.approx(gdeval(run, qrels, "nDCG", dcg="exp-log2")["1"], 1e-4)
    linear = trec_eval(run, qrels, "ndcg_cut.10", "ndcg_cut_10")["1"]
    assert ours["nDCG(gain=linear)@10"] == pytest.approx(linear, abs=1e-12)
    assert abs(linear - ours["nDCG@10"]) > 0.05


def test_gdeval_always_has_the_top_grade_4():
    run, qrels = {"1": {"a": 2.0, "b": 1.0}}, {"1": {"a": 1, "b": 2}}
    theirs = gdeval(run, qrels, "ERR")["1"]
    assert theirs == pytest.approx(1 / 16 + 15 / 16 * 3 / 16 / 2, abs=5.1e-6)
    for ymax, same in ((4, True), (2, False)):
        ours = evaluate_run(run, qrels, ["ERR@10"], ymax=ymax).loc["1", "ERR@10"]
        assert bool(abs(ours - theirs) < 5.1e-6) is same
    assert ours == 1 / 4 + 3 / 4 * 3 / 4 / 2


@pytest.mark.parametrize(("gap", "expected"), [(0.0, 1 / 2), (1e-9, 1.0), (1e-3, 1.0)])
def test_ties_go_by_descending_name_and_trec_eval_holds_scores_in_32_bits(gap, expected):
    run, qrels = {"1": {"a": 1 + gap, "b": 1.0}}, {"1": {"a": 1}}
    assert evaluate_run(run, qrels, ["RR"]).loc["1", "RR"] == expected
    theirs = trec_eval(run, qrels, "recip_rank")["1"]
    assert theirs == (1.0 if gap == 1e-3 else 1 / 2)
    if not gap:
        assert gdeval(run, qrels, "ERR")["1"] == pytest.approx(1 / 16 / 2, abs=5.1e-6)


def test_trec_eval_leaves_out_queries_of_one_file():
    run = {"1": {"a": 1.0}, "2": {"a": 1.0}}
    qrels = {"1": {"a": 1}, "3": {"a": 1}}
    common = evaluate_run(run, qrels, ["RR"], queries="common")["RR"].to_dict()
    assert common == trec_eval(run, qrels, "recip_rank") == {"1": 1.0}


def test_grades_below_0_are_not_relevant():
    run, qrels = {"1": {"a": 3.0, "b": 2.0, "c": 1.0}}, {"1": {"a": -2, "b": 2, "c": 1}}
    clipped = {"1": {"a": 0, "b": 2, "c": 1}}
    ours = evaluate_run(run, clipped, ["AP", "nDCG(gain=linear)@10", "ERR@10"], ymax=4).loc["1"]
    assert ours["AP"] == pytest.approx(trec_eval(run, qrels, "map")["1"], abs=1e-12)
    theirs = trec_eval(run, qrels, "ndcg_cut.10", "ndcg_cut_10")["1"]
    assert ours["nDCG(gain=linear)@10"] == pytest.approx(theirs, abs=1e-12)
    assert ours["ERR@10"] == pytest.approx(gdeval(run, qrels, "ERR")["1"], abs=5.1e-6)


def test_ranx_multiplies_the_weights_of_rbp_by_the_grade():
    ranx = pytest.importorskip("ranx", reason="ranx is not installed")
    run, qrels = {"1": {"a": 2.0, "b": 1.0}}, {"1": {"a": 4, "b": 4}}
    theirs = ranx.evaluate(ranx.Qrels(qrels), ranx.Run(run), "rbp.80")
    assert theirs == pytest.approx(4 * evaluate_run(run, qrels, ["RBP(p=.8)"]).loc["1"].item())
    assert theirs > 1


def test_ir_measures_orders_ties_of_cut_reciprocal_ranks_otherwise():
    ir_measures = pytest.importorskip("ir_measures", reason="ir_measures is not installed")
    run, qrels = {"1": {"a": 1.0, "b": 1.0}}, {"1": {"a": 1}}
    values = {
        str(row.measure): row.value
        for row in ir_measures.iter_calc([ir_measures.RR, ir_measures.RR @ 10], qrels, run)
    }
    assert values == {"RR": 1 / 2, "RR@10": 1.0}
    assert evaluate_run(run, qrels, ["RR@10"]).loc["1", "RR@10"] == 1 / 2

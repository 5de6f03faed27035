"""Boosted rankers: reproducible to the byte, and stopped where the project's own metric says."""

import dataclasses
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from test_targets import in_order
from toys import candidates, click, make_log, make_split

from ultrbench.errors import UserError
from ultrbench.evaluation.metrics import compute_metrics
from ultrbench.ranking import boosting, targets
from ultrbench.ranking.binned import BinnedFeatures, bin_documents
from ultrbench.ranking.crossfit import CrossFit, held_out_loss
from ultrbench.ranking.model import BASE_PARAMETERS, predict
from ultrbench.ranking.objectives import OBJECTIVES, list_softmax
from ultrbench.simulation.clicks import attraction, examination

THETA = examination(6)
SIZES = {"trees": 15, "leaves": 6, "learning_rate": 0.2, "min_data_in_leaf": 5, "seed": 1}


@pytest.fixture(scope="module")
def split():
    rng = np.random.default_rng(3)
    return make_split(rng.integers(1, 15, 80), seed=3)


@pytest.fixture(scope="module")
def log(split):
    """Three orders of each query's candidates."""
    documents = candidates(split, width=6, seed=1)
    rng = np.random.default_rng(0)
    parts = [documents]
    for _ in range(2):
        other = documents.copy()
        for row in other:
            shown = row >= 0
            row[shown] = rng.permutation(row[shown])
        parts.append(other)
    log = make_log(np.concatenate(parts), queries=np.tile(np.arange(80), 3))
    return click(log, np.full(240, 40), THETA, attraction(split.grades, 4))


@pytest.fixture(scope="module")
def vali():
    return make_split(np.random.default_rng(5).integers(1, 15, 30), seed=5)


@pytest.fixture(scope="module")
def validation(vali):
    documents = candidates(vali, width=6, seed=2)
    log = click(make_log(documents), np.full(30, 50), THETA, attraction(vali.grades, 4), seed=9)
    return {
        "grades": boosting.graded_lists(documents, vali.grades, 5),
        "clicks": boosting.weighted_lists(targets.ipw_weights(log, THETA)),
    }


def fit(split, lists, **changes):
    return boosting.train(split.features, lists, **({"objective": "softmax"} | SIZES | changes))


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_equal_input_gives_equal_text(split, log, objective):
    lists = targets.ipw_weights(log, THETA)
    one, two = (fit(split, lists, objective=objective).model for _ in range(2))
    assert one == two
    assert one != fit(split, targets.ipw_weights(log, np.ones(6)), objective=objective).model


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("scale", [2.0**-30, 2.0**40])
def test_the_scale_of_weights_does_not_matter(split, log, objective, scale):
    lists = targets.ipw_weights(log, THETA)
    scaled = targets.TrainingLists(lists.rows, lists.query_ptr, lists.weights * scale)
    assert (
        fit(split, lists, objective=objective).model
        == fit(split, scaled, objective=objective).model
    )


def test_weights_of_1e12_are_weights_of_1(split, log):
    lists = targets.ipw_weights(log, THETA)
    large = targets.TrainingLists(lists.rows, lists.query_ptr, lists.weights * 1e12)
    one, two = (predict(fit(split, w).model, split.features) for w in (lists, large))
    np.testing.assert_allclose(one, two, atol=1e-9)


def test_the_order_of_lists_in_the_log_does_not_matter(split, log):
    expected = fit(split, targets.ipw_weights(log, THETA)).model
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(240)
        assert fit(split, targets.ipw_weights(in_order(log, order), THETA)).model == expected


THREADS = """
import sys
import numpy as np
sys.path.insert(0, {tests!r})
from toys import make_split
from ultrbench.ranking import boosting, targets
split = make_split([8] * 300, seed=1)
lists = targets.TrainingLists(
    np.arange(2400), np.arange(0, 2401, 8), np.random.default_rng(0).random(2400)
)
for objective in ("softmax", "pairwise"):
    print(boosting.train(
        split.features, lists, objective=objective, trees=5, leaves=8, learning_rate=0.1,
        min_data_in_leaf=5, seed=1,
    ).model)
"""


def test_the_number_of_threads_does_not_matter():
    code = THREADS.format(tests=str(Path(__file__).parent))
    texts = [
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True,
            env=os.environ | {"OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads},
        ).stdout
        for threads in ("1", "2")
    ]  # fmt: skip
    assert texts[0].count("end of trees") == 2
    assert texts[0] == texts[1]


def test_a_ranker_learns_the_grades(split, log):
    lists = targets.grade_gains(log, split.grades)
    for objective in OBJECTIVES:
        scores = predict(fit(split, lists, objective=objective, trees=40).model, split.features)
        assert np.corrcoef(scores[lists.rows], split.grades[lists.rows])[0, 1] > 0.7


def naive_ndcg(scores, documents, grades, cutoff):
    total = 0.0
    for row, shown in zip(scores, documents, strict=True):
        real = [c for c in range(len(shown)) if shown[c] >= 0]
        order = sorted(real, key=lambda c: (-row[c], shown[c]))[:cutoff]
        best = sorted((grades[shown[c]] for c in real), reverse=True)[:cutoff]
        ideal = sum((2.0**y - 1) / np.log2(r + 2) for r, y in enumerate(best))
        dcg = sum((2.0 ** grades[shown[c]] - 1) / np.log2(r + 2) for r, c in enumerate(order))
        total += dcg / ideal if ideal else 0.0
    return total / len(scores)


@pytest.mark.parametrize("cutoff", [1, 3, 5, 10])
def test_validation_by_grades_is_the_ndcg_of_the_evaluation(vali, cutoff):
    rng = np.random.default_rng(cutoff)
    documents = np.sort(candidates(vali, width=6), axis=1)
    documents[documents < 0] = 10**6
    documents.sort(axis=1)
    documents[documents == 10**6] = -1
    scores = rng.integers(-3, 3, documents.shape).astype(float)
    grades = np.where(vali.query_of_row % 5 == 0, 0, vali.grades)  # some have nothing relevant
    measured = boosting.validation_value(
        scores, boosting.graded_lists(documents, grades, cutoff), cutoff
    )
    mask = documents >= 0
    values = compute_metrics([f"nDCG@{cutoff}"], scores, grades[documents], mask, 4)
    assert measured == pytest.approx(values[f"nDCG@{cutoff}"].mean(), abs=1e-12)
    assert measured == pytest.approx(naive_ndcg(scores, documents, grades, cutoff), abs=1e-12)
    order = rng.permuted(np.tile(np.arange(6), (len(scores), 1)), axis=1)
    moved = (np.take_along_axis(a, order, axis=1) for a in (scores, documents))
    scores, documents = moved  # the order of columns does not matter, ties included
    again = boosting.validation_value(
        scores, boosting.graded_lists(documents, grades, cutoff), cutoff
    )
    assert again == pytest.approx(measured, abs=1e-12)


def test_validation_by_clicks_is_linear_in_the_clicks(vali):
    documents = candidates(vali, width=6)
    rng = np.random.default_rng(0)
    logs = [
        click(make_log(documents), np.full(30, n), THETA, attraction(vali.grades, 4), seed=n)
        for n in (20, 70)
    ]
    logs.append(
        make_log(
            documents,
            [(q, m, c) for log in logs for q, m, c in
             zip(log.click_list.tolist(), log.mask.tolist(), log.count.tolist(), strict=True)],
        )
    )  # fmt: skip
    lists = [boosting.weighted_lists(targets.ipw_weights(log, THETA)) for log in logs]
    scores = rng.normal(size=lists[0].documents.shape)
    first, second, both = (
        boosting.validation_value(scores, part, 3) * part.gains.sum() for part in lists
    )
    assert both == pytest.approx(first + second, rel=1e-12)
    by_hand = 0.0
    for row in range(len(scores)):
        real = lists[2].documents[row] >= 0
        gains = lists[2].gains[row][real][np.argsort(-scores[row][real])][:3]
        by_hand += sum(g / np.log2(r + 2) for r, g in enumerate(gains))
    assert both == pytest.approx(by_hand, rel=1e-12)


def test_weighted_lists_hold_every_document_once(split, log):
    target = targets.ipw_weights(log, THETA)
    lists = boosting.weighted_lists(target)
    real = lists.documents >= 0
    assert lists.documents[real].tolist() == target.rows.tolist()
    assert lists.gains[real].tolist() == target.weights.tolist()
    assert not lists.gains[~real].any()
    assert lists.ideal is None


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_the_curve_is_that_of_the_first_trees_and_the_best_are_used(
    split, log, vali, validation, objective
):
    result = fit(
        split, targets.ipw_weights(log, THETA), objective=objective, trees=25,
        validation=validation, validation_features=vali.features, patience=25, cutoff=5,
    )  # fmt: skip
    for name, lists in validation.items():
        curve = result.curve[name]
        assert len(curve) == 25
        assert result.trees[name] == 1 + max(range(25), key=lambda t: (curve[t], -t))
        for trees in (1, 7, 25):
            scores = predict(result.model, vali.features, trees)[lists.documents]
            value = boosting.validation_value(scores, lists, 5)
            assert curve[trees - 1] == pytest.approx(value, abs=1e-12)


def test_training_ends_when_no_validation_has_improved_for_long(split, log, vali, validation):
    arguments = {
        "validation": validation, "validation_features": vali.features, "cutoff": 5, "trees": 60
    }  # fmt: skip
    lists = targets.ipw_weights(log, THETA)
    whole = fit(split, lists, patience=60, **arguments)
    for patience in (1, 4):
        short = fit(split, lists, patience=patience, **arguments)
        length = len(short.curve["grades"])
        expected = next(
            n
            for n in range(1, 61)
            if n == 60
            or all(n - boosting.best_tree(curve[:n]) >= patience for curve in whole.curve.values())
        )
        assert length == expected < 60
        for name in validation:
            assert short.curve[name] == whole.curve[name][:length]
            assert short.trees[name] == boosting.best_tree(whole.curve[name][:length])
        assert short.model.count("\nTree=") == length  # all trees, for each validation its own few
        one, two = (predict(m, vali.features, 1) for m in (short.model, whole.model))
        assert (one == two).all()


def test_without_validation_all_trees_are_used(split, log):
    result = fit(split, targets.ipw_weights(log, THETA))
    assert (result.trees, result.curve) == ({"fixed": 15}, {})
    whole = predict(result.model, split.features)
    assert (predict(result.model, split.features, 15) == whole).all()
    assert (predict(result.model, split.features, 3) != whole).any()


def test_constant_features_give_constant_scores_and_no_error(split, log, vali, validation):
    flat = np.ones_like(split.features)
    result = boosting.train(
        flat, targets.ipw_weights(log, THETA), objective="softmax", **SIZES, validation=validation,
        validation_features=np.ones_like(vali.features), patience=3, cutoff=5,
    )  # fmt: skip
    assert result.trees == {"grades": 1, "clicks": 1}
    assert len(set(predict(result.model, flat, 1))) == 1


def test_features_that_are_all_zero_are_refused(split, log):
    blank = np.zeros((len(split.grades), 3), dtype=np.float32)
    with pytest.raises(UserError, match=r"every feature of the .* documents to train on is 0"):
        boosting.train(blank, targets.ipw_weights(log, THETA), objective="softmax", **SIZES)
    with pytest.raises(UserError, match="every feature"):
        CrossFit(log, blank, folds=2, trees=2, leaves=3, learning_rate=0.1, seed=1)


@pytest.mark.parametrize("lengths", [[1], [8], [1, 1, 1]])
def test_tiny_training_sets_train(lengths):
    split = make_split(lengths)
    lists = targets.TrainingLists(
        np.arange(sum(lengths)), np.cumsum([0, *lengths]), np.arange(sum(lengths)) + 1.0
    )
    for objective in OBJECTIVES:
        scores = predict(fit(split, lists, objective=objective).model, split.features)
        assert np.isfinite(scores).all()


def crossfit(log, split, **changes):
    sizes = {"folds": 3, "trees": 8, "leaves": 6, "learning_rate": 0.2, "seed": 4}
    return CrossFit(log, split.features, **(sizes | changes))


def test_out_of_fold_scores_do_not_see_the_querys_own_clicks(split, log):
    rankers = crossfit(log, split, folds=80, trees=1)
    weights = targets.ipw_weights(log, THETA).weights
    own = np.zeros(len(weights), dtype=bool)
    own[rankers.query_ptr[17] : rankers.query_ptr[18]] = True
    one, two = (rankers.scores(w) for w in (weights, np.where(own, 9 - weights, weights)))
    assert (one == two)[own].all()
    assert (one != two)[~own].any()


def test_out_of_fold_scores_are_the_same_from_bins_that_are_there(split, log):
    weights = targets.ipw_weights(log, THETA)
    data = bin_documents(split.features, weights.rows, BASE_PARAMETERS)
    binned = dataclasses.replace(split, features=BinnedFeatures(split.features, weights.rows, data))
    one, two = (crossfit(log, features).scores(weights.weights) for features in (split, binned))
    assert (one == two).all()


def test_out_of_fold_scores_predict_clicks_better_than_nothing(split, log):
    rankers = crossfit(log, split)
    weights = targets.ipw_weights(log, THETA).weights
    scores = rankers.scores(weights)
    assert (scores == crossfit(log, split).scores(weights)).all()
    assert (scores != crossfit(log, split, seed=5).scores(weights)).any()
    loss = held_out_loss(scores, weights, rankers.query_ptr)
    assert loss < held_out_loss(np.zeros_like(scores), weights, rankers.query_ptr)


def test_the_number_of_trees_has_the_lowest_held_out_loss(split, log):
    weights = targets.ipw_weights(log, THETA).weights
    rankers = crossfit(log, split, trees=1)
    losses = []
    for trees in range(1, 9):
        staged = crossfit(log, split, trees=trees).scores(weights)
        losses.append(held_out_loss(staged, weights, rankers.query_ptr))
    assert (np.diff(losses) <= 0).all()


def test_held_out_loss_by_hand():
    scores, weights = np.array([1.0, 0.0, 3.0]), np.array([2.0, 1.0, 5.0])
    p = list_softmax(scores, np.array([0, 2, 3]))
    expected = -2 * np.log(p[0]) - np.log(p[1])
    assert held_out_loss(scores, weights, np.array([0, 2, 3])) == pytest.approx(expected)


def test_values_by_document_find_their_cells(split, log):
    rankers = crossfit(log, split)
    rows = targets.ipw_weights(log, THETA).rows
    cells = rankers.by_cell(rows)
    assert (cells[log.shown] == log.documents[log.shown]).all()


def test_fewer_queries_than_folds_are_refused(split, log):
    with pytest.raises(UserError, match="the log has 80 queries, too few for 81 folds"):
        crossfit(log, split, folds=81)

"""Gradients and hessians of the objectives against their losses, written out naively."""

import itertools
from math import exp, log, log2

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ultrbench.ranking import objectives
from ultrbench.ranking.objectives import HESSIAN_FLOOR, OBJECTIVES


def by_query(ptr):
    return [range(start, end) for start, end in itertools.pairwise(ptr)]


def softmax_loss(scores, weights, ptr):
    loss = 0.0
    for rows in by_query(ptr):
        normaliser = log(sum(exp(scores[i]) for i in rows))
        loss -= sum(weights[i] * (scores[i] - normaliser) for i in rows)
    return loss


def ranks(scores, rows):
    """1 for the best; ties in row order."""
    order = sorted(rows, key=lambda i: (-scores[i], i))
    return {i: rank for rank, i in enumerate(order, start=1)}


def pairwise_loss(scores, weights, ptr, deltas_at):
    """Loss with |delta| frozen at the scores `deltas_at`: LambdaMART does not move through it."""
    loss = 0.0
    for rows in by_query(ptr):
        rank = ranks(deltas_at, rows)
        for i in rows:
            for j in rows:
                if i != j:
                    delta = abs(1 / log2(1 + rank[i]) - 1 / log2(1 + rank[j]))
                    loss += weights[i] * delta * log(1 + exp(scores[j] - scores[i]))
    return loss


@st.composite
def lists(draw):
    lengths = draw(st.lists(st.integers(1, 6), min_size=1, max_size=4))
    size = sum(lengths)
    scores = draw(st.lists(st.sampled_from(np.arange(-3, 3.5, 0.5)), min_size=size, max_size=size))
    weights = draw(st.lists(st.sampled_from([0, 0, 0.5, 1, 7.25]), min_size=size, max_size=size))
    return np.array(scores), np.array(weights, dtype=float), np.cumsum([0, *lengths])


def finite_differences(loss, scores, step):
    first, second = np.zeros(len(scores)), np.zeros(len(scores))
    middle = loss(scores)
    for i in range(len(scores)):
        up, down = scores.copy(), scores.copy()
        up[i] += step
        down[i] -= step
        first[i] = (loss(up) - loss(down)) / (2 * step)
        second[i] = (loss(up) - 2 * middle + loss(down)) / step**2
    return first, second


@settings(deadline=None)
@pytest.mark.parametrize("name", OBJECTIVES)
@given(lists())
def test_gradient_and_hessian_are_derivatives_of_the_loss(name, data):
    scores, weights, ptr = data
    gradient, hessian = OBJECTIVES[name](weights, ptr)(scores, None)

    def loss(f):
        if name == "softmax":
            return softmax_loss(f, weights, ptr)
        return pairwise_loss(f, weights, ptr, scores)

    first, second = finite_differences(loss, scores, 1e-4)
    np.testing.assert_allclose(gradient, first, atol=1e-6)
    np.testing.assert_allclose(hessian, np.maximum(second, HESSIAN_FLOOR), atol=1e-5)
    assert (hessian >= HESSIAN_FLOOR).all()
    for rows in by_query(ptr):
        assert abs(gradient[list(rows)].sum()) < 1e-9


@given(lists())
def test_pairwise_equals_a_plain_double_loop(data):
    scores, weights, ptr = data
    gradient, hessian = np.zeros(len(scores)), np.zeros(len(scores))
    for rows in by_query(ptr):
        rank = ranks(scores, rows)
        for i in rows:
            for j in rows:
                delta = abs(1 / log2(1 + rank[i]) - 1 / log2(1 + rank[j]))
                p = 1 / (1 + exp(scores[i] - scores[j]))
                gradient[i] -= weights[i] * delta * p
                gradient[j] += weights[i] * delta * p
                hessian[i] += weights[i] * delta * p * (1 - p) * (i != j)
                hessian[j] += weights[i] * delta * p * (1 - p) * (i != j)
    measured = OBJECTIVES["pairwise"](weights, ptr)(scores, None)
    np.testing.assert_allclose(measured[0], gradient, atol=1e-12)
    np.testing.assert_allclose(measured[1], np.maximum(hessian, HESSIAN_FLOOR), atol=1e-12)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_a_list_is_treated_alike_alone_and_among_longer_ones(name):
    rng = np.random.default_rng(0)
    lengths = [2, 9, 1, 5]
    ptr = np.cumsum([0, *lengths])
    scores, weights = rng.normal(size=17), rng.integers(0, 5, 17).astype(float)
    together = OBJECTIVES[name](weights, ptr)(scores, None)
    for start, end in itertools.pairwise(ptr):
        one = OBJECTIVES[name](weights[start:end], np.array([0, end - start]))(
            scores[start:end], None
        )
        for a, b in zip(together, one, strict=True):
            np.testing.assert_allclose(a[start:end], b, rtol=1e-12, atol=1e-15)


def test_pairs_in_small_blocks_are_the_same(monkeypatch):
    rng = np.random.default_rng(1)
    ptr = np.cumsum([0, *rng.integers(1, 7, 20)])
    scores, weights = rng.normal(size=ptr[-1]), rng.random(ptr[-1])
    whole = objectives.pairwise_objective(weights, ptr)(scores, None)
    for size in (1, 7 * 36):
        monkeypatch.setattr(objectives, "PAIR_BLOCK", size)
        parts = objectives.pairwise_objective(weights, ptr)(scores, None)
        np.testing.assert_allclose(whole, parts, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_no_clicks_no_pull_and_one_document_no_pull(name):
    for weights, ptr in ((np.zeros(3), [0, 3]), (np.array([5.0]), [0, 1])):
        gradient, hessian = OBJECTIVES[name](weights, np.array(ptr))(np.ones(len(weights)), None)
        assert np.abs(gradient).max() < 1e-15
        assert (hessian == HESSIAN_FLOOR).all()


@pytest.mark.parametrize("name", OBJECTIVES)
def test_scores_far_apart_stay_finite(name):
    scores = np.array([1e4, -1e4, 0.0])
    gradient, hessian = OBJECTIVES[name](np.array([0.0, 3.0, 1.0]), np.array([0, 3]))(scores, None)
    assert np.isfinite(gradient).all() and np.isfinite(hessian).all()
    assert gradient[1] < 0 < gradient[0]


def test_the_floor_of_the_hessian_is_small_against_a_mean_weight_of_one():
    assert HESSIAN_FLOOR == 1e-6


def test_softmax_has_its_minimum_where_its_shares_are_those_of_the_weights():
    weights = np.array([1.0, 2.0, 5.0])
    gradient, _ = OBJECTIVES["softmax"](weights, np.array([0, 3]))(np.log(weights) + 7, None)
    np.testing.assert_allclose(gradient, 0, atol=1e-14)


@given(lists())
def test_list_softmax_equals_a_plain_one_and_ignores_a_shift_a_list(data):
    scores, shift, ptr = data
    expected = [
        exp(scores[i]) / sum(exp(scores[j]) for j in rows) for rows in by_query(ptr) for i in rows
    ]
    np.testing.assert_allclose(objectives.list_softmax(scores, ptr), expected, rtol=1e-12)
    shifts = np.repeat(shift[ptr[:-1]] * 1e3, np.diff(ptr))
    np.testing.assert_allclose(objectives.list_softmax(scores + shifts, ptr), expected, rtol=1e-9)


@given(lists(), st.sampled_from([1e-12, 1.0, 3.0, 1e12]))
def test_normalised_weights_have_mean_one_a_query_on_any_scale(data, scale):
    _, weights, ptr = data
    normalised = objectives.normalise_weights(weights * scale, ptr)
    if weights.sum() == 0:
        assert (normalised == 0).all()
    else:
        assert normalised.sum() == pytest.approx(len(ptr) - 1, rel=1e-12)
        np.testing.assert_allclose(normalised * weights.sum(), weights * (len(ptr) - 1), rtol=1e-12)

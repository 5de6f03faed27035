"""Sampled metrics against brute force, the paper's identities, and what corrections restore."""

from itertools import combinations, product

import numpy as np
import pytest
from scipy.stats import binom, hypergeom

from ultrbench.errors import UserError
from ultrbench.evaluation import metrics, sampled


@pytest.mark.parametrize("replacement", [False, True])
@pytest.mark.parametrize("rank", [1, 3, 7])
def test_distribution_is_that_of_every_possible_sample(rank, replacement):
    items, samples = 7, 3
    others = [r for r in range(1, items + 1) if r != rank]
    draws = product(others, repeat=samples) if replacement else combinations(others, samples)
    sampled_ranks = [1 + sum(other < rank for other in draw) for draw in draws]
    expected = np.bincount(sampled_ranks, minlength=samples + 2)[1:] / len(sampled_ranks)
    law = sampled.sampled_rank_distribution(
        np.array([rank]), items, samples, replacement=replacement
    )
    np.testing.assert_allclose(law[0], expected, atol=1e-12)
    value = sampled.expected_sampled_metric(
        "nDCG@2", np.array([rank]), items, samples, replacement=replacement
    )
    assert value[0] == pytest.approx(expected @ [1, 1 / np.log2(3), 0, 0])


@pytest.mark.parametrize(("items", "samples"), [(2, 1), (40, 39), (1000, 100)])
def test_distribution_is_scipys(items, samples):
    ranks = np.unique(np.linspace(1, items, 23).astype(int))
    found, above = np.arange(samples + 1), ranks[:, None] - 1
    np.testing.assert_allclose(
        sampled.sampled_rank_distribution(ranks, items, samples),
        hypergeom.pmf(found, items - 1, above, samples),
        atol=1e-11,
    )
    np.testing.assert_allclose(
        sampled.sampled_rank_distribution(ranks, items, samples, replacement=True),
        binom.pmf(found, samples, above / (items - 1)),
        atol=1e-11,
    )


@pytest.mark.parametrize("replacement", [False, True])
def test_drawn_ranks_follow_the_distribution(replacement):
    ranks = np.full(20_000, 300)
    drawn = sampled.sample_ranks(
        ranks, 1000, 20, replacement=replacement, rng=np.random.default_rng(1)
    )
    law = sampled.sampled_rank_distribution(ranks[:1], 1000, 20, replacement=replacement)[0]
    seen = np.bincount(drawn, minlength=22)[1:] / len(drawn)
    np.testing.assert_allclose(seen, law, atol=4 * 0.5 / np.sqrt(len(drawn)))


@pytest.mark.parametrize("name", ["nDCG@5", "RR@5", "AP", "R@3", "Hit@3", "P@5", "nDCG"])
def test_metric_of_rank_is_the_metric_of_a_list_with_one_relevant_document(name):
    items = 12
    ranks = np.arange(1, items + 1)
    scores = np.tile(-np.arange(items, dtype=float), (items, 1))
    expected = metrics.compute_metrics([name], scores, np.eye(items))[name]
    np.testing.assert_allclose(sampled.metric_of_rank(name, ranks, items), expected, atol=1e-15)


def test_all_of_the_catalogue_without_replacement_is_the_exact_metric():
    ranks = np.arange(1, 31)
    np.testing.assert_allclose(
        sampled.expected_sampled_metric("nDCG@5", ranks, 30, 29),
        sampled.metric_of_rank("nDCG@5", ranks, 30),
    )


@pytest.mark.parametrize("samples", [1, 10, 100])
def test_auc_alone_keeps_its_expectation(samples):
    ranks = np.array([1, 20, 500, 1000])
    for replacement in (False, True):
        np.testing.assert_allclose(
            sampled.expected_sampled_metric("AUC", ranks, 1000, samples, replacement=replacement),
            sampled.metric_of_rank("AUC", ranks, 1000),
            atol=1e-9,
        )


def test_one_negative_makes_every_metric_linear_in_auc():
    ranks = np.arange(1, 101)
    auc = sampled.metric_of_rank("AUC", ranks, 100)
    np.testing.assert_allclose(
        sampled.expected_sampled_metric("RR", ranks, 100, 1), auc + (1 - auc) / 2, atol=1e-12
    )


def bias_and_variance(values, name, items):
    law = sampled.sampled_rank_distribution(np.arange(1, items + 1), items, len(values) - 1)
    exact = sampled.metric_of_rank(name, np.arange(1, items + 1), items)
    mean = law @ values
    return np.mean((mean - exact) ** 2), np.mean(law @ values**2 - mean**2)


@pytest.mark.parametrize("name", ["nDCG@10", "RR", "Hit@10"])
@pytest.mark.parametrize("gamma", [1.0, 0.1, 0.01])
def test_bias_variance_correction_minimises_its_objective(name, gamma):
    best = sampled.corrected_by_bias_variance(name, 500, 20, gamma=gamma)
    bias, variance = bias_and_variance(best, name, 500)
    rng = np.random.default_rng(1)
    others = [sampled.uncorrected(name, 20), sampled.corrected_by_rank(name, 500, 20)]
    others += [best + rng.normal(0, 1e-3, 21) for _ in range(20)]
    for other in others:
        other_bias, other_variance = bias_and_variance(other, name, 500)
        assert bias + gamma * variance <= other_bias + gamma * other_variance


def test_gamma_trades_bias_for_variance():
    tried = [
        bias_and_variance(
            sampled.corrected_by_bias_variance("nDCG@10", 500, 20, gamma=g), "nDCG@10", 500
        )
        for g in (1.0, 0.1, 0.01)
    ]
    biases, variances = zip(*tried, strict=True)
    assert biases[0] > biases[1] > biases[2] and variances[0] < variances[1] < variances[2]


def test_constrained_least_squares_has_the_least_bias_of_the_monotone_ones():
    from scipy.optimize import minimize

    best = sampled.corrected_by_constrained_least_squares("RR", 200, 8)
    assert (np.diff(best) <= 1e-12).all()
    bias, _ = bias_and_variance(best, "RR", 200)

    def objective(steps):
        return 1e4 * bias_and_variance(np.cumsum(steps[::-1])[::-1], "RR", 200)[0]

    start = np.full(9, 0.05)
    found = minimize(objective, start, bounds=[(0, None)] * 8 + [(None, None)], tol=1e-12)
    assert 1e4 * bias <= found.fun * (1 + 1e-6)
    assert bias < bias_and_variance(sampled.uncorrected("RR", 8), "RR", 200)[0]


def test_a_correction_restores_an_order_that_sampling_swaps():
    items, rng = 2000, np.random.default_rng(2)
    # Ranker A is right at the top for a few users and poor for the others, B mediocre for all.
    ranks = np.stack([np.where(np.arange(1000) < 60, 1, 900), np.full(1000, 300)])
    exact = sampled.metric_of_rank("nDCG@10", np.arange(1, items + 1), items)
    options = {"users": 1000, "repeats": 60, "rng": rng}
    naive, whole = (
        sampled.order_agreement(ranks, items, sampled.uncorrected("nDCG@10", m), exact, **options)
        for m in (20, 1900)
    )
    corrected = sampled.corrected_by_bias_variance("nDCG@10", items, 20, gamma=0.01)
    assert naive < 0.05
    assert whole > 0.95
    assert sampled.order_agreement(ranks, items, corrected, exact, **options) > naive


def test_impossible_samples_are_refused():
    with pytest.raises(UserError, match="100 different negatives cannot be drawn from 9 items"):
        sampled.sampled_rank_distribution(np.array([1]), 10)
    with pytest.raises(UserError, match="between 1 and the number of items, 10"):
        sampled.sample_ranks(np.array([0]), 10, 2, rng=np.random.default_rng(1))
    with pytest.raises(UserError, match="no metric of one relevant item"):
        sampled.metric_of_rank("ERR@10", np.array([1]), 10)
    with pytest.raises(UserError, match="gamma must be above 0"):
        sampled.corrected_by_bias_variance("RR", 10, 2, gamma=0)


def test_rounding_does_not_decide_a_tie():
    ranks = np.array([[1, 40, 3, 70], [9, 50, 2, 80]])
    flat = np.full(21, 0.1) + np.linspace(0, 1e-15, 21)
    exact = sampled.metric_of_rank("RR", np.arange(1, 101), 100)
    for level in (0.0, 7.0):
        agreement = sampled.order_agreement(
            ranks, 100, flat + level, exact, users=30, repeats=50, rng=np.random.default_rng(1)
        )
        assert agreement == 0.5


def test_blocks_of_ranks_change_no_correction(monkeypatch):
    kinds = (sampled.corrected_by_bias_variance, sampled.corrected_by_constrained_least_squares)
    whole = [correct("nDCG@10", 300, 20) for correct in kinds]
    monkeypatch.setattr(sampled, "BLOCK", 70)
    for correct, values in zip(kinds, whole, strict=True):
        np.testing.assert_allclose(correct("nDCG@10", 300, 20), values, atol=1e-9)

"""Intervention harvesting: adjacent chain and all pairs."""

from dataclasses import replace
from math import prod

import numpy as np
import pytest
from moved_documents import GAMMA, THETA, expected_log, of_queries, shuffled
from toys import click, make_log, make_split

from ultrbench.errors import UserError
from ultrbench.propensity.estimate import find_estimator
from ultrbench.propensity.exposures import exposures
from ultrbench.propensity.harvest import FEEDBACK

harvest = find_estimator("harvest")


@pytest.mark.parametrize("pairs", ["adjacent", "all"])
def test_expected_clicks_give_the_true_ratios(pairs):
    log = expected_log(**of_queries([[0, 1, 2], [1, 2, 0], [2, 0, 1]], 3))
    estimate = harvest(log, pairs=pairs)
    assert estimate.relative == pytest.approx(THETA / THETA[0], rel=1e-9)
    assert estimate.standard_error == pytest.approx([0, 0, 0], abs=1e-9)
    assert estimate.converged


@pytest.mark.parametrize("pairs", ["adjacent", "all"])
def test_no_more_queries_than_parameters_leave_no_standard_error(pairs):
    orders = [[0, 1, 2], [1, 2, 0], [2, 0, 1]]
    few, enough = (expected_log(**of_queries(orders, queries)) for queries in (2, 3))
    assert np.isfinite(harvest(enough, pairs=pairs).standard_error).all()
    estimate = harvest(few, pairs=pairs)
    assert estimate.relative == pytest.approx(THETA / THETA[0], rel=1e-9)
    assert np.isnan(estimate.standard_error).all()
    assert estimate.notes == ("2 queries bear on it, too few for standard errors of 2 parameters",)
    later = replace(few, rounds=np.arange(len(few.queries), dtype=np.uint8))
    assert harvest(later, pairs=pairs).notes == (*estimate.notes, FEEDBACK)


@pytest.mark.parametrize("pairs", ["adjacent", "all"])
def test_one_document_that_moved_is_enough(pairs):
    log = make_log([[0, 1], [2, 0]], [(0, 1, 6), (0, 0, 4), (1, 2, 3), (1, 0, 17)], queries=[0, 0])
    assert harvest(log, pairs=pairs).relative[1] == pytest.approx((3 / 20) / (6 / 10))


def test_a_query_with_clicks_at_one_of_the_positions_bears_on_theta():
    orders = [[0, 1], [1, 0], [2, 3], [3, 2]]
    groups = [(0, 1, 6), (0, 2, 3), (1, 1, 5), (1, 2, 4), (2, 1, 7), (3, 0, 9)]
    log = make_log(orders, groups, queries=[0, 0, 1, 1])
    assert np.isfinite(harvest(log, pairs="all").standard_error).all()
    silent = make_log(orders, [*groups[:4], (2, 0, 7), (3, 0, 9)], queries=[0, 0, 1, 1])
    assert np.isnan(harvest(silent, pairs="all").standard_error).all()


def noisy_log(seed=0, sessions=30, queries=60):
    split = make_split([5] * queries, seed=seed)
    lists = shuffled(split, 4, seed=seed)
    theta = np.array([0.8, 0.6, 0.4, 0.2, 0.1])
    gamma = 0.1 + 0.2 * split.grades
    counts = np.random.default_rng(seed).integers(1, 2 * sessions, size=len(lists.queries))
    return click(lists, counts, theta, gamma, seed=seed), theta


def interventional(log, k, l):  # noqa: E741
    """Weighted clicks at k and l of the documents seen at both, one document at a time."""
    table = exposures(log)
    sums = [0.0, 0.0]
    for n, c in zip(table.impressions, table.clicks, strict=True):
        if n[k] and n[l]:
            w = n[k] * n[l] / (n[k] + n[l])
            sums[0] += w * c[k] / n[k]
            sums[1] += w * c[l] / n[l]
    return sums


def test_adjacent_pairs_are_the_chain_of_ratios():
    log, _ = noisy_log()
    ratios = [c / b for b, c in (interventional(log, k, k + 1) for k in range(4))]
    expected = [prod(ratios[:k]) for k in range(5)]
    assert harvest(log, pairs="adjacent").relative == pytest.approx(expected, rel=1e-8)


def test_all_pairs_solve_the_bradley_terry_equations():
    log, _ = noisy_log(1)
    theta = harvest(log, pairs="all").relative
    for k in range(5):
        score = 0.0
        for other in set(range(5)) - {k}:
            mine, theirs = interventional(log, k, other)
            score += mine - (mine + theirs) * theta[k] / (theta[k] + theta[other])
        assert score == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("pairs", ["adjacent", "all"])
def test_recovers_theta_and_its_intervals_cover(pairs):
    inside = []
    for seed in range(25):
        log, theta = noisy_log(seed, sessions=60, queries=150)
        estimate = harvest(log, pairs=pairs)
        error = np.log(estimate.relative / (theta / theta[0]))[1:]
        inside.append(np.abs(error) < 1.96 * estimate.standard_error[1:])
        assert np.abs(error).mean() < 0.2
    assert 0.86 < np.mean(inside) <= 1


def test_adjacent_needs_adjacent_pairs_and_all_does_not():
    # Documents move between 1 and 3, and between 3 and 2, as adjacent pairs; 1 and 2 share none.
    orders, queries = [[0, 1, 2], [2, 1, 0], [3, 4, 5], [3, 5, 4]], [0, 0, 1, 1]
    gamma = np.array([1.0, 0.5, 0.25, 1.0, 0.5, 0.25])
    log = expected_log(orders, gamma, queries=queries)
    assert harvest(log, pairs="all").relative == pytest.approx(THETA / THETA[0])
    with pytest.raises(UserError, match=r"positions 2, 3 cannot be reached .*`pairs: all`"):
        harvest(log, pairs="adjacent")
    with pytest.raises(UserError, match=r"no document .* two adjacent positions"):
        harvest(expected_log(orders[:2], gamma), pairs="adjacent")


@pytest.mark.parametrize("pairs", ["adjacent", "all"])
def test_refuses_a_static_log(pairs):
    log = make_log([[0, 1], [2, 3]], [(0, 1, 3), (1, 2, 3)])
    with pytest.raises(UserError, match="harvest: no document of this log was seen at two"):
        harvest(log, pairs=pairs)


def test_refuses_other_pairs():
    with pytest.raises(UserError, match="pairs: adjacent or all is wanted, got chain"):
        harvest(expected_log([[0, 1], [1, 0]], GAMMA), pairs="chain")


def test_orders_that_may_follow_clicks_are_no_identification():
    first = expected_log(**of_queries([[0, 1, 2], [1, 2, 0], [2, 0, 1]], 3))
    assert harvest(first, pairs="all").identified
    later = replace(first, rounds=np.array([0, 1, 1] * 3, np.uint8))
    followed = harvest(later, pairs="all")
    assert (followed.identified, followed.notes) == (False, (FEEDBACK,))
    shuffled_later = replace(later, randomized=np.ones(9, bool))
    assert harvest(shuffled_later, pairs="all").identified


@pytest.mark.parametrize("pairs", ["adjacent", "all"])
def test_numbers_of_queries_are_names(pairs):
    log = expected_log(**of_queries([[0, 1, 2], [1, 2, 0], [2, 0, 1]], 3))
    far = replace(log, queries=log.queries * 2**50 + 2**60)
    estimates = [harvest(one, pairs=pairs) for one in (log, far)]
    for name in ("relative", "standard_error"):
        np.testing.assert_array_equal(*(getattr(estimate, name) for estimate in estimates))

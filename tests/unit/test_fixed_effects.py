"""Document effects and the conditional likelihood they share with harvesting."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from moved_documents import GAMMA, THETA, expected_log, of_queries, shuffled
from scipy.optimize import minimize
from toys import click, make_log, make_split

from ultrbench.errors import UserError
from ultrbench.propensity.estimate import find_estimator
from ultrbench.propensity.exposures import (
    Exposures,
    exposures,
    exposures_by_round,
    follows_clicks,
    position_groups,
)
from ultrbench.propensity.fixed_effects import expected_ranks
from ultrbench.propensity.position_effects import fit_effects
from ultrbench.propensity.sequential import fit_sequential
from ultrbench.simulation.log import concatenate

fixed_effects = find_estimator("fixed_effects")


def test_expected_clicks_give_the_true_ratios():
    log = expected_log(**of_queries([[0, 1, 2], [1, 2, 0]], 3))
    estimate = fixed_effects(log)
    assert estimate.relative == pytest.approx(THETA / THETA[0], rel=1e-9)
    assert np.isnan(estimate.theta).all()
    # Where every residual is zero, so are the standard errors.
    assert estimate.standard_error == pytest.approx([0, 0, 0], abs=1e-9)
    assert estimate.converged
    assert estimate.trace[-1] == estimate.relative.tolist()


def test_a_single_query_leaves_no_standard_error():
    estimate = fixed_effects(expected_log([[0, 1, 2], [1, 2, 0]], GAMMA))
    assert estimate.relative == pytest.approx(THETA / THETA[0], rel=1e-9)
    assert np.isnan(estimate.standard_error).all()
    assert estimate.notes == ("1 query bears on it, too few for standard errors of 2 parameters",)


def test_queries_without_clicks_on_moved_documents_bear_on_nothing():
    setting = of_queries([[0, 1, 2], [1, 2, 0]], 3)
    assert not fixed_effects(expected_log(**setting)).notes
    setting["gamma"][8:] = 0
    assert fixed_effects(expected_log(**setting)).notes
    still = of_queries([[0, 1, 2], [1, 2, 0]], 2)
    orders, queries = still["orders"] + [[8, 9, 10], [11, -1, -1]], still["queries"] + [2, 3]
    assert fixed_effects(expected_log(orders, np.tile(GAMMA, 4), queries=queries)).notes


def test_a_document_that_never_moved_has_no_say():
    orders = [[0, 1, 2], [1, 2, 0]]
    log = expected_log([*orders, [3, -1, -1]], GAMMA, queries=[0, 0, 1])
    assert (
        fixed_effects(log).relative.tolist()
        == fixed_effects(expected_log(orders, GAMMA)).relative.tolist()
    )


def test_two_positions_by_hand():
    # 10 impressions at position 1 and 20 at position 2; 6 and 3 clicks: (3 / 20) / (6 / 10).
    log = make_log([[0, 1], [1, 0]], [(0, 1, 6), (0, 0, 4), (1, 2, 3), (1, 0, 17)], queries=[0, 0])
    assert fixed_effects(log).relative[1] == pytest.approx((3 / 20) / (6 / 10))


def alternated(n, c, rounds=2000):
    theta = np.ones(n.shape[1])
    for _ in range(rounds):
        effect = c.sum(axis=1) / (n @ theta)
        theta = c.sum(axis=0) / (n.T @ effect)
    return theta / theta[0]


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1))
@example(98)  # rounding hid the gain of the last steps
def test_agrees_with_the_alternating_closed_form(seed):
    rng = np.random.default_rng(seed)
    n = rng.integers(1, 30, size=(12, 4)).astype(float)
    c = rng.poisson(n * rng.uniform(0.2, 1, size=4)) + 1.0
    fit = fit_effects(n, c)
    assert fit.converged
    assert fit.relative == pytest.approx(alternated(n, c), rel=1e-6)


def test_agrees_with_a_general_optimiser_from_a_far_start():
    rng = np.random.default_rng(3)
    n = rng.integers(0, 5, size=(40, 3)).astype(float) + np.eye(3)[rng.integers(3, size=40)]
    c = rng.poisson(n * [9.0, 0.5, 0.02]).astype(float) + np.eye(40, 3)

    def loss(logs):
        theta = np.exp(np.append(0.0, logs))
        return -(c @ np.log(theta)).sum() + c.sum(axis=1) @ np.log(n @ theta)

    found = minimize(loss, [5.0, -8.0], method="Nelder-Mead", options={"xatol": 1e-9}).x
    assert np.log(fit_effects(n, c).relative[1:]) == pytest.approx(found, abs=1e-5)


def test_a_newton_step_that_goes_too_far_is_shortened():
    # One document: (5 / 1) / (5 / 1000). The first full step is log theta = 500.
    fit = fit_effects(np.array([[1000.0, 1.0]]), np.array([[5.0, 5.0]]))
    assert fit.converged
    assert fit.relative == pytest.approx([1, 1000], rel=1e-9)


def test_recovers_theta_and_its_intervals_cover():
    split = make_split([5] * 300, seed=1)
    lists = shuffled(split, 3)
    gamma = 0.1 + 0.2 * split.grades
    theta = np.array([0.8, 0.6, 0.4, 0.2, 0.1])
    truth = np.log(theta / theta[0])[1:]
    sessions = np.full(len(lists.queries), 40)
    inside = []
    for seed in range(40):
        estimate = fixed_effects(click(lists, sessions, theta, gamma, seed=seed))
        error = np.log(estimate.relative)[1:] - truth
        inside.append(np.abs(error) < 1.96 * estimate.standard_error[1:])
        assert np.abs(error).mean() < 0.1
    # 160 intervals, of which those of one log are correlated.
    assert 0.88 < np.mean(inside) <= 1


def feedback_log(seed, sessions=30, queries=1500):
    """Three rounds: in random order, then in that of the clicks per examination so far."""
    split = make_split([5] * queries, seed=1)
    theta = np.array([0.8, 0.6, 0.4, 0.2, 0.1])
    gamma = 0.1 + 0.2 * split.grades
    documents = np.arange(5 * queries).reshape(queries, 5)
    order = np.argsort(np.random.default_rng(seed).random(documents.shape), axis=1)
    seen, clicked, logs = np.zeros(documents.shape), np.zeros(documents.shape), []
    for round_ in range(3):
        lists = make_log(np.take_along_axis(documents, order, 1))
        log = click(lists, np.full(queries, sessions), theta, gamma, seed=10 * seed + round_)
        logs.append(replace(log, rounds=np.full(queries, round_, dtype=np.uint8)))
        for total, values in ((seen, theta), (clicked, log.clicks)):
            np.put_along_axis(total, order, np.take_along_axis(total, order, 1) + values, 1)
        order = np.argsort(-clicked / seen, axis=1, kind="stable")
    return concatenate(logs), split.features, np.log(theta / theta[0])[1:]


def test_rounds_ordered_by_the_clicks_before_them_leave_no_bias():
    errors, inside = [], []
    for seed in range(12):
        log, features, truth = feedback_log(seed)
        estimate = fixed_effects(log, features=features, seed=seed)
        assert estimate.converged and estimate.identified
        errors.append(np.log(estimate.relative)[1:] - truth)
        inside.append(np.abs(errors[-1]) < 1.96 * estimate.standard_error[1:])
    table = exposures(log)
    pooled = fit_effects(table.impressions, table.clicks)
    # Conditioning on all clicks takes luck for position; the moments of a round do not.
    assert (np.log(pooled.relative)[1:] - truth).mean() > 0.1
    assert np.abs(np.mean(errors, axis=0)).max() < 0.04
    assert np.mean(inside) > 0.85


def test_the_rank_expected_by_other_queries_makes_rounds_precise():
    log, features, _ = feedback_log(0)
    table = exposures_by_round(log)
    signals = expected_ranks(log, features, np.ones(5), seed=1)
    assert signals.sum(axis=1).tolist() == [1] * len(signals)
    with_ranks, without = (
        fit_sequential(table, known, np.ones(5)) for known in (signals, signals[:, :0])
    )
    assert (with_ranks.standard_error < without.standard_error)[1:].all()


def test_few_queries_do_without_rankers():
    log, _, _ = feedback_log(0, sessions=3000, queries=4)
    assert np.isfinite(fixed_effects(log, features=np.zeros((20, 1), np.float32)).relative).all()


def test_exposures_add_up_over_lists_and_keep_canonical_order():
    log = make_log([[3, 1], [1, 3], [3, 1]], [(0, 1, 2), (1, 3, 5), (2, 0, 4)], queries=[0, 0, 0])
    table = exposures(log)
    assert table.impressions.tolist() == [[5, 6], [6, 5]]
    assert table.clicks.tolist() == [[5, 0], [2, 5]]
    assert table.by_query(table.clicks).tolist() == [[7, 5]]


def test_exposures_of_all_rounds_are_added_and_one_round_in_given_order_may_follow_clicks():
    rounds = [
        replace(make_log([[3, 1]], [(0, 1, n)], queries=[0]), rounds=np.array([r], dtype=np.uint8))
        for r, n in enumerate((2, 5))
    ]
    log = concatenate(rounds)
    table = exposures(log)
    assert table.impressions.tolist() == [[0, 7], [7, 0]]
    assert table.clicks.tolist() == [[0, 0], [7, 0]]
    assert follows_clicks(log)
    assert follows_clicks(replace(log, randomized=np.array([True, False])))
    assert not follows_clicks(replace(log, randomized=np.array([True, True])))
    assert not follows_clicks(rounds[1])


def test_strong_groups_need_links_both_ways():
    chain = np.array([[1, 1, 0], [0, 1, 1], [0, 0, 1]], dtype=bool)
    assert position_groups(chain) == [[1, 2, 3]]
    assert position_groups(chain, strong=True) == [[1], [2], [3]]


def test_refuses_a_static_log():
    log = expected_log([[0, 1, 2]], GAMMA)
    with pytest.raises(UserError, match=r"fixed_effects: no document .* at two positions"):
        fixed_effects(log)


def test_a_list_without_sessions_shows_nothing():
    log = make_log([[0, 1], [1, 0]], [(0, 1, 6), (0, 2, 4)], queries=[0, 0])
    with pytest.raises(UserError, match="no document of this log was seen at two positions"):
        fixed_effects(log)


def test_names_the_positions_out_of_reach():
    log = expected_log([[0, 1, 2], [1, 0, 2]], GAMMA)
    with pytest.raises(UserError, match=r"position 3 cannot be reached .* with positions 1, 2"):
        fixed_effects(log)


def test_refuses_a_position_without_clicks_of_moved_documents():
    log = make_log([[0, 1], [1, 0]], [(0, 1, 6), (0, 0, 4), (1, 1, 3)], queries=[0, 0])
    with pytest.raises(UserError, match="too few clicks to compare position 2"):
        fixed_effects(log)


def test_sums_are_by_query_whatever_the_first_query_is():
    log = make_log([[0, 1], [3, 2]], [(0, 0b01, 5), (1, 0b10, 7)], queries=[1, 4])
    table = exposures(log)
    assert table.queries.tolist() == [1, 1, 4, 4]
    assert table.by_query(table.clicks).tolist() == [[5, 0], [0, 7]]
    # A document that a single session saw at another position has moved.
    once = make_log([[0, 1], [1, 0]], [(0, 0, 5), (1, 0, 1)], queries=[0, 0])
    assert exposures(once).moved.tolist() == [True, True]


def test_rankers_of_the_other_queries_tell_ranks_and_few_queries_tell_nothing():
    queries, positions = 40, 2
    # The best of three documents, which are shown two at a time, is the one that is clicked.
    order = np.array([[0, 1], [1, 2], [2, 0]])
    documents = (3 * np.arange(queries)[:, None, None] + order).reshape(-1, 2)
    best = documents.argmin(axis=1)
    worth = np.tile([3.0, 2.0, 1.0], queries)
    log = make_log(
        documents,
        [(row, 1 << int(k), 50) for row, k in enumerate(best)],
        queries=np.repeat(np.arange(queries), 3),
    )
    features = worth[:, None].astype(np.float32)
    ranks = expected_ranks(log, features, np.ones(positions), seed=1)
    # Third is beyond the last position and counts as it.
    assert ranks.tolist() == [[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]] * queries
    few = log.select(log.queries < 4)
    assert expected_ranks(few, features, np.ones(positions), seed=1).shape == (12, 0)
    five = log.select(log.queries < 5)
    assert expected_ranks(five, features, np.ones(positions), seed=1).shape == (15, positions)


def test_documents_that_move_within_one_round_alone_are_fitted_by_conditional_poisson():
    rng = np.random.default_rng(4)
    impressions = rng.integers(5, 30, size=(40, 3)).astype(float)
    clicks = rng.binomial(impressions.astype(int), rng.uniform(0.2, 0.9, (40, 1)) * THETA[:3])
    clicks = clicks.astype(float)
    later = np.arange(40) >= 20  # these documents are shown in the second round, the others before
    rounds = [
        Exposures(np.arange(40), impressions * part[:, None], clicks * part[:, None])
        for part in (~later, later)
    ]
    fit = fit_sequential(rounds, np.empty((40, 0)), np.ones(3))
    assert fit.converged
    pooled = fit_effects(impressions, clicks)
    np.testing.assert_allclose(fit.relative, pooled.relative, rtol=1e-8)


def test_documents_of_one_round_do_not_keep_those_of_both_from_being_compared():
    # Expected clicks of theta = (1, .5) and a = (.4, .2, .6); only the first two are shown again.
    before = np.array([[100.0, 0.0], [0.0, 100.0], [50.0, 0.0]])
    after = np.array([[0.0, 100.0], [100.0, 0.0], [0.0, 0.0]])
    theta, a = np.array([1.0, 0.5]), np.array([[0.4], [0.2], [0.6]])
    rounds = [Exposures(np.zeros(3, np.int64), n, n * theta * a) for n in (before, after)]
    fit = fit_sequential(rounds, np.empty((3, 0)), np.ones(2))
    np.testing.assert_allclose(fit.relative, theta, rtol=1e-6)


def sequential_moments(rounds, signals, theta):
    """The moment conditions as the docstring of `fit_sequential` writes them, number by number."""
    share, rate, exposure = [], [], []
    for table in rounds:
        e = (table.impressions * theta).sum(axis=1)
        with np.errstate(invalid="ignore"):
            share.append(table.impressions * theta / e[:, None])
            rate.append(table.clicks.sum(axis=1) / e)
        exposure.append(e)
    moments = np.zeros(len(theta))
    for r, table in enumerate(rounds):
        seen = exposure[r] > 0
        moments += (table.clicks - table.clicks.sum(axis=1)[:, None] * share[r])[seen].sum(axis=0)
        known = np.hstack([np.where(seen[:, None], share[r], 0), signals])
        ahead = []
        for s in range(r + 1, len(rounds)):
            both = seen & (exposure[s] > 0)
            fitted = known @ np.linalg.pinv(known[both])
            later = fitted @ share[s][both], np.exp(fitted @ np.log(exposure[s][both]))
            ahead.append((s, both, *later))
        for i in np.flatnonzero(seen):
            rows = [(s, p[i], f[i]) for s, both, p, f in ahead if both[i]]
            total = sum(f for _, _, f in rows)
            if rows:
                weight = exposure[r][i] * total / (exposure[r][i] + total)
                predicted = sum(f * p for _, p, f in rows) / total
                later_rate = sum(f * rate[s][i] for s, _, f in rows) / total
                moments += weight * (share[r][i] - predicted) * (rate[r][i] - later_rate)
    return moments


def test_the_published_moments_are_zero_at_the_estimate_and_nowhere_near_it():
    rng = np.random.default_rng(6)
    worth, rounds = rng.uniform(0.2, 0.9, (60, 1)), []
    for r in range(3):
        impressions = rng.integers(1, 40, (60, 3)) * (rng.random((60, 3)) < 0.6)
        impressions[20 * r : 20 * r + 5] = 0  # some documents miss a round
        clicks = rng.binomial(impressions, worth * [0.9, 0.5, 0.3])
        rounds.append(Exposures(np.arange(60), impressions.astype(float), clicks.astype(float)))
    signals = rng.random((60, 2))
    fit = fit_sequential(rounds, signals, np.ones(3))
    assert fit.converged and len(fit.trace) < 20
    np.testing.assert_allclose(sequential_moments(rounds, signals, fit.relative), 0, atol=1e-6)
    assert np.abs(sequential_moments(rounds, signals, fit.relative * [1, 1, 1.01])).max() > 0.1


def test_what_runs_off_to_infinity_is_refused():
    # Fifty sessions in three rounds, of which the moments have no solution; they flatten far out.
    shown = [[3, 2, 0, 4, 1], [2, 0, 3, 1, 4], [8, 7, 5, 9, -1], [8, 6, 5, 9, 7], [9, 5, 6, 8, 7]]
    shown += [[12, 14, -1, -1, -1], [10, 11, 12, 13, -1]]
    clicks = [[2, 1, 1, 0, 0], [1, 0, 0, 1, 0], [3, 0, 1, 0, 0], [0] * 5, [13, 5, 4, 2, 1]]
    clicks += [[20, 11, 0, 0, 0], [1, 0, 0, 0, 0]]
    sessions = [2, 1, 3, 0, 16, 28, 1]
    groups = []
    for row, (by_position, count) in enumerate(zip(clicks, sessions, strict=True)):
        for session in range(count):
            mask = sum(1 << k for k, number in enumerate(by_position) if session < number)
            groups.append((row, mask, 1))
    log = make_log(shown, groups, queries=[0, 0, 1, 1, 1, 2, 2])
    assert log.clicks.tolist() == clicks
    log = replace(log, rounds=np.array([1, 0, 1, 1, 0, 1, 2], np.uint8))
    with pytest.raises(UserError, match="no bound to the propensity of position 5, which comes"):
        find_estimator("fixed_effects")(log, features=np.zeros((15, 1), np.float32), seed=1)

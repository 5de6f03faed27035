"""Weights other than plain IPW: exact on expected counts, and what they refuse."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_objectives import finite_differences, pairwise_loss, softmax_loss
from toys import candidates, make_log, make_split

from ultrbench.errors import UserError
from ultrbench.propensity.estimate import find_estimator, up_to_scale, write_estimate
from ultrbench.propensity.last_clicks import continuation
from ultrbench.propensity.trust import affine_parameters
from ultrbench.ranking.affine import affine_weights
from ultrbench.ranking.boosting import train
from ultrbench.ranking.dcm import dcm_weights
from ultrbench.ranking.model import predict
from ultrbench.ranking.objectives import OBJECTIVES
from ultrbench.ranking.policy_aware import policy_aware_weights
from ultrbench.ranking.targets import expected_clicks, expected_ipw_weights, ipw_weights
from ultrbench.ranking.weights import WEIGHTS, weighted_clicks
from ultrbench.simulation.behaviour import Behaviour
from ultrbench.simulation.clicks import attraction, simulate_sessions
from ultrbench.simulation.display import shuffle
from ultrbench.simulation.truth import read_truth, read_truth_columns, write_truth

SESSIONS = 10**12
LAMBDA = np.array([0.6, 0.3, 0.8, 0.5])


def dcm_groups(gamma, go_on, index=0):
    """Every click mask of the dependent click model with its expected count, by its definition."""
    groups = []
    for mask in itertools.product([0, 1], repeat=len(gamma)):
        # Chance of this mask: reading on without a click, or stopping after the last one.
        reach, chance = 1.0, 0.0
        for k, clicked in enumerate(mask):
            reach *= gamma[k] if clicked else 1 - gamma[k]
            if clicked:
                if not any(mask[k + 1 :]):
                    chance += reach * (1 - go_on[k])
                reach *= go_on[k]
        bits = sum(bit << k for k, bit in enumerate(mask))
        count = round(SESSIONS * (chance + reach))
        if count:
            groups.append((index, bits, count))
    return groups


def test_the_masks_of_the_click_model_add_up():
    counts = [count for _, _, count in dcm_groups([0.2, 0.9, 0.5, 0.4], LAMBDA)]
    assert sum(counts) == pytest.approx(SESSIONS, abs=16)


def test_dcm_weights_give_the_relevance_exactly():
    gamma = np.array([0.2, 0.9, 0.5, 0.4, 0.3])
    shown = [[3, 1, 0, 2], [4, -1, -1, -1]]
    groups = dcm_groups(gamma[shown[0]], LAMBDA) + dcm_groups(gamma[[4]], LAMBDA, 1)
    lists = dcm_weights(make_log(shown, groups), LAMBDA)
    np.testing.assert_allclose(lists.weights / SESSIONS, gamma, rtol=1e-9)


def test_weights_of_inverse_position_do_not():
    gamma = np.array([0.2, 0.9, 0.5, 0.4])
    log = make_log([[3, 1, 0, 2]], dcm_groups(gamma[[3, 1, 0, 2]], LAMBDA))
    naive = ipw_weights(log, np.ones(4)).weights / SESSIONS
    assert np.abs(naive - gamma).max() > 0.1


def test_last_clicks_are_exact_where_whoever_goes_on_clicks():
    log = make_log([[0, 1, 2, 3]], dcm_groups(np.ones(4), LAMBDA))
    np.testing.assert_allclose(continuation(log), [*LAMBDA[:3], 0], atol=1e-9)
    estimate = find_estimator("last_clicks")(log)
    np.testing.assert_array_equal(estimate.columns["continuation"], continuation(log))
    assert np.isnan(estimate.relative).all()


def test_last_clicks_are_too_small_by_those_who_go_on_in_vain():
    gamma = np.array([0.5, 0.4, 0.3, 0.2])
    log = make_log([[0, 1, 2, 3]], dcm_groups(gamma, LAMBDA))
    in_vain = np.array([0.6 * 0.7 * 0.8, 0.7 * 0.8, 0.8, 1.0])
    np.testing.assert_allclose(continuation(log), LAMBDA * (1 - in_vain), atol=1e-9)


def test_last_clicks_refuse_a_position_without_clicks():
    with pytest.raises(UserError, match="no click at position 2 in 3 sessions"):
        continuation(make_log([[0, 1]], [(0, 1, 3)]))


def test_the_continuation_adds_up_the_clicks_of_all_lists():
    log = make_log([[0, 1], [2, 3]], [(0, 1, 3), (0, 3, 1), (1, 1, 2), (1, 2, 2)])
    # Six clicks at position 1, of which five were the last.
    np.testing.assert_allclose(continuation(log), [1 / 6, 0])


def test_clicks_that_the_continuation_rules_out_are_refused():
    log = make_log([[0, 1, 2]], [(0, 0b110, 1)])
    with pytest.raises(UserError, match="clicks at position 3 below a click at position 2"):
        dcm_weights(log, np.array([0.5, 0.0, 0.0]))
    # Nobody clicks below position 2 here, so that its continuation is not needed.
    assert dcm_weights(make_log([[0, 1, 2]], [(0, 0b010, 1)]), np.zeros(3)).weights.sum() == 1


def test_affine_weights_undo_trust_bias_exactly():
    gamma = np.array([0.0, 1.0, 0.5, 0.25])
    theta = np.array([0.8, 0.5, 0.25])
    above, below = np.array([0.95, 0.75, 0.625]), np.array([0.45, 0.25, 0.125])
    alpha, beta = theta * (above - below), theta * below
    shown = np.array([[3, 1, 0], [1, 2, -1]])
    groups = []
    for index, documents in enumerate(shown):
        real = documents[documents >= 0]
        p = theta * (above * gamma[documents] + below * (1 - gamma[documents]))
        for bits in itertools.product([0, 1], repeat=len(real)):
            chance = np.prod(np.where(bits, p[: len(real)], 1 - p[: len(real)]))
            mask = sum(bit << k for k, bit in enumerate(bits))
            groups.append((index, mask, round(SESSIONS * chance)))
    log = make_log(shown, groups, queries=[0, 0])
    weights = affine_weights(log, alpha, beta).weights / SESSIONS
    np.testing.assert_allclose(weights, gamma * [1, 2, 1, 1], atol=1e-9)


def test_affine_weights_of_unclicked_impressions_are_negative():
    log = make_log([[0, 1]], [(0, 0b01, 1), (0, 0b00, 9)])
    weights = affine_weights(log, np.array([0.5, 0.25]), np.array([0.2, 0.1])).weights
    np.testing.assert_allclose(weights, [(1 - 0.2 * 10) / 0.5, -0.1 * 10 / 0.25])


def test_affine_weights_refuse_clicks_that_do_not_depend_on_relevance():
    alpha = np.array([1.0, 0.0, -2.0])
    with pytest.raises(UserError, match="alpha of position 2 is 0, "):
        affine_weights(make_log([[0, 1, 2]], [(0, 1, 1)]), alpha, np.zeros(3))


def stochastic_log(gamma, theta, shares, lists):
    """Expected clicks by position only: one group a clicked position."""
    groups = []
    for index, (documents, share) in enumerate(zip(lists, shares, strict=True)):
        sessions = round(SESSIONS * share)
        clicks = [round(sessions * theta[k] * gamma[d]) for k, d in enumerate(documents)]
        groups += [(index, 1 << k, count) for k, count in enumerate(clicks)]
        groups.append((index, 0, sessions - sum(clicks)))
    return make_log(lists, groups, queries=[0] * len(lists))


def test_policy_aware_weights_reach_what_the_cut_off_leaves_out():
    gamma, theta = np.array([0.1, 0.2, 0.3]), np.array([0.9, 0.3])
    log = stochastic_log(gamma, theta, [0.6, 0.3, 0.1], [[0, 1], [1, 2], [2, 0]])
    weights = policy_aware_weights(log, theta).weights / SESSIONS
    np.testing.assert_allclose(weights, gamma, rtol=1e-9)
    shown = np.array([0.6 + 0.1, 0.6 + 0.3, 0.3 + 0.1])
    plain = ipw_weights(log, theta).weights / SESSIONS
    np.testing.assert_allclose(plain, gamma * shown, rtol=1e-9)


def test_policy_aware_weights_keep_queries_apart():
    log = make_log(
        [[7, 8], [8, 7], [1, 2], [2, 1]],
        [(0, 1, 1), (1, 1, 1), (2, 1, 5), (3, 0, 15)],
        queries=[6, 6, 3, 3],
    )
    weights = policy_aware_weights(log, np.array([1.0, 0.5])).weights
    rho = [(5 * 1 + 15 * 0.5) / 20, (5 * 0.5 + 15 * 1) / 20, 0.75, 0.75]
    np.testing.assert_allclose(weights, np.array([5, 0, 1, 1]) / rho)


def test_policy_aware_weights_refuse_a_deterministic_policy():
    # Two rounds showed the same list, and a third list was never shown in a session.
    log = make_log([[0, 1], [0, 1], [1, 0]], [(0, 1, 2), (1, 2, 3)], queries=[0, 0, 0])
    with pytest.raises(UserError, match="its policy is deterministic"):
        policy_aware_weights(log, np.ones(2))


def test_weights_read_the_columns_of_the_estimate(tmp_path):
    log = make_log([[0, 1], [1, 0]], [(0, 0b11, 2), (1, 0b01, 3)], queries=[0, 0])
    columns = {"alpha": [0.5, 0.2], "beta": [0.1, 0.0], "continuation": [0.4, 0.0]}
    columns = {name: np.array(values) for name, values in columns.items()}
    estimate = up_to_scale(np.array([1.0, 0.25]), columns=columns)
    table = tmp_path / "theta.csv"
    write_estimate(estimate, table, tmp_path / "theta.json")
    expected = {
        "ipw": ipw_weights(log, estimate.relative),
        "affine": affine_weights(log, columns["alpha"], columns["beta"]),
        "dcm": dcm_weights(log, columns["continuation"]),
        "policy_aware": policy_aware_weights(log, estimate.relative),
    }
    assert set(expected) == set(WEIGHTS)
    for kind, lists in expected.items():
        np.testing.assert_array_equal(weighted_clicks(kind, log, table).weights, lists.weights)


def test_weights_without_their_columns_are_refused(tmp_path):
    table = tmp_path / "theta.csv"
    write_estimate(up_to_scale(np.ones(2)), table, tmp_path / "theta.json")
    with pytest.raises(UserError, match=r"theta\.csv: no column `alpha`"):
        weighted_clicks("affine", make_log([[0, 1]], [(0, 1, 1)]), table)


def test_the_oracle_passes_on_what_the_simulator_knows(tmp_path):
    path = tmp_path / "truth.csv"
    theta, alpha = np.array([0.5, 0.25, 0.1]), np.array([0.45, 0.2, 1 / 3])
    write_truth(path, theta, alpha=alpha)
    columns = read_truth_columns([path, path])
    np.testing.assert_array_equal(columns["alpha"], alpha)
    log = make_log([[0, 1]], [(0, 1, 1)])
    estimate = find_estimator("oracle")(log, truth=read_truth([path]), columns=columns)
    np.testing.assert_array_equal(estimate.columns["alpha"], alpha[:2])
    write_truth(path, np.empty(0))
    assert read_truth_columns([path]) == {}


@st.composite
def signed_lists(draw):
    lengths = draw(st.lists(st.integers(1, 5), min_size=1, max_size=3))
    size = sum(lengths)
    scores = draw(st.lists(st.sampled_from(np.arange(-3, 3.5, 0.5)), min_size=size, max_size=size))
    weights = draw(st.lists(st.sampled_from([-2, -0.5, 0, 1, 7]), min_size=size, max_size=size))
    return np.array(scores), np.array(weights, dtype=float), np.cumsum([0, *lengths])


@settings(max_examples=50, deadline=None)
@given(signed_lists())
def test_negative_weights_enter_the_gradients_as_they_are(lists):
    scores, weights, ptr = lists
    losses = {
        "softmax": lambda f: softmax_loss(f, weights, ptr),
        "pairwise": lambda f: pairwise_loss(f, weights, ptr, scores),
    }
    for name, loss in losses.items():
        gradient, hessian = OBJECTIVES[name](weights, ptr)(scores, None)
        wanted, curve = finite_differences(loss, scores, 1e-4)
        np.testing.assert_allclose(gradient, wanted, atol=1e-5)
        assert (hessian > curve - 1e-4).all()  # no step is longer than the curvature allows


def test_a_document_that_only_negative_weights_speak_of_moves_by_the_learning_rate():
    weights, ptr = np.array([5.0, -3.0]), np.array([0, 2])
    for name in OBJECTIVES:
        gradient, hessian = OBJECTIVES[name](weights, ptr)(np.array([20.0, -20.0]), None)
        assert 0 < gradient[1] <= hessian[1] * (1 + 1e-6)


def test_affine_weights_train_a_better_ranker_under_trust_bias():
    split = make_split(np.full(400, 8), seed=1)
    rng = np.random.default_rng(2)
    shown = candidates(split, width=6)
    theta = np.array([0.9, 0.7, 0.5, 0.35, 0.25, 0.2])
    below = np.array([0.6, 0.5, 0.35, 0.25, 0.1, 0.05])
    alpha, beta = theta * (0.95 - below), theta * below
    p = alpha * attraction(split.grades, 4, eps=0)[shown] + beta
    log = make_log(shown)
    clicks = rng.random((100, *p.shape)) < p
    masks = (clicks << np.arange(6)).sum(axis=-1).T.ravel()
    key, count = np.unique(np.repeat(np.arange(400), 100) * 64 + masks, return_counts=True)
    log = log.with_clicks(key // 64, (key % 64).astype(np.uint64), count)
    kinds = {"affine": affine_weights(log, alpha, beta), "ipw": ipw_weights(log, theta)}
    assert (kinds["affine"].weights < 0).mean() > 0.1
    size = {"trees": 30, "leaves": 5, "learning_rate": 0.1, "min_data_in_leaf": 20, "seed": 1}
    for objective in OBJECTIVES:
        correlation = {}
        for name, lists in kinds.items():
            fit = train(split.features, lists, objective=objective, **size)
            correlation[name] = np.corrcoef(predict(fit.model, split.features), split.grades)[0, 1]
        assert correlation["affine"] > correlation["ipw"] + 0.01


def trust_log(split, *, sessions, randomized, alpha, beta):
    """Sessions on a list in order of the grades, and on eight in random order, of each query."""
    rng = np.random.default_rng(4)
    shown = candidates(split, width=len(alpha))
    shuffled = np.take_along_axis(np.repeat(shown, 8, axis=0), shuffle(shown, 8, rng), axis=1)
    queries = np.arange(len(shown))
    log = make_log(
        np.concatenate([shown, shuffled]),
        queries=np.concatenate([queries, np.repeat(queries, 8)]),
        randomized=np.arange(9 * len(shown)) >= len(shown),
    )
    p = alpha * attraction(split.grades, 4, eps=0)[log.documents] + beta
    counts = np.where(log.randomized, randomized, sessions)
    return log.with_clicks(*simulate_sessions(counts, Behaviour(p), rng))


ALPHA, BETA = np.array([0.4, 0.3, 0.2, 0.1]), np.array([0.4, 0.2, 0.05, 0.0])


def test_trust_is_exact_where_the_signal_has_the_same_spread_at_all_positions():
    """A Latin square of lists: every document is at every position equally often."""
    gamma = np.array([0.1, 0.9, 0.4, 0.2])
    shown = np.array([np.roll(np.arange(4), shift) for shift in range(4)])
    groups = []
    for index, documents in enumerate(shown):
        counts = np.round(SESSIONS * (ALPHA * gamma[documents] + BETA) / 4).astype(int)
        groups += [(index, 1 << k, count) for k, count in enumerate(counts)]
        groups.append((index, 0, SESSIONS - counts.sum()))
    log = make_log(shown, groups, queries=[0] * 4, randomized=True)
    alpha, beta = affine_parameters(log, np.array([3.0, 8.0, 7.0, -1.0])[shown])
    np.testing.assert_allclose(alpha, ALPHA / ALPHA[0], rtol=1e-9)
    # The origin of gamma is free: beta_k + b alpha_k, with b such that the smallest is 0.
    np.testing.assert_allclose(beta * 4, BETA - ALPHA * (BETA / ALPHA).min(), atol=1e-9)
    order = np.argsort(affine_weights(log, alpha, beta).weights)
    assert order.tolist() == np.argsort(gamma).tolist()


def test_trust_is_recovered_from_randomised_lists_whatever_the_policy():
    split = make_split(np.full(500, 6), seed=5)
    log = trust_log(split, sessions=100, randomized=25, alpha=ALPHA, beta=BETA)
    estimate = find_estimator("trust")(
        log, features=split.features, seed=1, folds=2, trees=20, leaves=5, learning_rate=0.2
    )
    # Three standard deviations, measured over seeds, which also showed no bias.
    np.testing.assert_allclose(estimate.columns["alpha"], ALPHA / ALPHA[0], atol=3 * 0.054)
    np.testing.assert_allclose(estimate.columns["beta"], BETA, atol=3 * 0.0023)
    assert np.isnan(estimate.relative).all()


def test_trust_refuses_logs_that_cannot_tell():
    split = make_split(np.full(4, 4))
    arguments = {"features": split.features, "seed": 1, "folds": 2, "trees": 2, "leaves": 2}
    estimate = find_estimator("trust")
    log = trust_log(split, sessions=9, randomized=0, alpha=ALPHA, beta=BETA)
    with pytest.raises(UserError, match="no session of the log saw a list"):
        estimate(log, **arguments, learning_rate=0.1)
    log = make_log([[0, 1], [1, 0]], [(0, 1, 3), (1, 1, 3)], queries=[0, 0], randomized=True)
    with pytest.raises(UserError, match="do not rise with the predicted relevance"):
        affine_parameters(log, np.array([[0.1, 0.9], [0.9, 0.1]]))


def test_trust_names_a_position_of_which_the_lists_tell_nothing():
    log = make_log([[0, 1], [1, 0]], [(0, 1, 3), (1, 1, 2)], queries=[0, 0], randomized=True)
    with pytest.raises(UserError, match="at position 2, so that nothing is known"):
        affine_parameters(log, np.array([[0.9, 0.5], [0.1, 0.5]]))
    short = make_log([[0, 1], [1, -1]], [(0, 1, 3), (1, 1, 2)], queries=[0, 0], randomized=True)
    with pytest.raises(UserError, match="at position 2"):
        affine_parameters(short, np.array([[0.9, 0.5], [0.1, 0.2]]))
    once = make_log([[0, 1], [1, -1]], [(0, 3, 1), (1, 1, 2)], queries=[0, 0], randomized=True)
    with pytest.raises(UserError, match="at position 2"):
        affine_parameters(once, np.array([[0.9, 0.5], [0.1, 0.2]]))
    # The mean of three times .1 is not .1 in floating point.
    thrice = make_log([[0, 1], [1, 0]], [(0, 1, 2), (1, 3, 1)], queries=[0, 0], randomized=True)
    with pytest.raises(UserError, match="at position 2"):
        affine_parameters(thrice, np.array([[0.9, 0.1], [0.2, 0.1]]))


def test_trust_is_a_weighted_regression_at_each_position():
    shown = np.array([[0, 1, 2], [1, 2, 3], [2, 3, -1], [3, 0, 1]])
    sessions = np.array([40, 10, 30, 20])
    clicks = np.array([[30, 6, 0], [2, 5, 0], [9, 21, 0], [11, 4, 0]])
    groups = [(row, 1 << k, n) for row, counts in enumerate(clicks) for k, n in enumerate(counts)]
    groups += [(row, 0, n) for row, n in enumerate(sessions - clicks.sum(axis=1))]
    log = make_log(shown, [group for group in groups if group[2]], queries=[0] * 4, randomized=True)
    signal = np.array([[0.9, 0.2, 0.4], [0.1, 0.3, 0.5], [0.3, 0.8, np.nan], [0.4, 0.1, 0.2]])
    slopes, rates = [], []
    for k in range(3):
        rows = shown[:, k] >= 0
        n = sessions[rows]
        rate = clicks[rows, k] / n
        slopes.append(np.polyfit(signal[rows, k], rate, 1, w=np.sqrt(n))[0])
        rates.append(np.average(rate, weights=n))
    alpha, beta = affine_parameters(log, signal)
    # Nobody clicked at position 3, so that alpha is 0 there and says nothing of gamma's mean.
    np.testing.assert_allclose(alpha, np.array(slopes) / slopes[0], atol=1e-12)
    mean = min(rates[0] / alpha[0], rates[1] / alpha[1])
    np.testing.assert_allclose(beta, rates - alpha * mean, atol=1e-12)
    assert alpha[2] == 0 and (alpha[:2] > 0).all()


def test_trust_takes_randomised_lists_of_one_session_each_and_rises_at_the_first_position():
    rng = np.random.default_rng(5)
    shown = np.arange(400).reshape(200, 2)
    features = rng.random((400, 1)).astype(np.float32)
    masks = (rng.random(shown.shape) < features[shown, 0] * [0.8, 0.5]) @ [1, 2]
    log = make_log(shown, [(row, int(m), 1) for row, m in enumerate(masks)], randomized=True)
    size = {"folds": 2, "trees": 5, "leaves": 3, "learning_rate": 0.2}
    estimate = find_estimator("trust")(log, features=features, seed=1, **size)
    assert 0 < estimate.columns["alpha"][1] < 1.5
    falls = make_log([[0, 1], [1, 0]], [(0, 0b11, 5), (1, 0b00, 5)], queries=[0, 0])
    with pytest.raises(UserError, match="clicks at position 1 do not rise"):
        affine_parameters(falls, np.array([[0.1, 0.9], [0.9, 0.1]]))


def test_lists_of_a_query_without_sessions_count_alike_and_queries_may_start_anywhere():
    log = make_log([[0, 1], [1, 0], [2, 3]], [(2, 0, 1)], queries=[1, 1, 3])
    gamma, theta = np.array([0.4, 0.2, 1.0, 0.5]), np.array([0.8, 0.5])
    lists = expected_ipw_weights(log, gamma, theta, np.ones(2))
    assert lists.query_ptr.tolist() == [0, 2, 4]
    np.testing.assert_allclose(lists.weights, gamma * [0.65, 0.65, 0.8, 0.5])
    # Propensities of more positions than the log shows, in one or the other.
    more = expected_ipw_weights(log, gamma, np.append(theta, 0.1), np.ones(2))
    assert more.weights.tolist() == lists.weights.tolist()


def test_expected_clicks_without_propensities_are_relevance_once_for_each_list():
    log = make_log([[0, 1], [1, 2]], queries=[0, 0])
    weights = expected_clicks(log, np.array([0.4, 0.2, 1.0]), None).weights
    np.testing.assert_allclose(weights, [0.4, 2 * 0.2, 1.0])


def test_trust_is_read_off_the_slope_however_far_relevance_spreads_at_a_position():
    # Relevance differs by .4 at position 1 and by .8 at position 2; alpha is 1 and .5.
    groups = [(0, 0b01, 300), (0, 0b10, 450), (0, 0b00, 250)]
    groups += [(1, 0b01, 700), (1, 0b10, 50), (1, 0b00, 250)]
    log = make_log([[0, 1], [2, 3]], groups, randomized=True)
    alpha, _ = affine_parameters(log, np.array([[0.2, 0.9], [0.6, 0.1]]))
    np.testing.assert_allclose(alpha, [1, 0.5])

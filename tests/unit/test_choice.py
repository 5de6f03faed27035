"""The choice model: closed forms, an independent implementation, identification, intervals."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from ultrbench.errors import UserError
from ultrbench.propensity.choice import fit_choice, fit_clicks, spline_basis
from ultrbench.simulation.behaviour import Behaviour
from ultrbench.simulation.clicks import simulate_sessions
from ultrbench.simulation.log import ClickLog

THETA = np.array([0.68, 0.61, 0.48, 0.34, 0.28, 0.2, 0.11, 0.1])
TRUTH = np.log(THETA / THETA[0])


def policy_world(seed, queries, sessions, lengths=8):
    """Lists ordered by z, with E[gamma | z] = a_list exp(z/2)/8: what the model assumes."""
    rng = np.random.default_rng(seed)
    z = -np.sort(-rng.normal(size=(queries, 8)), axis=1)
    mean = rng.uniform(0.5, 1.5, size=(queries, 1)) * np.exp(0.5 * z) / 8
    # A coin with the same mean: documents of equal score differ in relevance.
    gamma = np.minimum(mean * rng.choice([0.25, 1.75], size=z.shape), 1.0)
    documents = np.arange(8 * queries).reshape(queries, 8)
    documents = np.where(np.arange(8) < np.broadcast_to(lengths, queries)[:, None], documents, -1)
    probability = np.where(documents >= 0, THETA * gamma, 0.0)
    groups = simulate_sessions(np.full(queries, sessions), Behaviour(probability), rng)
    zeros = np.zeros(queries)
    return ClickLog(
        documents, np.arange(queries), z, zeros.astype(np.uint8), zeros > 0,
        zeros.astype(np.uint8), *groups,
    )  # fmt: skip


def test_position_effects_equal_minimisation_by_another_optimiser():
    rng = np.random.default_rng(0)
    clicks = rng.integers(0, 9, size=(40, 4)).astype(float)
    shown = np.arange(4) < rng.integers(2, 5, size=40)[:, None]
    clicks *= shown
    x, offset = rng.normal(size=(40, 4, 2)), rng.normal(size=(40, 4))
    fit = fit_choice(clicks, shown, x, np.arange(40), offset=offset, ridge=0.1)

    def loss(beta):
        total = 0.0
        for c, inside, controls, fixed in zip(clicks, shown, x, offset, strict=True):
            eta = (fixed + np.append(0, beta[:3]) + controls @ beta[3:])[inside]
            total -= c[inside] @ (eta - np.log(np.exp(eta).sum()))
        return total / clicks.sum() + 0.05 * (beta[3:] ** 2).sum()

    best = minimize(loss, np.zeros(5), tol=1e-12).x
    np.testing.assert_allclose(fit.position[1:], best[:3], atol=1e-5)
    np.testing.assert_allclose(fit.control, best[3:], atol=1e-5)
    nearby = replace(fit, position=fit.position + 0.3, control=fit.control - 0.3)
    again = fit_choice(clicks, shown, x, np.arange(40), offset=offset, ridge=0.1, start=nearby)
    np.testing.assert_allclose(again.position, fit.position, atol=1e-9)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.floats(0.05, 1.0), min_size=2, max_size=5), st.integers(0, 99))
def test_expected_clicks_give_back_theta(theta, seed):
    theta = np.array(theta)
    rng = np.random.default_rng(seed)
    h = rng.normal(size=(30, len(theta)))
    expected = rng.random((30, 1)) * theta * np.exp(h)
    weights = rng.uniform(0.1, 1, size=h.shape)
    for cell, offset in ((1.0, h), (weights, h + np.log(weights))):
        fit = fit_choice(
            expected * cell, h < 9, np.empty((*h.shape, 0)), np.arange(30), offset=offset
        )
        np.testing.assert_allclose(np.exp(fit.position), theta / theta[0], rtol=1e-6)


def test_theta_is_recovered_under_a_policy_that_knows_relevance():
    lengths = np.random.default_rng(1).integers(3, 9, size=10_000)
    log = policy_world(1, 10_000, 200, lengths)
    fit = fit_clicks(log, np.where(log.shown, log.scores, 0.0)[:, :, None])
    error = np.abs(fit.position - TRUTH)
    assert error.max() < 0.06, error
    naive = np.log(log.clicks.sum(axis=0) / log.shown.sum(axis=0))
    assert np.abs(naive - naive[0] - TRUTH).max() > 0.5


def test_weights_for_the_spread_of_relevance_shrink_the_error():
    plain, weighted = [], []
    for seed in range(40):
        log = policy_world(seed, 200, 2000)
        controls = log.scores[:, :, None]
        clicks = log.clicks.astype(float)
        plain.append(fit_choice(clicks, log.shown, controls, log.queries).position - TRUTH)
        weighted.append(fit_clicks(log, controls).position - TRUTH)
    assert np.std(weighted, axis=0).mean() < 0.95 * np.std(plain, axis=0).mean()


def test_intervals_cover_the_truth():
    covered = []
    for seed in range(120):
        log = policy_world(seed, 200, 100)
        fit = fit_clicks(log, spline_basis(log.scores.ravel(), 4).reshape(200, 8, 3))
        error = (fit.position - TRUTH)[1:]
        covered.append(np.abs(error) < 1.96 * fit.position_error[1:])
    # The seven intervals of a log are correlated; 120 independent ones would have a standard
    # error of sqrt(.95 * .05 / 120) = .02.
    assert 0.90 < np.mean(covered) < 0.98


def test_standard_errors_count_queries_not_lists():
    log = policy_world(3, 300, 50)
    twice = ClickLog(
        *(np.concatenate([getattr(log, name)] * 2) for name in
          ("documents", "queries", "scores", "rounds", "randomized", "contexts")),
        np.concatenate([log.click_list, log.click_list + len(log.queries)]),
        np.tile(log.mask, 2), np.tile(log.count, 2),
    )  # fmt: skip
    once = fit_choice(log.clicks.astype(float), log.shown, log.scores[:, :, None], log.queries)
    again = fit_choice(
        twice.clicks.astype(float), twice.shown, twice.scores[:, :, None], twice.queries
    )
    np.testing.assert_allclose(once.position_error, again.position_error, rtol=1e-6)


def test_scores_that_follow_from_positions_are_not_separable():
    log = policy_world(4, 300, 50)
    rank = np.broadcast_to(-np.arange(8.0), log.scores.shape)
    assert not fit_clicks(log, rank[:, :, None]).separable
    assert fit_clicks(log, log.scores[:, :, None]).separable


@pytest.mark.parametrize(("values", "columns"), [(np.arange(99.0), 5), (np.arange(99) % 2, 1)])
def test_splines_have_unit_variance_and_are_linear_in_the_tails(values, columns):
    basis = spline_basis(values.astype(float), 6)
    assert basis.shape == (99, columns)
    np.testing.assert_allclose(basis.mean(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(basis.T @ basis / 99, np.eye(columns), atol=1e-9)
    if columns > 1:
        # Beyond the 95 % quantile second differences vanish.
        np.testing.assert_allclose(np.diff(basis[-4:], n=2, axis=0), 0, atol=1e-6)


def test_splines_of_skewed_values_are_linear_beyond_both_outer_knots():
    values = np.exp(np.linspace(0, 3, 99))
    basis = spline_basis(values, 6)
    for tail in (slice(0, 4), slice(-4, None)):
        line = np.column_stack([np.ones(4), values[tail]])
        fitted = line @ np.linalg.lstsq(line, basis[tail], rcond=None)[0]
        np.testing.assert_allclose(fitted, basis[tail], atol=1e-6)


def test_lists_that_nobody_saw_change_nothing():
    log = policy_world(1, 60, 500)
    seen = np.arange(60) < 40
    kept = seen[log.click_list]
    some = replace(log, click_list=log.click_list[kept], mask=log.mask[kept], count=log.count[kept])
    with np.errstate(all="raise"):
        fit = fit_clicks(some, some.scores[:, :, None])
    without = fit_clicks(log.select(seen), log.scores[seen][:, :, None])
    np.testing.assert_allclose(fit.position, without.position, rtol=1e-9)


def test_a_spline_with_three_knots_fits_any_function_of_three_values():
    values = np.repeat([0.0, 1.0, 2.0], 20)
    basis = np.column_stack([np.ones(60), spline_basis(values, 4)])
    anything = np.repeat([0.3, -1.0, 0.7], 20)
    fitted = basis @ np.linalg.lstsq(basis, anything)[0]
    np.testing.assert_allclose(fitted, anything, atol=1e-12)


def test_an_effect_that_runs_off_is_refused():
    shown, none = np.array([[True, True], [True, False]]), np.empty((2, 2, 0))
    # Position 2 is clicked wherever both are shown: its effect has no upper bound.
    with pytest.raises(
        UserError, match="no bound to the propensity of position 2, which comes out"
    ):
        fit_choice(np.array([[0.0, 1.0], [5.0, 0.0]]), shown, none, np.arange(2))
    # The control says which cell is clicked, at whatever position.
    signal = np.array([[[1.0], [-1.0]], [[1.5], [1.0]], [[2.0], [-1.0]], [[-0.5], [-0.6]]])
    clicks = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
    with pytest.raises(UserError, match="no bound to the propensity of position 2"):
        fit_choice(clicks, clicks >= 0, signal, np.arange(4))


@pytest.mark.parametrize("ratio", [1e-9, 1e9])
def test_an_effect_that_many_clicks_tell_is_no_runaway(ratio):
    clicks = np.array([[1.0, ratio]]) * max(1, 1 / ratio)
    fit = fit_choice(clicks, clicks > 0, np.empty((1, 2, 0)), np.arange(1))
    assert fit.position[1] == pytest.approx(np.log(ratio))

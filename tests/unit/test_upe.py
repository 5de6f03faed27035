"""UPE: the backdoor adjustment in closed form, step 2 on expected clicks, the ablations."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ultrbench.errors import UserError
from ultrbench.propensity.upe import (
    backdoor_adjusted,
    displayed_examination,
    estimate,
    estimate_scaled,
)
from ultrbench.simulation.behaviour import Behaviour
from ultrbench.simulation.clicks import simulate_sessions
from ultrbench.simulation.log import ClickLog

THETA = np.array([0.7, 0.5, 0.3, 0.2])
TRUTH = np.log(THETA / THETA[0])
SETTINGS = {
    "folds": 2, "trees": 15, "leaves": 7, "learning_rate": 0.2, "tolerance": 0.02,
    "max_iterations": 15,
}  # fmt: skip


def world(slope, scale=1.0, queries=1000, seed=0, lengths=4):
    """Lists ordered by a feature z; gamma = exp(slope z)/10; the policy's score is scale z."""
    rng = np.random.default_rng(seed)
    z = -np.sort(-rng.normal(size=(queries, 4)), axis=1)
    gamma = np.minimum(np.exp(slope * z) / 10, 1.0)
    documents = np.arange(4 * queries).reshape(queries, 4)
    documents = np.where(np.arange(4) < np.broadcast_to(lengths, queries)[:, None], documents, -1)
    probability = np.where(documents >= 0, THETA * gamma, 0)
    groups = simulate_sessions(np.full(queries, 500), Behaviour(probability), rng)
    zeros = np.zeros(queries, dtype=np.uint8)
    scores = np.where(documents >= 0, scale * z, np.nan)
    log = ClickLog(documents, np.arange(queries), scores, zeros, zeros > 0, zeros, *groups)
    return log, z.reshape(-1, 1).astype(np.float32)


def test_the_adjustment_converges_to_the_mean_over_all_permutations():
    rng = np.random.default_rng(0)
    logits, h = np.log([1.0, 0.6, 0.3]), rng.normal(size=(1, 3))
    exact = np.zeros(3)
    for order in permutations(range(3)):
        g = np.exp(logits + h[0, list(order)])
        exact += g / g.sum() / 6
    got = backdoor_adjusted(logits, h, np.ones((1, 3), bool), 20_000, rng)
    np.testing.assert_allclose(got, exact / exact[0], atol=0.01)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 999), st.floats(0.1, 2))
def test_averaging_softmaxes_flattens(seed, spread):
    rng = np.random.default_rng(seed)
    logits = np.log([1.0, 0.6, 0.3, 0.1])
    h = rng.normal(scale=spread, size=(500, 4))
    got = backdoor_adjusted(logits, h, np.ones(h.shape, bool), 16, rng)
    # Sampled, so a hair of slack for small spreads; large ones flatten far beyond it.
    assert (np.log(got) > logits - 0.03)[1:].all()
    assert np.log(got)[-1] > logits[-1] + (0.1 if spread > 1 else -0.03)


def test_examination_is_a_softmax_of_what_is_shown_at_any_height():
    shown = np.array([[True, True, True], [True, True, False]])
    h = np.array([[0.0, 0.0, 0.0], [np.log(3), 0.0, 5.0]])
    logits = np.log([2.0, 1.0, 1.0])
    expected = [[1 / 2, 1 / 4, 1 / 4], [6 / 7, 1 / 7, 0]]
    for height in (0.0, 1000.0, -1000.0):
        np.testing.assert_allclose(displayed_examination(logits, h + height, shown), expected)


def test_short_lists_do_not_enter_positions_they_lack():
    logits = np.log([1.0, 0.5, 0.25])
    shown = np.array([[True, True, True], [True, True, False]])
    got = backdoor_adjusted(logits, np.zeros((2, 3)), shown, 4, np.random.default_rng(0))
    np.testing.assert_allclose(got, [1, 0.5, 0.25])


def test_step_two_recovers_theta_where_its_model_holds():
    # Clicks are theta gamma with gamma = exp(score): additive logits at the policy's own scale.
    lengths = np.random.default_rng(3).integers(2, 5, size=1000)
    log, features = world(slope=0.7, scale=0.7, lengths=lengths)
    options = {"relevance_weights": False, "backdoor": "additive"}
    result = estimate(log, features=features, seed=1, **SETTINGS, **options)
    np.testing.assert_allclose(np.log(result.relative), TRUTH, atol=0.04)
    assert result.identified and result.converged


def test_the_policy_s_scale_matters_to_upe_and_not_to_upe_scaled():
    options = {"relevance_weights": False, "backdoor": "additive"}
    theta = {}
    for scale in (0.7, 2.1):
        log, features = world(slope=0.7, scale=scale)
        for name, function in (("upe", estimate), ("upe_scaled", estimate_scaled)):
            result = function(log, features=features, seed=1, **SETTINGS, **options)
            theta[name, scale] = np.log(result.relative)
    np.testing.assert_allclose(theta["upe_scaled", 2.1], theta["upe_scaled", 0.7], atol=1e-6)
    np.testing.assert_allclose(theta["upe_scaled", 2.1], TRUTH, atol=0.05)
    # Three times the scale over-corrects: a strong policy's lower positions look well examined.
    assert (theta["upe", 2.1] > TRUTH + 0.3)[1:].all()


def test_a_position_that_nobody_clicked_is_named():
    log, features = world(slope=0.7, queries=100)
    silent = log.with_clicks(log.click_list, log.mask & np.uint64(0b1011), log.count)
    with pytest.raises(UserError, match="position 3"):
        estimate(silent, features=features, seed=1, **SETTINGS)


def test_scores_that_leave_nothing_to_the_position_are_refused():
    log, features = world(slope=0.7, scale=1e6, queries=100)
    with pytest.raises(UserError, match="leave the positions nothing to explain"):
        estimate(log, features=features, seed=1, **SETTINGS)


def test_alternation_over_corrects_at_the_policy_s_scale():
    log, features = world(slope=0.7, scale=2.1)
    upe = estimate(log, features=features, seed=1, **SETTINGS)
    scaled = estimate_scaled(log, features=features, seed=1, **SETTINGS)
    assert (upe.relative[1:] > THETA[1:] / THETA[0]).all() and upe.relative.max() > 1
    assert np.abs(np.log(scaled.relative) - TRUTH).max() < 0.2
    assert scaled.trace[-1] == scaled.relative.tolist()


def test_without_backdoor_the_policy_s_effect_stays_in_theta():
    log, features = world(slope=0.7, scale=0.7)
    common = SETTINGS | {"relevance_weights": False}
    logged = estimate(log, features=features, seed=1, **common, backdoor="none")
    # The mean of softmax(g) over logged lists is the clicks' share, but for lists' unequal clicks.
    naive = log.clicks.sum(axis=0)
    np.testing.assert_allclose(logged.relative, naive / naive[0], rtol=0.15)
    assert (np.log(logged.relative) < TRUTH - 0.2)[1:].all()
    learned = estimate_scaled(log, features=features, seed=1, **common, backdoor="none")
    np.testing.assert_allclose(learned.relative, logged.relative, rtol=0.05)
    adjusted = estimate(log, features=features, seed=1, **common)
    assert np.abs(np.log(adjusted.relative) - TRUTH).max() < 0.2


@pytest.mark.parametrize("how", ["unlogged", "positions"])
def test_the_encoder_imitates_the_order_where_no_score_is_logged(how):
    log, features = world(slope=0.7)
    options = {"relevance_weights": False, "targets": "positions"}
    if how == "unlogged":
        options["targets"] = "scores"
        log = ClickLog(**{f: getattr(log, f) for f in log.__dataclass_fields__}
                       | {"scores": np.full(log.scores.shape, np.nan)})  # fmt: skip
    result = estimate_scaled(log, features=features, seed=1, **SETTINGS, **options)
    assert not result.identified and "imitates the order" in result.notes[0]
    assert np.abs(np.log(result.relative) - TRUTH).max() < 0.3

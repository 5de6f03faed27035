"""Tests, corrections and intervals against exact enumeration, SciPy, arithmetic, simulation."""

from itertools import product

import numpy as np
import pytest
from scipy.stats import permutation_test, ttest_1samp

from ultrbench.errors import UserError
from ultrbench.evaluation import significance as sig


def enumerated_p(differences):
    total = abs(sum(differences))
    flips = list(product([1, -1], repeat=len(differences)))
    reached = [abs(np.dot(signs, differences)) >= total - 1e-9 for signs in flips]
    return sum(reached) / len(flips)


@pytest.mark.parametrize("queries", [1, 2, 5, 11])
def test_few_differences_give_the_exact_p(queries):
    rng = np.random.default_rng(queries)
    differences = np.column_stack(
        [rng.normal(0.3, 1, queries), rng.integers(-2, 4, queries) / 10, np.zeros(queries)]
    )
    p = sig.fisher_randomization(differences, rng=rng).p
    assert p.tolist() == [enumerated_p(column) for column in differences.T]
    assert p[2] == 1.0


def test_a_comparison_with_few_differences_is_exact_beside_others_with_many():
    rng = np.random.default_rng(1)
    differences = rng.normal(size=(200, 2))
    differences[8:, 1] = 0
    p = sig.fisher_randomization(differences, resamples=500, rng=rng).p
    assert p[1] == enumerated_p(differences[:8, 1])


def test_random_flips_agree_with_exact_enumeration(monkeypatch):
    differences = np.random.default_rng(3).normal(0.4, 1, (12, 3))
    exact = sig.fisher_randomization(differences, rng=np.random.default_rng(1))
    monkeypatch.setattr(sig, "EXACT", -1)
    drawn = sig.fisher_randomization(differences, resamples=40_000, rng=np.random.default_rng(1))
    np.testing.assert_allclose(drawn.p, exact.p, atol=4 * 0.5 / 200)
    np.testing.assert_allclose(drawn.p_max_t, exact.p_max_t, atol=4 * 0.5 / 200)


@pytest.mark.parametrize("shift", [0.0, 0.15, 0.3])
def test_p_agrees_with_scipy_within_monte_carlo_error(shift):
    rng = np.random.default_rng(7)
    differences = rng.normal(shift, 1, 60)
    resamples = 20_000
    ours = sig.fisher_randomization(differences, resamples=resamples, rng=rng).p[0]
    theirs = permutation_test(
        (differences,),
        lambda x, axis: x.mean(axis=axis),
        permutation_type="samples",
        n_resamples=resamples,
        vectorized=True,
        rng=np.random.default_rng(8),
    ).pvalue
    assert theirs > 20 / resamples
    error = np.sqrt(2 * theirs * (1 - theirs) / resamples)  # SciPy doubles a tail: larger, a bit
    assert ours == pytest.approx(theirs, abs=6 * error)


def test_p_is_never_zero_and_uses_b_plus_one():
    differences = np.full(60, 0.1)
    assert sig.fisher_randomization(
        differences, resamples=999, rng=np.random.default_rng(1)
    ).p.tolist() == [1 / 1000]


def test_ties_that_differ_by_rounding_count_as_reached():
    rng = np.random.default_rng(1)
    tenths = rng.integers(-3, 6, (60, 9))
    p = sig.fisher_randomization(tenths.T / 10, rng=rng).p
    exact = sig.fisher_randomization(tenths.T / 8, rng=rng).p  # eighths do not round
    np.testing.assert_array_equal(p, exact)


def test_memory_chunks_hold_every_resample(monkeypatch):
    differences = np.random.default_rng(3).normal(0.2, 1, (50, 2))
    monkeypatch.setattr(sig, "CHUNK", 50 * 7)
    p = sig.fisher_randomization(differences, resamples=3000, rng=np.random.default_rng(1)).p
    expected = ttest_1samp(differences, 0).pvalue
    np.testing.assert_allclose(p, expected, atol=4 * 0.5 / np.sqrt(3000))


def test_max_t_of_one_comparison_is_its_p_and_grows_with_the_family():
    rng = np.random.default_rng(2)
    differences = rng.normal(0.25, 1, (80, 5))
    family = np.array([False, True, False, False, False])
    alone = sig.fisher_randomization(
        differences, resamples=2000, rng=np.random.default_rng(1), family=family
    )
    assert alone.p_max_t[1] == alone.p[1]
    assert np.isnan(alone.p_max_t[~family]).all()
    together = sig.fisher_randomization(differences, resamples=2000, rng=np.random.default_rng(1))
    assert (together.p_max_t >= together.p).all()
    assert (together.p_max_t <= sig.holm(together.p) + 0.03).all()
    assert (np.diff(together.p_max_t[np.argsort(together.p)]) >= -1e-12).all()


def test_max_t_does_not_pay_for_copies_as_holm_does():
    differences = np.repeat(np.random.default_rng(2).normal(0.25, 1, (80, 1)), 6, axis=1)
    result = sig.fisher_randomization(differences, resamples=2000, rng=np.random.default_rng(1))
    np.testing.assert_array_equal(result.p_max_t, result.p)
    assert (sig.holm(result.p) > 5 * result.p).all()


def test_max_t_ignores_the_units_of_a_comparison():
    differences = np.random.default_rng(2).normal(0.25, 1, (80, 3))
    plain, scaled = (
        sig.fisher_randomization(d, resamples=2000, rng=np.random.default_rng(1)).p_max_t
        for d in (differences, differences * [1, 100, 0.01])
    )
    np.testing.assert_array_equal(plain, scaled)


def test_max_t_controls_the_family_wise_error():
    rng = np.random.default_rng(4)
    smallest = [
        sig.fisher_randomization(
            rng.normal(size=(30, 1)) + rng.normal(size=(30, 8)), resamples=400, rng=rng
        ).p_max_t.min()
        for _ in range(300)
    ]
    assert np.mean(np.array(smallest) <= 0.05) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 300)
    assert np.mean(np.array(smallest) <= 0.5) == pytest.approx(0.5, abs=0.1)


def test_differences_that_are_not_finite_are_refused():
    with pytest.raises(UserError, match="finite"):
        sig.fisher_randomization(np.array([0.1, np.nan]), rng=np.random.default_rng(1))
    with pytest.raises(UserError, match="at least one query"):
        sig.fisher_randomization(np.zeros((0, 2)), rng=np.random.default_rng(1))


def test_holm_and_benjamini_hochberg_by_hand():
    p = np.array([0.04, np.nan, 0.01, 0.03, 0.005])
    np.testing.assert_allclose(
        sig.holm(p), [0.06, np.nan, 3 * 0.01, 2 * 0.03, 4 * 0.005], rtol=1e-12
    )
    np.testing.assert_allclose(
        sig.benjamini_hochberg(p), [0.04, np.nan, 4 / 2 * 0.01, 4 / 3 * 0.03, 4 / 2 * 0.01]
    )
    assert sig.holm(np.array([0.6, 0.9])).tolist() == [1.0, 1.0]
    assert np.isnan(sig.benjamini_hochberg(np.array([np.nan]))).all()


def test_bootstrap_covers_other_queries_and_replicates():
    rng = np.random.default_rng(6)
    simulations, replicates, queries = 300, 10, 40
    differences = (
        rng.normal(0, 1, (simulations, 1, queries))
        + rng.normal(0, 0.15, (simulations, replicates, 1))
        + rng.normal(0, 0.3, (simulations, replicates, queries))
    )
    low, high = sig.crossed_bootstrap(differences, bootstraps=400, rng=rng)
    covered = np.mean((low <= 0) & (high >= 0))
    assert 0.90 <= covered <= 0.985
    by_query = sig.crossed_bootstrap(differences.mean(axis=1)[:, None], bootstraps=400, rng=rng)
    assert np.mean(high - low) > np.mean(by_query[1] - by_query[0])


def test_bootstrap_of_one_replicate_has_the_standard_error_of_the_mean():
    rng = np.random.default_rng(6)
    differences = rng.normal(0.2, 1, (1, 500))
    low, high = sig.crossed_bootstrap(differences, bootstraps=4000, rng=rng)
    half = 1.96 * differences.std() / np.sqrt(500)
    assert low == pytest.approx(differences.mean() - half, abs=0.1 * half)
    assert high == pytest.approx(differences.mean() + half, abs=0.1 * half)


def test_minimum_detectable_effect_is_found_with_the_stated_power():
    rng = np.random.default_rng(9)
    noise = rng.normal(size=(200, 2000))
    effect = float(sig.minimum_detectable_effect(rng.normal(size=200_000)) * np.sqrt(1000))
    found = ttest_1samp(noise + effect, 0).pvalue <= 0.05
    assert found.mean() == pytest.approx(0.8, abs=0.04)


def test_effect_size_and_counts_by_hand():
    differences = np.array([[0.2, 0.0], [0.4, 0.0], [-0.3, 0.0], [0.1, 0.0]])
    wins, ties, losses = sig.win_tie_loss(differences)
    assert (wins.tolist(), ties.tolist(), losses.tolist()) == ([3, 0], [0, 4], [1, 0])
    deviation = np.sqrt((0.1**2 + 0.3**2 + 0.4**2 + 0) / 3)
    np.testing.assert_allclose(sig.effect_size(differences), [0.1 / deviation, np.nan])
    assert np.isnan(sig.minimum_detectable_effect(differences[:1])).all()


def test_an_effect_of_the_size_that_an_interval_shows_is_shown_with_the_stated_power():
    rng = np.random.default_rng(3)
    low, high = np.array([-0.1, np.nan, 0.1 - 1e-17]), np.array([0.3, np.nan, 0.1])
    effect = sig.effect_that_interval_shows(low, high)
    drawn = rng.normal(effect[0], 0.2 / 1.959964, 100_000)  # half of the interval is 1.96 errors
    assert np.mean(drawn - 0.2 > 0) == pytest.approx(0.8, abs=0.005)
    assert np.isnan(effect[1]) and effect[2] == 0


def test_power_table_is_the_inverse_of_the_minimum_detectable_effect():
    differences = np.random.default_rng(1).normal(0, 0.2, 400)
    table = sig.power_table(differences, [float(sig.minimum_detectable_effect(differences)), 0.05])
    assert table["queries"].tolist() == [
        400,
        int(np.ceil(((1.959964 + 0.841621) * differences.std(ddof=1) / 0.05) ** 2)),
    ]
    family = sig.power_table(differences, [0.05], comparisons=10)
    assert family["queries"][0] > table["queries"][1]
    assert family["resamples"][0] == 19_900  # .995 / (.005 x .01)
    with pytest.raises(UserError, match="effects above 0"):
        sig.power_table(differences, [0.0])
    with pytest.raises(UserError, match="differences that vary"):
        sig.power_table(np.ones(5), [0.1])


def test_the_last_comparison_that_is_exact_has_as_many_differences_as_the_limit():
    rng = np.random.default_rng(2)
    differences = rng.normal(size=(40, 2))
    differences[sig.EXACT :, 1] = 0
    p = sig.fisher_randomization(differences, resamples=99, rng=rng).p
    assert p[1] == sig.fisher_randomization(differences[: sig.EXACT, 1], rng=rng).p[0]


@pytest.mark.parametrize("resamples", [1, 7, 100])
def test_as_many_flips_are_drawn_as_were_asked_for(resamples, monkeypatch):
    monkeypatch.setattr(sig, "CHUNK", 30)
    drawn = [*sig._random_signs(10, resamples, np.random.default_rng(0))]
    assert sum(map(len, drawn)) == resamples


def test_two_queries_have_a_deviation_and_one_has_none():
    assert sig.effect_size(np.array([1.0, 3.0])) == pytest.approx(2 / np.sqrt(2))
    assert np.isnan(sig.minimum_detectable_effect(np.array([1.0])))

"""Estimators: closed forms, recovery of known propensities, and what they refuse."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize
from toys import click, make_log, make_split

from ultrbench.errors import UserError
from ultrbench.files import read_json
from ultrbench.propensity.ctr import click_rates
from ultrbench.propensity.dla import examination_update
from ultrbench.propensity.estimate import (
    ESTIMATORS,
    Estimate,
    find_estimator,
    is_converged,
    read_propensity,
    up_to_scale,
    write_estimate,
)
from ultrbench.propensity.fixed_point import at_rest, iterate
from ultrbench.simulation.clicks import attraction, examination
from ultrbench.simulation.display import shuffle

THETA = examination(6)
SMALL_DLA = {
    "folds": 2, "trees": 20, "leaves": 7, "learning_rate": 0.2, "tolerance": 1e-2,
    "max_iterations": 20,
}  # fmt: skip


def run(kind, log, **arguments):
    given_all = {"features": np.zeros((1, 1), np.float32), "truth": None, "seed": 1}
    return find_estimator(kind)(log, **(given_all | arguments))


def ragged_world(queries, *, seed=0, lists=1, randomized=True, longest=6):
    """Queries of 2 to `longest` documents, those of long lists more relevant, in random order."""
    rng = np.random.default_rng(seed)
    documents = np.full((queries, longest), -1)
    lengths = rng.integers(2, longest + 1, queries)
    start = np.cumsum([0, *lengths])
    for q, length in enumerate(lengths):
        documents[q, :length] = np.arange(start[q], start[q + 1])
    gamma = rng.uniform(0.05, 0.4, start[-1]) * np.repeat(lengths, lengths) / 3
    order = shuffle(documents, lists, rng)
    shown = np.take_along_axis(np.repeat(documents, lists, axis=0), order, axis=1)
    log = make_log(shown, queries=np.repeat(np.arange(queries), lists), randomized=randomized)
    return log, gamma


def test_naive_is_one_and_oracle_the_truth_at_the_positions_shown():
    log = make_log([[1, 0, 2], [3, -1, -1]], [(0, 1, 1)])
    assert run("naive", log).relative.tolist() == [1, 1, 1]
    oracle = run("oracle", log, truth=np.array([0.8, 0.4, 0.2, 0.1]))
    np.testing.assert_allclose(oracle.relative, [1, 0.5, 0.25])
    assert oracle.theta.tolist() == [0.8, 0.4, 0.2]
    assert oracle.standard_error.tolist() == [0, 0, 0]


def test_the_oracle_without_truth_is_refused():
    with pytest.raises(UserError, match=r"estimator oracle: .*no truth\.csv"):
        run("oracle", make_log([[0]], [(0, 1, 1)]), truth=None)


def test_every_estimator_of_the_registry_is_there():
    for kind in ESTIMATORS:
        assert callable(find_estimator(kind))


def test_click_rates_by_hand_on_ragged_lists():
    log = make_log(
        [[0, 1, 2], [3, 4, -1]],
        [(0, 0b001, 6), (0, 0b110, 2), (0, 0, 2), (1, 0b11, 5), (1, 0, 25)],
    )
    estimate = run("ctr", log)
    rates = [(6 + 5) / 40, (2 + 5) / 40, 2 / 10]
    np.testing.assert_allclose(estimate.relative, np.array(rates) / rates[0])
    assert np.isnan(estimate.theta).all()
    # Two queries: influence on log(rate_2) - log(rate_1), and the factor 2/(2 - 1).
    first = (2 - 10 * rates[1]) / 7 - (6 - 10 * rates[0]) / 11
    second = (5 - 30 * rates[1]) / 7 - (5 - 30 * rates[0]) / 11
    assert estimate.standard_error[0] == 0
    assert estimate.standard_error[1] == pytest.approx(np.sqrt(2 * (first**2 + second**2)))


def test_click_rates_are_theta_times_mean_relevance():
    log, gamma = ragged_world(300, longest=4)
    log = click(log, np.full(300, 4000), THETA, gamma)
    cells = np.where(log.shown, gamma[log.documents], 0)
    expected = THETA[:4] * cells.sum(axis=0) / log.shown.sum(axis=0)
    np.testing.assert_allclose(run("ctr", log).relative, expected / expected[0], rtol=0.02)


@pytest.mark.parametrize("kind", ["ctr", "randomization"])
def test_standard_errors_agree_with_a_bootstrap_of_queries(kind):
    log, gamma = ragged_world(150, lists=2)
    log = click(log, np.full(300, 20), THETA, gamma, seed=3)
    estimate = run(kind, log)
    rng = np.random.default_rng(4)
    sessions = log.sessions[:, None] * log.shown
    logs = []
    for _ in range(600):
        weight = np.bincount(rng.integers(0, 150, 150), minlength=150)[log.queries][:, None]
        if kind == "ctr":
            rates = (log.clicks * weight).sum(axis=0) / (sessions * weight).sum(axis=0)
            logs.append(np.log(rates / rates[0]))
        else:
            first = (log.clicks[:, :1] * log.shown * weight).sum(axis=0)
            logs.append(np.log((log.clicks * weight).sum(axis=0) / first))
    np.testing.assert_allclose(estimate.standard_error[1:], np.std(logs, axis=0)[1:], rtol=0.15)


def test_one_query_alone_has_no_standard_error():
    log = make_log([[0, 1]], [(0, 3, 5), (0, 0, 5)], randomized=True)
    for kind in ("ctr", "randomization"):
        estimate = run(kind, log)
        assert estimate.relative.tolist() == [1, 1]
        assert np.isnan(estimate.standard_error).all()


@pytest.mark.parametrize("kind", ["ctr", "randomization"])
def test_queries_without_sessions_are_no_independent_units(kind):
    groups = [(0, 1, 3), (0, 2, 5), (1, 1, 7), (1, 3, 2)]
    shown = [[0, 1], [2, 3], [4, 5], [6, 7]]
    for queries in (1, 2):
        some = [group for group in groups if group[0] < queries]
        few = find_estimator(kind)(make_log(shown[:queries], some, randomized=True))
        padded = find_estimator(kind)(make_log(shown, some, randomized=True))
        np.testing.assert_array_equal(padded.standard_error, few.standard_error)
        np.testing.assert_array_equal(padded.relative, few.relative)


def test_randomization_recovers_theta_within_its_standard_errors():
    """On lists of many lengths, whose relevance goes with their length."""
    z = []
    for seed in range(6):
        log, gamma = ragged_world(400, seed=seed, lists=3)
        log = click(log, np.full(1200, 50), THETA, gamma, seed=seed)
        estimate = run("randomization", log)
        z.append(
            (np.log(estimate.relative) - np.log(THETA / THETA[0]))[1:] / estimate.standard_error[1:]
        )
    z = np.array(z)
    assert np.abs(z).max() < 4
    assert 0.5 < np.sqrt((z**2).mean()) < 1.5
    # A plain click rate takes the relevance of long lists for examination.
    plain = click_rates(log)
    assert abs(np.log(plain.relative[-1] / (THETA[-1] / THETA[0]))) > 6 * plain.standard_error[-1]


def test_randomization_uses_shuffled_lists_alone_and_equals_click_rates_on_equal_lengths():
    rng = np.random.default_rng(0)
    log = make_log(np.arange(80).reshape(20, 4), randomized=np.arange(20) % 2 == 0)
    log = click(log, np.full(20, 300), THETA, rng.uniform(0.2, 1, 80))
    expected = click_rates(log.select(log.randomized))
    estimate = run("randomization", log)
    np.testing.assert_allclose(estimate.relative, expected.relative, rtol=1e-12)
    np.testing.assert_allclose(estimate.standard_error, expected.standard_error, atol=1e-12)


@pytest.mark.parametrize(
    "log",
    [
        make_log([[0, 1]], [(0, 3, 5)]),
        make_log([[0, 1], [0, 1]], [(0, 3, 5)], queries=[0, 0], randomized=[False, True]),
    ],
    ids=["no list", "no session"],
)
def test_randomization_without_shuffled_sessions_is_refused(log):
    with pytest.raises(UserError, match="no session of the log saw a list"):
        run("randomization", log)


@pytest.mark.parametrize("kind", ["ctr", "randomization", "dla"])
@pytest.mark.parametrize("silent", [0, 1, 2])
def test_a_position_without_clicks_is_refused_by_its_number(kind, silent):
    mask = 0b111 & ~(1 << silent)
    log = make_log(np.arange(12).reshape(4, 3), [(q, mask, 10) for q in range(4)], randomized=True)
    with pytest.raises(UserError, match=f"position {silent + 1} "):
        run(kind, log, features=np.eye(12, dtype=np.float32), **SMALL_DLA)


def test_randomization_refuses_a_position_whose_lists_have_no_click_at_the_top():
    log = make_log([[0, 1], [2, -1]], [(0, 0b10, 5), (1, 0b01, 5)], randomized=True)
    with pytest.raises(UserError, match="no click at position 2"):
        run("randomization", log)


def test_the_examination_update_recovers_theta_from_true_relevance():
    """On ragged lists that a policy has ordered by relevance, apart from sampling noise."""
    log, gamma = ragged_world(400, randomized=False)
    order = np.argsort(np.where(log.shown, -gamma[log.documents], np.inf), axis=1)
    log = make_log(np.take_along_axis(log.documents, order, axis=1))
    relevance = np.where(log.shown, gamma[log.documents], 1.0)
    expected = THETA / THETA[0]
    many = click(log, np.full(400, 200_000), THETA, gamma)
    np.testing.assert_allclose(examination_update(many, relevance), expected, rtol=5e-3)
    scale = np.random.default_rng(0).uniform(0.1, 9, (400, 1))
    np.testing.assert_allclose(
        examination_update(many, relevance * scale), examination_update(many, relevance), rtol=1e-9
    )
    # Without the correction, what a policy put on top looks more examined than it is.
    assert (examination_update(many, np.ones_like(relevance)) < expected)[1:].all()


def test_on_lists_of_one_length_the_update_is_the_weighted_click_count():
    rng = np.random.default_rng(2)
    log = click(make_log(np.arange(60).reshape(15, 4)), np.full(15, 90), THETA, rng.random(60))
    relevance = rng.uniform(0.1, 1, (15, 4))
    targets = [
        sum(log.clicks[q, k] * relevance[q, 0] / relevance[q, k] for q in range(15))
        for k in range(4)
    ]
    np.testing.assert_allclose(
        examination_update(log, relevance), np.array(targets) / targets[0], rtol=1e-12
    )


@given(st.integers(0, 200))
def test_the_update_minimises_the_published_loss_on_ragged_lists(seed):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 5, 8)
    lengths[0] = 4
    documents = np.where(np.arange(4) < lengths[:, None], np.arange(32).reshape(8, 4), -1)
    groups = [
        (q, mask, int(rng.integers(1, 50)))
        for q, length in enumerate(lengths)
        for mask in range(1, 2**length)
    ]
    log = make_log(documents, groups)
    relevance = rng.uniform(0.1, 1, (8, 4))
    weights = np.where(log.shown, log.clicks * relevance[:, :1] / relevance, 0)

    def loss(g):
        logits = np.where(log.shown, np.concatenate([[0], g]), -np.inf)
        return -(
            weights[log.shown]
            * (logits - np.logaddexp.reduce(logits, axis=1, keepdims=True))[log.shown]
        ).sum()

    best = minimize(loss, np.zeros(3), tol=1e-10)
    np.testing.assert_allclose(np.log(examination_update(log, relevance))[1:], best.x, atol=1e-3)


def test_the_ratio_of_relevance_is_clipped_and_underflow_is_no_division_by_zero():
    log = make_log([[0, 1, 2]], [(0, 0b111, 1)])
    assert examination_update(log, np.array([[1, 1e-9, 0.0]])).tolist() == [1, 1000, 1000]
    assert examination_update(log, np.zeros((1, 3))).tolist() == [1, 1, 1]


def test_positions_that_no_click_tells_of_are_nan_and_the_others_as_they_are():
    # No click on the list of three; three clicks and one on that of two.
    log = make_log([[0, 1, 2], [3, 4, -1]], [(0, 0, 5), (1, 0b01, 3), (1, 0b10, 1)])
    np.testing.assert_allclose(examination_update(log, np.ones((2, 3))), [1, 1 / 3, np.nan])
    # Selected lists keep the width of those that were left out.
    wide = make_log([[3, 4, -1]], [(0, 0b01, 3), (0, 0b10, 1)])
    np.testing.assert_allclose(examination_update(wide, np.ones((1, 3))), [1, 1 / 3, np.nan])
    single = make_log([[0, 1]], [(0, 0b01, 1)])
    assert examination_update(single, np.ones((1, 2))).tolist() == [1, 0]


def test_dla_recovers_theta_under_a_random_policy():
    split = make_split([8] * 500, seed=2)
    documents = np.arange(4000).reshape(500, 8)[:, :6]
    log = click(make_log(documents), np.full(500, 200), THETA, attraction(split.grades, 4), seed=1)
    estimate = run("dla", log, features=split.features, **SMALL_DLA)
    error = np.abs(np.log(estimate.relative) - np.log(THETA / THETA[0]))[1:].mean()
    assert error < 0.1
    assert estimate.converged
    assert np.abs(np.log(np.array(estimate.trace[-1]) / estimate.relative)).max() == 0
    again = run("dla", log, features=split.features, **SMALL_DLA)
    assert again.trace == estimate.trace


def contraction(target, rate):
    return lambda theta: np.exp(rate * np.log(theta) + (1 - rate) * np.log(target))


@pytest.mark.parametrize("rate", [0.0, 0.5, 0.8, 0.95, -0.7])
def test_a_contraction_settles_at_its_fixed_point(rate):
    target = np.array([1, 0.5, 0.02, 3.0])
    estimate = iterate(contraction(target, rate), 4, tolerance=1e-9, max_iterations=50)
    assert estimate.converged
    np.testing.assert_allclose(estimate.relative, target, rtol=1e-6)
    assert estimate.relative.tolist() == estimate.trace[-1]
    plain = int(np.ceil(np.log(1e-9 / 4) / np.log(max(abs(rate), 1e-9))))
    assert len(estimate.trace) <= max(plain, 6)


def away(theta):
    return np.concatenate([[1], theta[1:] * [2, 3]])


def repelled(theta):
    return np.concatenate([[1], (theta[1:] / 0.5) ** 3 * 0.7])


def jumping(theta):
    return np.concatenate([[1], np.where(theta[1:] > 0.5, 0.1, 0.9)])


def wild(theta):
    """Changes its mind with every digit of its input."""
    rng = np.random.default_rng(int(theta[1:].sum() * 1e6) % 2**32)
    return np.concatenate([[1], np.exp(rng.normal(size=2) * 30)])


@pytest.mark.parametrize("update", [away, jumping, wild])
@pytest.mark.parametrize("iterations", [1, 2, 7, 60])
def test_what_does_not_settle_is_a_result_and_no_error(update, iterations):
    estimate = iterate(update, 3, tolerance=1e-6, max_iterations=iterations)
    assert 1 <= len(estimate.trace) <= iterations
    assert np.isfinite(estimate.relative).all() and (estimate.relative > 0).all()
    assert not estimate.converged


def test_a_repelling_fixed_point_is_one_too():
    estimate = iterate(repelled, 3, tolerance=1e-9, max_iterations=60)
    assert estimate.converged
    np.testing.assert_allclose(repelled(estimate.relative), estimate.relative, rtol=1e-8)


@given(arrays(np.float64, (2, 2), elements=st.sampled_from([-3, -1, -0.5, 0, 0.5, 1, 2])),
       arrays(np.float64, 2, elements=st.sampled_from([-1, 0, 0.5])))  # fmt: skip
def test_any_linear_map_settles_at_a_fixed_point_or_says_that_it_does_not(matrix, shift):
    def update(theta):
        return np.exp(np.concatenate([[0], matrix @ np.log(theta[1:]) + shift]))

    estimate = iterate(update, 3, tolerance=1e-8, max_iterations=30)
    assert (estimate.relative > 0).all() and np.isfinite(estimate.relative).all()
    moved = np.log(update(estimate.relative)) - np.log(estimate.relative)
    if estimate.converged:
        assert np.abs(moved).max() < 1e-6


def test_values_that_become_impossible_later_are_a_divergence():
    values = iter([[1, 0.5], [1, 0.25], [1, 0.0]])
    estimate = iterate(lambda _: np.array(next(values)), 2, tolerance=1e-9, max_iterations=9)
    assert not estimate.converged
    assert estimate.trace == [[1, 0.5], [1, 0.25]]


@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, np.inf])
def test_a_first_update_that_is_no_propensity_is_refused(value):
    with pytest.raises(UserError, match=f"the propensity of position 2 comes out as {value}"):
        iterate(lambda theta: np.array([1, value]), 2, tolerance=0.1, max_iterations=5)


def test_settling_at_the_last_iteration_counts():
    settled = lambda theta: np.array([1, 0.5])  # noqa: E731
    assert not iterate(settled, 2, tolerance=0.01, max_iterations=1).converged
    assert iterate(settled, 2, tolerance=0.01, max_iterations=2).converged


def test_one_position_is_one():
    estimate = iterate(lambda theta: theta, 1, tolerance=0.1, max_iterations=5)
    assert (estimate.relative.tolist(), estimate.converged) == ([1], True)


@given(st.lists(st.floats(1e-99, 1e99), min_size=1, max_size=5))
def test_propensities_come_back_to_the_last_digit(tmp_path_factory, relative):
    folder = tmp_path_factory.mktemp("theta")
    estimate = up_to_scale(np.array(relative), trace=[relative], converged=False)
    write_estimate(estimate, folder / "t.csv", folder / "t.json", estimator="x", folds=2)
    assert read_propensity(folder / "t.csv").tolist() == relative
    assert not is_converged(folder / "t.json")
    assert read_json(folder / "t.json") == {
        "estimator": "x", "folds": 2, "converged": False, "trace": [relative],
        "identified": True, "notes": [],
    }  # fmt: skip


def test_the_table_has_a_row_a_position_and_nothing_where_nothing_is_known(tmp_path):
    estimate = Estimate(np.array([1, 0.5]), np.array([0.8, np.nan]), np.array([0, 0.125]))
    write_estimate(estimate, tmp_path / "t.csv", tmp_path / "t.json")
    assert (tmp_path / "t.csv").read_text().splitlines() == [
        "position,theta,relative,standard_error", "1,0.8,1.0,0.0", "2,,0.5,0.125"
    ]  # fmt: skip
    assert is_converged(tmp_path / "t.json")


@pytest.mark.parametrize("value", [0.0, -0.5, np.nan, np.inf, 1e-300, 1e300])
def test_a_propensity_that_cannot_weight_clicks_is_refused(tmp_path, value):
    write_estimate(up_to_scale(np.array([1, 0.5, value])), tmp_path / "t.csv", tmp_path / "t.json")
    with pytest.raises(UserError, match=r"t\.csv: the propensity of position 3 is"):
        read_propensity(tmp_path / "t.csv")


def test_ten_figures_are_too_few_to_tell_whether_they_rest():
    assert not at_rest([[1.0]] * 10, tolerance=0.1)
    assert at_rest([[1.0]] * 11, tolerance=0.1)
    # One figure that moves is enough, and one that moves by the tolerance rests.
    assert not at_rest([[1.0, float(tree)] for tree in range(11)], tolerance=0.1)
    assert at_rest([[1.0, tree % 2 / 4] for tree in range(11)], tolerance=0.25)

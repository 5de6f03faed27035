"""Regression-EM: its steps against the textbook's, and recovery."""

import numpy as np
import pytest
from toys import candidates, click, make_log, make_split

from ultrbench.errors import UserError
from ultrbench.propensity.estimate import find_estimator
from ultrbench.propensity.rem import (
    MARGIN,
    Cells,
    examination_update,
    negative_log_likelihood,
    relevance_objective,
    relevance_of,
)

THETA = np.array([1.0, 0.6, 0.3])


def some_cells(seed=0, documents=30):
    rng = np.random.default_rng(seed)
    document = np.repeat(np.arange(documents), 2)
    position = np.concatenate([rng.permutation(3)[:2] for _ in range(documents)])
    n = rng.integers(5, 40, size=len(document)).astype(float)
    gamma = rng.uniform(0.1, 0.9, size=documents)
    c = rng.binomial(n.astype(int), 0.8 * THETA[position] * gamma[document]).astype(float)
    return Cells(document, position, n, c), gamma


def test_theta_is_where_the_m_steps_of_em_come_to_rest():
    cells, gamma = some_cells()
    theta = np.full(3, 0.9)
    for _ in range(3000):
        p = theta[cells.position] * gamma[cells.document]
        examined = theta[cells.position] * (1 - gamma[cells.document]) / (1 - p)
        expected = cells.clicks + (cells.impressions - cells.clicks) * examined
        theta = np.bincount(cells.position, expected) / np.bincount(
            cells.position, cells.impressions
        )
    assert theta.max() < 1
    assert examination_update(cells, 3, gamma) == pytest.approx(theta, rel=1e-6)


def test_expected_clicks_give_the_true_theta():
    document, position = np.array([0, 1, 2, 0]), np.array([0, 1, 2, 2])
    gamma = np.array([0.5, 0.25, 0.75])
    n = np.array([40.0, 80.0, 20.0, 10.0])
    cells = Cells(document, position, n, n * (0.9 * THETA)[position] * gamma[document])
    assert examination_update(cells, 3, gamma) == pytest.approx(0.9 * THETA, rel=1e-9)


def test_a_position_without_clicks_has_theta_zero_and_one_of_clicks_only_the_largest():
    cells = Cells(np.array([0, 1]), np.array([0, 1]), np.array([5.0, 5.0]), np.array([0.0, 5.0]))
    theta = examination_update(cells, 2, np.array([0.5, 0.5]))
    assert theta == pytest.approx([0, 2])


def test_the_gradient_is_that_of_the_likelihood_of_the_clicks():
    cells, gamma = some_cells(1)
    scores = np.log(gamma / (1 - gamma)) + 0.3
    theta = np.array([1.0, 0.5, 0.25])
    gradient, hessian = relevance_objective(cells, 30, theta)(scores, None)
    scale = 30 / cells.impressions.sum()
    for i in range(30):
        step = np.zeros(30)
        step[i] = 1e-5
        up, down = (
            negative_log_likelihood(cells, theta, relevance_of(scores + s)) for s in (step, -step)
        )
        assert gradient[i] == pytest.approx(scale * (up - down) / 2e-5, abs=1e-7)
    # The information that the clicks of a cell have of its score, but for the last 1 - gamma.
    chance = [
        theta[cells.position] * relevance_of(scores + d)[cells.document] for d in (1e-5, -1e-5)
    ]
    slope, p = (chance[0] - chance[1]) / 2e-5, sum(chance) / 2
    information = cells.impressions * slope**2 / (p * (1 - p))
    expected = np.bincount(cells.document, information) / (1 - relevance_of(scores))
    np.testing.assert_allclose(hessian, scale * expected, rtol=1e-6)


def test_newton_steps_on_the_objective_reach_the_most_likely_relevance():
    cells = Cells(np.array([0, 1]), np.array([0, 1]), np.array([20.0, 20.0]), np.array([8.0, 5.0]))
    objective = relevance_objective(cells, 2, np.array([1.0, 0.5]))
    scores = np.zeros(2)
    for _ in range(200):
        gradient, hessian = objective(scores, None)
        scores -= gradient / hessian
    assert relevance_of(scores) == pytest.approx([8 / 20, 5 / 20 / 0.5])


def test_cells_of_some_documents_are_counted_anew():
    cells, _ = some_cells(2, documents=4)
    part = cells.of(np.array([False, True, False, True]))
    assert part.document.tolist() == [0, 0, 1, 1]
    assert part.clicks.tolist() == cells.clicks[[2, 3, 6, 7]].tolist()


def fit(log, split, **changed):
    parameters = {
        "folds": 2,
        "trees": 25,
        "leaves": 7,
        "learning_rate": 0.2,
        "tolerance": 0.01,
        "max_iterations": 30,
    }
    return find_estimator("rem")(log, features=split.features, seed=1, **parameters | changed)


def test_trees_are_chosen_by_the_likelihood_of_the_clicks(monkeypatch):
    losses = []

    def boost(self, objective, loss):
        losses.extend(loss(np.array(scores)) for scores in ([0.0, 0.0], [1.0, -1.0]))
        return np.zeros(2)

    monkeypatch.setattr("ultrbench.propensity.rem.CrossFit.boost", boost)
    log = make_log([[0], [1]], [(0, 1, 6), (0, 0, 2), (1, 1, 2), (1, 0, 10)])
    fit(log, make_split([1, 1]))
    for loss, scores in zip(losses, ([0, 0], [1, -1]), strict=True):
        # 8 clicks in 20 impressions are where boosting starts.
        p, q = 1 / (1 + np.exp(-np.log(8 / 20) - np.array(scores)))
        clicks = [6 * np.log(p), 2 * np.log(1 - p), 2 * np.log(q), 10 * np.log(1 - q)]
        assert loss == pytest.approx(-sum(clicks))


def world(noise_only):
    split = make_split([5] * 400, seed=1)
    documents = candidates(split, width=4)
    if noise_only:
        rng = np.random.default_rng(2)
        documents = np.array([rng.permutation(row) for row in documents])
    return split, make_log(documents)


def test_recovers_theta_where_order_does_not_depend_on_relevance():
    split, lists = world(noise_only=True)
    theta = np.array([0.8, 0.6, 0.4, 0.2])
    log = click(lists, np.full(400, 200), theta, 0.1 + 0.2 * split.grades, seed=1)
    estimate = fit(log, split)
    assert estimate.converged
    assert len(estimate.trace) <= 15
    assert np.isnan(estimate.theta).all()
    assert np.abs(np.log(estimate.relative / (theta / theta[0]))).mean() < 0.06


def test_does_better_than_click_rates_where_it_does():
    split, lists = world(noise_only=False)
    theta = np.array([0.8, 0.6, 0.4, 0.2])
    log = click(lists, np.full(400, 200), theta, 0.1 + 0.2 * split.grades, seed=1)
    errors = [
        np.abs(np.log(e.relative / (theta / theta[0]))).mean()
        for e in (fit(log, split), find_estimator("ctr")(log))
    ]
    assert errors[0] < 0.6 * errors[1]


def test_equal_seeds_give_equal_bytes_and_running_out_says_so():
    split, lists = world(noise_only=False)
    log = click(lists, np.full(400, 20), THETA[[0, 1, 1, 2]], 0.1 + 0.2 * split.grades)
    one, two = (fit(log, split, max_iterations=1, trees=5) for _ in range(2))
    assert one.relative.tobytes() == two.relative.tobytes()
    assert not one.converged


def test_refuses_a_log_of_clicked_sessions_only():
    split = make_split([2])
    log = make_log([[0, 1]], [(0, 1, 5), (0, 2, 3)])
    with pytest.raises(UserError, match="rem: every session of this log has a click"):
        fit(log, split)


def test_relevance_stays_a_probability_with_a_logarithm_on_both_sides():
    scores = np.array([-np.inf, -1000.0, 1000.0, np.inf])
    with np.errstate(all="raise"):
        relevance = relevance_of(scores)
    assert relevance.tolist() == [MARGIN, MARGIN, 1 - MARGIN, 1 - MARGIN]

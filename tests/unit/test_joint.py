"""Joint estimators: their losses by brute force, what they recover, and what they refuse."""

from math import log, log2

import lightgbm
import numpy as np
import pytest
from toys import candidates, click, make_log, make_split

from ultrbench.errors import UserError
from ultrbench.propensity.estimate import find_estimator
from ultrbench.propensity.lightgbm_position import _Listener, expand_sessions
from ultrbench.propensity.paird import PositionBiases, pair_counts
from ultrbench.propensity.vectorization import Vectors
from ultrbench.ranking.boosting import best_tree, boost, choose_trees, graded_lists, train
from ultrbench.ranking.model import count_trees, predict
from ultrbench.ranking.targets import ipw_weights
from ultrbench.simulation.clicks import attraction, examination
from ultrbench.simulation.display import shuffle

THETA = examination(5)
SIZE = {"trees": 30, "leaves": 5, "learning_rate": 0.1, "min_data_in_leaf": 5}
PARAMETERS = {
    "paird": {"regulariser": 1.0, "tolerance": 0.01},
    "vectorization": {"dimensions": 2, "tolerance": 0.01},
    "lightgbm_position": {},
}


@pytest.fixture(scope="module")
def split():
    return make_split(np.full(300, 8), seed=1)


@pytest.fixture(scope="module")
def clicked(split):
    """Five documents a query in random order, and a number of sessions that makes clicks plenty."""
    documents = candidates(split, width=5)
    documents = np.take_along_axis(documents, shuffle(documents, 1, np.random.default_rng(2)), 1)
    log = make_log(documents)
    return click(log, np.full(len(documents), 500), THETA, attraction(split.grades, 4), seed=3)


def small_log(*more):
    """Two lists that share a query and a document, one of them padded."""
    groups = [(0, 0b001, 4), (0, 0b110, 2), (0, 0b000, 9), (0, 0b111, 1)]
    groups += [(1, 0b010, 5), (1, 0b001, 7), *more]
    return make_log([[4, 2, 0], [0, 2, -1]], groups, queries=[0, 0])


def run(kind, split, log, **size):
    estimate = find_estimator(kind)
    return estimate(log, features=split.features, seed=1, **PARAMETERS[kind], **(SIZE | size))


def test_pairs_are_counted_in_sessions_over_their_ideal_dcg():
    one, two = 1, 1 + 1 / log2(3)
    expected = np.zeros((2, 3, 3))
    expected[0, 0, 1] = expected[0, 0, 2] = 4 / one
    expected[0, 1, 0] = expected[0, 2, 0] = 2 / two
    expected[1, 1, 0], expected[1, 0, 1] = 5 / one, 7 / one
    np.testing.assert_allclose(pair_counts(small_log()), expected)


def brute_force(shown, pairs, scores, plus, minus):
    """Loss by pair of positions, gradient by document, with |delta DCG| frozen."""
    loss, gradient, curve = np.zeros((3, 3)), np.zeros(3), np.zeros(3)
    rows = {0: 0, 2: 1, 4: 2}
    for documents, counts in zip(shown, pairs, strict=True):
        real = [d for d in documents if d >= 0]
        ranked = sorted(real, key=lambda d: (-scores[rows[d]], d))
        for i, a in enumerate(real):
            for j, b in enumerate(real):
                ranks = ranked.index(a) + 1, ranked.index(b) + 1
                delta = abs(1 / log2(1 + ranks[0]) - 1 / log2(1 + ranks[1]))
                x = scores[rows[a]] - scores[rows[b]]
                loss[i, j] += counts[i, j] * delta * log(1 + np.exp(-x))
                p = 1 / (1 + np.exp(x))
                weight = counts[i, j] * delta / plus[i] / minus[j]
                gradient[rows[a]] -= weight * p
                gradient[rows[b]] += weight * p
                curve[[rows[a], rows[b]]] += weight * p * (1 - p)
    return loss, gradient, curve


@pytest.mark.parametrize("p", [0.0, 1.0])
def test_paird_follows_its_equations(p):
    shown = small_log((0, 0b100, 3))  # every pair of positions occurs both ways
    cell = np.array([[2, 1, 0], [0, 1, 0]])
    biases = PositionBiases(shown, cell, p=p, tolerance=1e-9)
    pairs = pair_counts(shown)
    pairs *= 1 * (3 - 1) / pairs.sum()  # one query, three positions
    objective = biases.objective(3)
    plus, minus = np.ones(3), np.ones(3)
    for scores in (np.zeros(3), np.array([0.3, -0.2, 0.9])):
        gradient, hessian = objective(scores, None)
        loss, wanted, curve = brute_force(shown.documents, pairs, scores, plus, minus)
        np.testing.assert_allclose(gradient, wanted, atol=1e-12)
        np.testing.assert_allclose(hessian, curve, atol=1e-12)
        above, below = (loss / minus).sum(axis=1), (loss / plus[:, None]).sum(axis=0)
        plus, minus = (above / above[0]) ** (1 / (1 + p)), (below / below[0]) ** (1 / (1 + p))
        np.testing.assert_allclose(biases.plus, plus)
        np.testing.assert_allclose(biases.minus, minus)
        np.testing.assert_allclose(biases.trace[-1], plus ** (1 + p))


def test_paird_rests_once_it_has_settled():
    biases = PositionBiases(small_log(), np.array([[2, 1, 0], [0, 1, 0]]), p=1, tolerance=1e-6)
    objective = biases.objective(3)
    while not biases.settled:
        objective(np.zeros(3), None)
    at_rest, steps = biases.plus.copy(), len(biases.trace)
    objective(np.array([5.0, -5.0, 0.0]), None)
    assert (biases.plus == at_rest).all()
    assert len(biases.trace) == steps


def test_paird_without_regulariser_recovers_theta_under_a_random_policy(split, clicked):
    estimate = find_estimator("paird")(
        clicked, features=split.features, seed=1, regulariser=0.0, tolerance=0.01, **SIZE
    )
    # 300 lists: the mean relevance of a position varies by about .05 from list to list.
    assert np.abs(np.log(estimate.relative) - np.log(THETA / THETA[0])).max() < 0.2
    np.testing.assert_allclose(estimate.relative, estimate.columns["t_plus"])


def test_the_published_regulariser_keeps_t_plus_near_the_square_root_of_theta(split, clicked):
    estimate = run("paird", split, clicked)
    np.testing.assert_allclose(estimate.relative, estimate.columns["t_plus"] ** 2)
    assert np.abs(np.log(estimate.columns["t_plus"]) - np.log(THETA / THETA[0]) / 2).max() < 0.2


@pytest.mark.parametrize(
    ("masks", "sentence"),
    [
        ([0b01], "position 2 is never clicked above another document"),
        ([0b11], "position 1 is never clicked above another document"),
        ([0b011, 0b101], "position 1 is never passed over for another document"),
    ],
)
def test_paird_refuses_a_position_that_is_in_no_pair(masks, sentence):
    positions = 3 if len(masks) == 2 else 2
    log = make_log([range(positions)], [(0, mask, 3) for mask in masks])
    with pytest.raises(UserError, match=sentence):
        run("paird", make_split([positions]), log)


def vector_loss(vectors, log, cell):
    """-sum c log softmax(<r, o>), with clicks scaled to one a query."""
    loss = 0.0
    for n, row in enumerate(log.documents):
        real = [k for k in range(len(row)) if row[k] >= 0]
        dots = [vectors.relevance[cell[n, k]] @ vectors.observation[k] for k in real]
        p = np.exp(dots) / np.exp(dots).sum()
        loss -= sum(log.clicks[n, k] * np.log(p[m]) for m, k in enumerate(real))
    return loss / log.clicks.sum()


def test_each_tree_of_vectorization_sees_the_gradient_of_its_dimension():
    shown, cell = small_log(), np.array([[2, 1, 0], [0, 1, 0]])
    vectors = Vectors(shown, cell, 3, dimensions=2, learning_rate=0.1)
    objective, scores, rng = vectors.objective(), np.zeros(3), np.random.default_rng(0)
    for tree in range(12):
        gradient, hessian = objective(scores, None)
        for row in range(3):
            entry = row, tree % 2
            before, values = vectors.relevance[entry], []
            for step in (1e-4, 0, -1e-4):
                vectors.relevance[entry] = before + step
                values.append(vector_loss(vectors, shown, cell))
            vectors.relevance[entry] = before
            up, here, down = values
            np.testing.assert_allclose((up - down) / 2e-4, gradient[row], atol=1e-8)
            np.testing.assert_allclose((up - 2 * here + down) / 1e-8, hessian[row], atol=1e-6)
        scores = scores + rng.normal(size=3)
    # Observation vectors rest for five trees.
    assert [set(observation) == {1.0} for observation in vectors.trace[:6]] == [True] * 5 + [False]
    share = shown.sessions @ shown.shown
    np.testing.assert_allclose(share @ vectors.observation / share.sum(), 1)
    assert np.ptp(vectors.observation, axis=0).min() > 0


def test_the_curvature_of_vectorization_is_the_slope_of_its_gradient():
    vectors = Vectors(
        small_log(), np.array([[2, 1, 0], [0, 1, 0]]), 3, dimensions=1, learning_rate=1
    )
    vectors.observation[:, 0] = [1.0, 0.5, 0.2]
    hessian = vectors.gradients()[1]
    # With r = 1 the observation of a position is the dot product of all its cells.
    for k in range(3):
        slopes = []
        for step in (1e-5, -1e-5):
            vectors.observation[k, 0] += step
            slopes.append(vectors.gradients()[0][:, k])
            vectors.observation[k, 0] -= step
        np.testing.assert_allclose(hessian[:, k], (slopes[0] - slopes[1]) / 2e-5, atol=1e-9)


def test_observation_vectors_come_to_the_log_of_theta_where_relevance_is_constant():
    clicks = np.array([400, 200, 50])
    log = make_log([[0, 1, 2]], [(0, 1 << k, n) for k, n in enumerate(clicks)])
    vectors = Vectors(log, np.array([[0, 1, 2]]), 3, dimensions=1, learning_rate=0.3)
    for _ in range(500):
        vectors.observe()
    observation = vectors.observation[:, 0]
    np.testing.assert_allclose(observation - observation[0], np.log(clicks / clicks[0]), atol=1e-9)


def test_the_score_of_vectorization_is_relevance_on_the_base_vector(split, clicked):
    rows = np.unique(clicked.documents)
    cell = np.searchsorted(rows, clicked.documents)
    vectors = Vectors(clicked, cell, len(rows), dimensions=3, learning_rate=0.1)
    model = boost(split.features, rows, vectors.objective(), seed=1, **SIZE)
    # The objective has not seen the last tree; the constant 1 of the last dimension ranks nothing.
    seen = predict(model, split.features[rows], SIZE["trees"] - 1)
    np.testing.assert_allclose(vectors.relevance.sum(axis=1) - 1, seen, atol=1e-12)


def test_sessions_are_spread_in_canonical_order():
    documents, positions, clicks, count, group = expand_sessions(small_log())
    # No pair in the empty session and in the one where all three are clicked.
    assert group.tolist() == [3, 3, 2, 2]
    assert documents.tolist() == [0, 2, 4, 0, 2, 4, 0, 2, 0, 2]
    assert positions.tolist() == [2, 1, 0, 2, 1, 0, 0, 1, 0, 1]
    assert clicks.tolist() == [0, 0, 1, 1, 1, 0, 0, 1, 1, 0]
    assert count.tolist() == [4, 4, 4, 2, 2, 2, 5, 5, 7, 7]


def test_a_session_counts_as_often_as_it_was_seen(split, clicked):
    """Weighted groups are the sessions one by one: LightGBM itself is the other implementation."""
    few = clicked.select(np.arange(len(clicked.queries)) < 40)
    ones = few.with_clicks(
        np.repeat(few.click_list, few.count),
        np.repeat(few.mask, few.count),
        np.ones(few.count.sum(), dtype=np.int64),
    )
    # As many documents a leaf as there can be rows: fewest rows then follow the rows a document.
    size = {"trees": 5, "min_data_in_leaf": 20}
    weighted, single = (run("lightgbm_position", split, log, **size) for log in (few, ones))
    factors = [estimate.columns["bias_factor"] for estimate in (weighted, single)]
    np.testing.assert_allclose(*factors, rtol=0.05, atol=0.01)


@pytest.mark.parametrize(("documents", "rows"), [(20, 67), (0, 1)])
def test_the_fewest_documents_of_a_leaf_grow_with_the_rows(monkeypatch, documents, rows):
    asked, train = [], lightgbm.train

    def watched(parameters, *data, **keys):
        asked.append(parameters["min_data_in_leaf"])
        return train(parameters, *data, **keys)

    monkeypatch.setattr(lightgbm, "train", watched)
    # Three documents, which stand in ten rows.
    run("lightgbm_position", make_split([5]), small_log(), trees=1, min_data_in_leaf=documents)
    assert asked == [rows]


def test_factors_are_read_from_lightgbm_s_messages_and_only_warnings_pass_on(capsys):
    listener = _Listener(2)
    for message in ("[Debug] 1       -0.25\n", "[Debug] 7 leaves in a tree", "[Info] 2 positions"):
        listener.info(f"[LightGBM] {message}")
    np.testing.assert_array_equal(listener.factors, [np.nan, -0.25])
    assert capsys.readouterr().out == ""
    listener.info("[LightGBM] [Warning] No further splits")
    assert capsys.readouterr().out == "[LightGBM] [Warning] No further splits\n"


def test_lightgbm_finds_the_order_of_positions_and_gives_no_propensity(split, clicked):
    estimate = run("lightgbm_position", split, clicked)
    assert (np.diff(estimate.columns["bias_factor"]) < 0).all()
    assert np.isnan(estimate.relative).all()
    assert estimate.trace == []


def test_lightgbm_refuses_a_log_without_pairs():
    with pytest.raises(UserError, match="no session of the log has both"):
        run("lightgbm_position", make_split([2]), make_log([[0, 1]], [(0, 0b11, 3), (0, 0, 2)]))


@pytest.mark.parametrize("kind", sorted(PARAMETERS))
def test_joint_rankers_are_reproducible_have_their_size_and_beat_chance(kind, split, clicked):
    first, second = (run(kind, split, clicked) for _ in range(2))
    assert first.model == second.model
    assert first.trace == second.trace
    assert count_trees(first.model) == SIZE["trees"]
    scores = predict(first.model, split.features)
    assert np.corrcoef(scores, split.grades)[0, 1] > 0.5


def test_trees_are_chosen_as_training_would_have_stopped(split, clicked):
    vali = make_split(np.full(60, 8), seed=9)
    stopping = {
        "validation": {"grades": graded_lists(candidates(vali, width=8), vali.grades, 5)},
        "validation_features": vali.features,
        "patience": 4,
        "cutoff": 5,
    }
    arguments = {"objective": "softmax", "seed": 1, **SIZE}
    lists = ipw_weights(clicked, THETA)
    stopped = train(split.features, lists, **arguments, **stopping)
    whole = train(split.features, lists, **arguments)
    chosen = choose_trees(whole.model, **stopping)
    assert (chosen.curve, chosen.trees) == (stopped.curve, stopped.trees)
    assert chosen.trees["grades"] == best_tree(chosen.curve["grades"]) < SIZE["trees"]
    assert choose_trees(whole.model, **(stopping | {"validation": {}})).trees == {"fixed": 30}

"""The cross-fitted choice model on small worlds: recovery, identification, where it says so."""

from dataclasses import replace

import numpy as np
import pytest
from toys import make_log

from ultrbench.errors import UserError
from ultrbench.propensity.confounder import PolicyScores, policy_scores
from ultrbench.propensity.crossfit import estimate, few_queries, spline_controls
from ultrbench.propensity.estimate import find_estimator, read_propensity, write_estimate
from ultrbench.ranking.crossfit import CrossFit
from ultrbench.simulation.behaviour import Behaviour
from ultrbench.simulation.clicks import simulate_sessions
from ultrbench.simulation.display import order_by_score, shuffle
from ultrbench.simulation.log import ClickLog, concatenate

THETA = np.array([0.68, 0.48, 0.28, 0.2, 0.1])
TRUTH = np.log(THETA / THETA[0])
SIZE = {"folds": 2, "trees": 15, "leaves": 7, "learning_rate": 0.2}
SETTINGS = SIZE | {"tolerance": 0.25, "max_iterations": 10}
# Documents: two features, and what the policy knows beside them.
QUERIES = 1500
RNG = np.random.default_rng(5)
SEEN, HIDDEN = RNG.normal(size=(QUERIES * 5, 2)), RNG.normal(size=QUERIES * 5)
FEATURES = SEEN.astype(np.float32)
MEAN = np.exp(0.5 * SEEN[:, 0] + 0.4 * SEEN[:, 1] + 0.4 * HIDDEN) / 10
GAMMA = np.minimum(MEAN * RNG.choice([0.4, 1.6], size=len(MEAN)), 1.0)
DOCUMENTS = np.arange(QUERIES * 5).reshape(QUERIES, 5)


def show(order, scores, round_=0, randomized=False, seed=0, sessions=200):
    documents = np.take_along_axis(DOCUMENTS, order, axis=1)
    groups = simulate_sessions(
        np.full(QUERIES, sessions),
        Behaviour(THETA * GAMMA[documents]),
        np.random.default_rng(seed),
    )
    return ClickLog(
        documents,
        np.arange(QUERIES),
        scores[documents] if scores is not None else np.full(documents.shape, np.nan),
        np.full(QUERIES, round_, dtype=np.uint8),
        np.full(QUERIES, randomized),
        np.zeros(QUERIES, dtype=np.uint8),
        *groups,
    )


def ordered(scores, **about):
    return show(order_by_score(DOCUMENTS, scores[DOCUMENTS]), scores, **about)


def shuffled(**about):
    return show(shuffle(DOCUMENTS, 1, np.random.default_rng(9)), None, randomized=True, **about)


STRONG = 4 * (0.5 * SEEN[:, 0] + 0.4 * HIDDEN)
WEAK = 100 + SEEN[:, 1] + 2 * np.random.default_rng(6).normal(size=len(HIDDEN))


def error(result):
    return np.abs(np.log(result.relative) - TRUTH)[1:].mean()


@pytest.mark.parametrize("log", ["strong", "shuffled", "dynamic"])
def test_theta_is_recovered_with_an_interval(log):
    logs = {"strong": [ordered(STRONG)], "shuffled": [shuffled()]}
    logs["dynamic"] = [ordered(WEAK), ordered(STRONG, round_=1, seed=1), shuffled(seed=2)]
    result = estimate(concatenate(logs[log]), features=FEATURES, seed=1, **SETTINGS)
    assert result.identified and result.converged and not result.notes
    assert error(result) < 0.06
    wrong = np.abs(np.log(result.relative) - TRUTH) > 3 * result.standard_error + 1e-12
    assert not wrong.any()
    assert result.standard_error[0] == 0 and (result.standard_error[1:] < 0.1).all()


def test_without_logged_scores_it_assumes_and_gives_no_interval():
    log = ordered(STRONG)
    blind = replace(log, scores=np.full(log.scores.shape, np.nan))
    result = estimate(blind, features=FEATURES, seed=1, **SETTINGS)
    assert not result.identified and np.isnan(result.standard_error).all()
    assert "no policy scores were logged" in result.notes[0]
    # What the policy knew and the features do not is taken for position.
    assert error(result) > 0.1
    assert (np.log(result.relative) < TRUTH)[1:].all()


def test_ranks_in_place_of_scores_identify_nothing():
    log = ordered(STRONG)
    ranks = replace(log, scores=np.broadcast_to(-np.arange(5.0), log.scores.shape))
    blind = replace(log, scores=np.full(log.scores.shape, np.nan))
    result = estimate(ranks, features=FEATURES, seed=1, **SETTINGS)
    assert not result.identified and "follow from the positions" in result.notes[0]
    assumed = estimate(blind, features=FEATURES, seed=1, **SETTINGS)
    np.testing.assert_array_equal(result.relative, assumed.relative)


def test_the_policy_score_alone_needs_no_features():
    log = ordered(STRONG)
    result = estimate(log, features=FEATURES * np.nan, seed=1, **SETTINGS, relevance=False)
    assert result.identified and result.converged and len(result.trace) == 1
    assert error(result) < 0.06


def test_the_scale_of_a_round_s_scores_does_not_matter():
    log = concatenate([ordered(WEAK), ordered(STRONG, round_=1, seed=1)])
    scaled = replace(log, scores=np.where(log.rounds[:, None] == 1, 7 * log.scores - 3, log.scores))
    one, two = (estimate(a, features=FEATURES, seed=1, **SETTINGS, relevance=False)
                for a in (log, scaled))  # fmt: skip
    np.testing.assert_allclose(one.relative, two.relative, rtol=1e-6)


def test_it_stops_on_the_change_or_says_so():
    log = ordered(STRONG, sessions=20)
    strict = SETTINGS | {"tolerance": 1e-9, "max_iterations": 2}
    result = estimate(log, features=FEATURES, seed=1, **strict)
    assert not result.converged and len(result.trace) == 3
    same = estimate(log, features=FEATURES, seed=1, **strict)
    np.testing.assert_array_equal(result.relative, same.relative)
    np.testing.assert_array_equal(result.trace[-1], result.relative)


def test_a_position_without_clicks_is_refused():
    log = ordered(STRONG)
    kept = log.mask < 16
    bare = log.with_clicks(log.click_list[kept], log.mask[kept], log.count[kept])
    for kind in ("crossfit", "upe", "upe_scaled"):
        with pytest.raises(UserError, match="no click at position 5"):
            find_estimator(kind)(bare, features=FEATURES, truth=None, seed=1, **SETTINGS)


def test_policy_scores_by_round():
    log = concatenate([ordered(WEAK), ordered(STRONG, round_=1), shuffled(round_=1)])
    scores = policy_scores(log, FEATURES)
    assert scores.logged
    np.testing.assert_array_equal(np.unique(scores.policy), [-1, 0, 1])
    standard = scores.standardised()
    for policy, mean, spread in ((-1, 0, 0), (0, 0, 1), (1, 0, 1)):
        values = standard[scores.policy == policy]
        assert values.mean() == pytest.approx(mean, abs=1e-9)
        assert values.std() == pytest.approx(spread)
    # One block of columns for each policy and control; none for a constant.
    assert spline_controls(log, scores).shape[2] == 2 * 5
    assert spline_controls(log, scores, GAMMA[log.documents]).shape[2] == 5 * 5


def test_a_round_without_scores_is_imitated_from_the_features():
    known = ordered(SEEN[:, 0])
    blind = replace(known, scores=np.full(known.scores.shape, np.nan), rounds=known.rounds + 1)
    log = concatenate([known, blind])
    scores = policy_scores(log, FEATURES, seed=1, **SIZE)
    assert not scores.logged
    imitated = scores.values[QUERIES:]
    # The order followed the first feature, and out of fold the imitation finds it again.
    assert np.corrcoef(imitated.ravel(), SEEN[known.documents, 0].ravel())[0, 1] > 0.95
    np.testing.assert_allclose(
        scores.values[:QUERIES], known.scores - known.scores.mean(), atol=1e-12
    )


def test_scores_are_centred_and_standardised_by_hand_and_padding_has_none():
    log = make_log(
        [[0, 1, 2], [3, 4, -1]], queries=[0, 1], scores=[[3.0, 2.5, 2.0], [3.0, 2.0, np.nan]]
    )
    values = policy_scores(log, FEATURES).values
    np.testing.assert_allclose(values, [[0.5, 0, -0.5], [0.5, -0.5, 0]])
    scores = PolicyScores(np.array([[0.25, -0.25], [0, 0], [8, -8]]), np.array([0, 1, 2]), True)
    assert scores.standardised().tolist() == [[1, -1], [0, 0], [1, -1]]


def test_a_round_in_which_one_score_is_missing_is_imitated():
    known = ordered(SEEN[:, 0])
    known.scores[7, 2] = np.nan
    scores = policy_scores(known, FEATURES, seed=1, **SIZE)
    assert not scores.logged and np.isfinite(scores.values).all()


def test_the_report_says_what_was_assumed(tmp_path):
    from ultrbench.files import read_json

    log = ordered(STRONG)
    blind = replace(log, scores=np.full(log.scores.shape, np.nan))
    result = estimate(blind, features=FEATURES, seed=1, **SETTINGS)
    write_estimate(result, tmp_path / "theta.csv", tmp_path / "theta.json", kind="crossfit")
    report = read_json(tmp_path / "theta.json")
    assert report["identified"] is False and report["notes"] == list(result.notes)
    np.testing.assert_array_equal(read_propensity(tmp_path / "theta.csv"), result.relative)


def test_each_ranker_learns_from_all_the_other_folds_and_from_the_lists_of_single_queries():
    log = show(np.tile(np.arange(5), (QUERIES, 1)), None)
    rankers = CrossFit(log, FEATURES, folds=3, trees=1, leaves=4, learning_rate=0.1, seed=1)
    sizes = [(data.num_data(), unseen.num_data()) for _, data, unseen in rankers._parts]
    assert sizes == [(QUERIES * 5 * 2 // 3, QUERIES * 5 // 3)] * 3
    assert sum(held_out.astype(int) for held_out, *_ in rankers._parts).tolist() == [1] * 7500
    assert rankers.query_ptr[:3].tolist() == [0, 5, 10]
    rows = np.zeros(QUERIES * 5, bool)
    rows[5:10] = rows[20:25] = True
    assert rankers._pointer(rows).tolist() == [0, 5, 10]
    rows[[26, -1]] = True
    assert rankers._pointer(rows).tolist() == [0, 5, 10, 11, 12]


def test_as_few_queries_as_parameters_leave_no_interval():
    """Errors would be near 0, as the fit bends to each of them."""
    log = ordered(STRONG)
    # Four positions beside the first, five columns of the policy score and up to five of relevance.
    few, enough = (log.select(log.queries < queries) for queries in (9, 15))
    found, other = (estimate(part, features=FEATURES, seed=1, **SETTINGS) for part in (few, enough))
    assert np.isfinite(other.standard_error).all() and other.identified
    assert np.isnan(found.standard_error).all() and not found.identified
    assert found.notes == (few_queries(9, 9),)
    assert np.isfinite(found.relative).all()

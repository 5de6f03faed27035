"""Counterfactual estimates against the closed form, their coverage, and what they refuse."""

import warnings
from dataclasses import replace
from math import log2

import numpy as np
import pandas as pd
import pytest

from ultrbench.errors import UserError
from ultrbench.evaluation import counterfactual as cf
from ultrbench.evaluation.metrics import dcg
from ultrbench.simulation.log import ClickLog

THETA = np.array([0.68, 0.61, 0.48, 0.34, 0.28])
EPS, YMAX = 0.1, 2


def displayed(queries=40, orders=2, key=0):
    """Lists of 3 to 5 documents in `orders` random orders, grades, and two rankers' scores."""
    rng = np.random.default_rng(key)
    lengths = rng.integers(3, 6, queries)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    documents = np.full((queries * orders, 5), -1)
    for row in range(len(documents)):
        q = row // orders
        documents[row, : lengths[q]] = starts[q] + rng.permutation(lengths[q])
    grades = rng.integers(0, YMAX + 1, starts[-1])
    scores = np.stack([grades + rng.normal(0, 0.7, len(grades)), rng.normal(size=len(grades))])
    return documents, np.repeat(np.arange(queries), orders), grades, scores


def gamma(grades):
    return EPS + (1 - EPS) * (2.0**grades - 1) / (2**YMAX - 1)


def simulate(documents, queries, grades, sessions, rng, theta=THETA):
    """Draw every session one by one, then group equal ones."""
    rate = np.where(documents >= 0, theta * gamma(grades[documents]), 0)
    row = np.repeat(np.arange(len(documents)), sessions)
    masks = ((rng.random((len(row), 5)) < rate[row]) << np.arange(5)).sum(axis=1)
    groups, count = np.unique(np.column_stack([row, masks]), axis=0, return_counts=True)
    zeros = np.zeros(len(documents), np.uint8)
    return ClickLog(
        documents,
        queries,
        np.full(documents.shape, np.nan),
        zeros,
        zeros > 0,
        zeros,
        groups[:, 0],
        groups[:, 1].astype(np.uint64),
        count,
    )


@pytest.fixture
def world():
    documents, queries, grades, scores = displayed()
    log = simulate(documents, queries, grades, 30, np.random.default_rng(1))
    return log, grades, np.stack([cf.new_ranks(log, s) for s in scores]), scores


def estimate(log, ranks, theta=THETA, weights="DCG", **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cf.CounterfactualWarning)
        settings = {"bootstraps": 400, "rng": np.random.default_rng(5)} | options
        return cf.estimate_from_clicks(log, ranks, theta, weights, **settings)


@pytest.mark.parametrize("weights", ["DCG", "DCG@2", "RBP(p=.8)", "SRR"])
def test_value_is_the_sum_over_clicks(world, weights):
    log, _, ranks, _ = world
    lambdas = cf.rank_weights(weights, 5)
    total = sum(
        count * lambdas[ranks[0, row, k] - 1] / THETA[k]
        for row, mask, count in zip(log.click_list, log.mask, log.count, strict=True)
        for k in range(5)
        if int(mask) >> k & 1
    )
    assert estimate(log, ranks, weights=weights).value[0] == pytest.approx(total / log.count.sum())


def test_true_worth_with_graded_gain_is_the_mean_dcg(world):
    log, grades, ranks, scores = world
    table = np.where(log.shown, grades[log.documents], 0)
    gains = 2.0**table - 1
    rows = np.argsort(log.documents, axis=1)  # canonical order for ties; there are none
    expected = dcg(
        np.take_along_axis(scores[0][log.documents], rows, axis=1),
        np.take_along_axis(table, rows, axis=1),
        np.take_along_axis(log.shown, rows, axis=1),
        mean=True,
    )
    assert cf.true_worth(log, ranks, gains)[0] == pytest.approx(expected, abs=1e-12)
    on_clicks = cf.true_worth(log, ranks, gamma(table))
    np.testing.assert_allclose(
        cf.graded_dcg(on_clicks, log, eps=EPS, ymax=YMAX), cf.true_worth(log, ranks, gains)
    )


@pytest.mark.parametrize("self_normalised", [False, True])
def test_session_intervals_cover_with_the_true_theta_and_not_with_a_biased_one(self_normalised):
    rng = np.random.default_rng(11)
    documents, queries, grades, scores = displayed(20, 1, key=3)
    # The log shows the ranker's order, so that a bias in theta does not average out over ranks.
    order = np.argsort(np.where(documents >= 0, -scores[0][documents], np.inf), axis=1)
    documents = np.take_along_axis(documents, order, axis=1)
    covered, biased, errors = [], [], []
    for _ in range(400):
        log = simulate(documents, queries, grades, 40, rng)
        ranks = cf.new_ranks(log, scores[0])[None]
        options = {"self_normalised": self_normalised, "rng": rng}
        truth = cf.true_worth(log, ranks, gamma(grades[documents]), self_normalised=self_normalised)
        right = estimate(log, ranks, **options)
        wrong = estimate(log, ranks, THETA**2, **options)
        covered.append(right.low <= truth <= right.high)
        biased.append(wrong.low <= truth <= wrong.high)
        errors.append(right.value - truth)
    assert abs(np.mean(errors)) < 4 * np.std(errors) / np.sqrt(400)
    assert 0.93 <= np.mean(covered) <= 0.97
    assert np.mean(biased) < 0.1


@pytest.mark.parametrize("self_normalised", [False, True])
def test_query_intervals_cover_the_mean_of_all_queries(self_normalised):
    rng = np.random.default_rng(12)
    documents, queries, grades, scores = displayed(4000, 1, key=9)
    everyone = simulate(documents, queries, grades, 1, rng)
    truth = cf.true_worth(
        everyone,
        cf.new_ranks(everyone, scores[0])[None],
        gamma(grades[documents]),
        self_normalised=self_normalised,
    )
    covered = []
    for _ in range(400):
        sample = documents[rng.integers(4000, size=100)]
        log = simulate(sample, np.arange(100), grades, 5, rng)
        found = estimate(
            log,
            cf.new_ranks(log, scores[0])[None],
            resample="queries",
            self_normalised=self_normalised,
            rng=rng,
        )
        covered.append(found.low <= truth <= found.high)
    assert 0.91 <= np.mean(covered) <= 0.97


def test_self_normalised_ignores_the_scale_of_theta_and_orders_rankers(world):
    log, _, ranks, _ = world
    plain = estimate(log, ranks, self_normalised=True)
    scaled = estimate(log, ranks, THETA / THETA[0], self_normalised=True)
    np.testing.assert_allclose(plain.value, scaled.value, rtol=1e-12)
    np.testing.assert_allclose(plain.low, scaled.low, rtol=1e-12)
    assert plain.up_to_scale and plain.value[0] > plain.value[1]


def test_session_intervals_have_the_unbiased_width_with_two_sessions_a_query():
    documents, queries, grades, scores = displayed(400, 1, key=4)
    log = simulate(documents, queries, grades, 2, np.random.default_rng(2))
    ranks = cf.new_ranks(log, scores[0])[None]
    found = estimate(log, ranks, bootstraps=4000)
    # The variance of one session: sum over its independent positions of rate (1 - rate) value^2.
    rate = np.where(log.shown, THETA * gamma(grades[documents]), 0)
    value = cf.rank_weights("DCG", 5)[ranks[0] - 1] / THETA
    error = np.sqrt(2 * (rate * (1 - rate) * value**2).sum()) / 800
    assert found.high - found.low == pytest.approx(2 * 1.96 * error, rel=0.12)


def test_clipping_caps_the_weights(world):
    log, _, ranks, _ = world
    clipped = estimate(log, ranks, clip=0.5)
    np.testing.assert_array_equal(clipped.value, estimate(log, ranks, np.maximum(THETA, 0.5)).value)
    assert clipped.effective_sample_size > estimate(log, ranks).effective_sample_size


def test_order_of_sessions_and_split_groups_change_nothing(world):
    log, _, ranks, _ = world
    order = np.random.default_rng(1).permutation(len(log.mask))
    shuffled = replace(
        log, click_list=log.click_list[order], mask=log.mask[order], count=log.count[order]
    )
    np.testing.assert_allclose(estimate(shuffled, ranks).value, estimate(log, ranks).value)


def test_weights_by_hand_and_metrics_that_are_no_sums():
    assert cf.rank_weights("DCG@2", 3).tolist() == [1.0, 1 / log2(3), 0.0]
    np.testing.assert_allclose(cf.rank_weights("RBP(p=.5)", 3), [0.5, 0.25, 0.125])
    for name in ("MRR", "ERR@5", "nDCG@10", "AP"):
        with pytest.raises(UserError, match="not a sum over documents"):
            cf.rank_weights(name, 3)


def test_impossible_logs_and_thetas_are_refused(world):
    log, _, ranks, _ = world
    with pytest.raises(UserError, match="theta is 0 at position 3"):
        estimate(log, ranks, [0.6, 0.5, 0.0, 0.3, 0.2])
    with pytest.raises(UserError, match="theta has 2 positions, the log 5"):
        estimate(log, ranks, THETA[:2])
    with pytest.raises(UserError, match="needs a rank"):
        estimate(log, ranks * 0)
    flat = replace(log, documents=log.documents[:, :1], scores=log.scores[:, :1])
    with pytest.raises(UserError, match="no positions"):
        estimate(flat, ranks[:, :, :1])
    kept = log.mask > 0
    dropped = replace(
        log, click_list=log.click_list[kept], mask=log.mask[kept], count=log.count[kept]
    )
    with pytest.raises(UserError, match="no session without a click"):
        estimate(dropped, ranks)
    full = (1 << log.shown.sum(axis=1)) - 1
    clicked_only = replace(log, mask=full[log.click_list].astype(np.uint64))
    with pytest.raises(UserError, match="impressions without a click"):
        estimate(clicked_only, ranks)


def test_one_query_with_a_single_session_is_told():
    documents, queries, grades, scores = displayed(3, 1)
    sessions = np.array([1, 400, 400])
    log = simulate(documents, queries, grades, sessions, np.random.default_rng(1))
    ranks = cf.new_ranks(log, scores[0])[None]
    with pytest.warns(cf.CounterfactualWarning):
        found = cf.estimate_from_clicks(log, ranks, THETA, rng=np.random.default_rng(1))
    assert "1 of 3 queries have a single session" in " ".join(found.warnings)


def test_doubtful_logs_warn():
    documents, queries, grades, scores = displayed(20, 1)
    log = simulate(documents, queries, grades, 1, np.random.default_rng(1))
    ranks = cf.new_ranks(log, scores[0])[None]
    with pytest.warns(cf.CounterfactualWarning) as caught:
        found = cf.estimate_from_clicks(log, ranks, THETA, rng=np.random.default_rng(1))
    assert [str(w.message) for w in caught] == list(found.warnings)
    text = " ".join(found.warnings)
    assert "deterministic" in text and "effective sample size" in text and "single session" in text
    documents, queries, grades, scores = displayed(40, 3)
    log = simulate(documents, queries, grades, 100, np.random.default_rng(1))
    assert not estimate(log, cf.new_ranks(log, scores[0])[None]).warnings


def test_summary_by_hand():
    frame = pd.DataFrame(
        {
            "theta": ["a"] * 4 + ["b"] * 4,
            "seed": [1, 1, 2, 2] * 2,
            "ranker": [*"xyxyxyxy"],
            "estimate": [1.0, 2.0, 1.2, 2.2, 3.0, 2.0, 3.0, 2.0],
            "truth": [1.0, 2.0] * 4,
        }
    )
    frame["low"], frame["high"] = frame["estimate"] - 0.1, frame["estimate"] + 0.1
    table = cf.summarise_estimates(frame, ["theta"]).set_index("theta")
    assert table.loc["a", "bias"] == pytest.approx(0.1)
    assert table.loc["a", "variance"] == pytest.approx(0.02)
    assert table["coverage"].tolist() == [0.5, 0.5]
    assert table["rank_correlation"].tolist() == [1.0, -1.0]

"""Simulated clicks against the closed form and against sessions drawn one by one."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2, chisquare

from ultrbench.simulation import clicks
from ultrbench.simulation.behaviour import Behaviour
from ultrbench.simulation.display import order_by_score, shuffle

JOACHIMS = [0.68, 0.61, 0.48, 0.34, 0.28, 0.20, 0.11, 0.10, 0.08, 0.06]


def per_list(groups, lists, positions):
    """Sessions and clicks by list, by a loop."""
    sessions, sums = np.zeros(lists, dtype=int), np.zeros((lists, positions), dtype=int)
    for row, mask, count in zip(*groups, strict=True):
        sessions[row] += count
        for k in range(positions):
            sums[row, k] += count * (int(mask) >> k & 1)
    return sessions, sums


def test_examination_is_the_eye_tracking_to_the_power_of_eta():
    assert clicks.examination(10).tolist() == JOACHIMS
    assert clicks.examination(12).tolist() == [*JOACHIMS, 0.06, 0.06]
    assert clicks.examination(5, eta=0).tolist() == [1.0] * 5
    np.testing.assert_allclose(clicks.examination(3, eta=2), [0.68**2, 0.61**2, 0.48**2])
    assert clicks.examination(3, values=[0.9, 0.5]).tolist() == [0.9, 0.5, 0.5]


@pytest.mark.parametrize("dtype", [np.uint8, np.int64])
def test_attraction_by_hand(dtype):
    gamma = clicks.attraction(np.arange(5, dtype=dtype), 4)
    expected = [0.1, 0.1 + 0.9 / 15, 0.1 + 0.9 * 3 / 15, 0.1 + 0.9 * 7 / 15, 1.0]
    np.testing.assert_allclose(gamma, expected, rtol=1e-15)
    assert gamma.dtype == np.float64
    np.testing.assert_allclose(
        clicks.attraction(np.array([[0, 1], [1, 2]], dtype=dtype), 2, eps=0),
        [[0, 1 / 3], [1 / 3, 1]],
    )


def test_click_rates_are_theta_times_gamma_in_every_cell():
    """z-scores of 400 cells: their squares follow chi-square, and none is far out."""
    rng = np.random.default_rng(7)
    grades = rng.integers(0, 5, (40, 10)).astype(np.uint8)
    for eta in (0.0, 1.0, 2.0):
        p = clicks.examination(10, eta=eta) * clicks.attraction(grades, 4)
        n = np.full(40, 100_000)
        groups = clicks.simulate_sessions(n, Behaviour(p), np.random.default_rng(11))
        sessions, sums = per_list(groups, 40, 10)
        assert (sessions == n).all()
        certain = p == 1
        assert (sums[certain] == n[0]).all()
        z = ((sums - n[0] * p) / np.sqrt(n[0] * np.maximum(p * (1 - p), 1e-9)))[~certain]
        assert np.abs(z).max() < 4.5
        assert 1e-4 < chi2.sf((z**2).sum(), z.size) < 1 - 1e-4


def session_by_session(p, sessions, rng):
    clicked = rng.random((sessions, len(p))) < p
    return np.bincount(clicked @ (1 << np.arange(len(p))), minlength=1 << len(p))


def masks_of(groups, positions):
    counts = np.zeros(1 << positions, dtype=int)
    counts[groups[1].astype(int)] += groups[2]
    return counts


def test_masks_have_the_joint_distribution_of_sessions_drawn_one_by_one():
    p, sessions = np.array([0.6, 0.35, 0.8, 0.1]), 200_000
    expected = [
        np.prod([q if bit else 1 - q for q, bit in zip(p, reversed(bits), strict=True)])
        for bits in product([0, 1], repeat=4)
    ]
    drawn = masks_of(
        clicks.draw_masks(np.array([sessions]), Behaviour(p[None]), np.random.default_rng(3)), 4
    )
    loop = session_by_session(p, sessions, np.random.default_rng(4))
    for counts in (drawn, loop):
        assert 1e-3 < chisquare(counts, sessions * np.array(expected)).pvalue < 1 - 1e-3


def test_few_sessions_split_like_sessions_drawn_one_by_one():
    """Two sessions a list, 50,000 lists: the pair of masks, not only its mean, is as it should."""
    p, lists = np.array([0.5, 0.3]), 50_000
    rows, masks, counts = clicks.draw_masks(
        np.full(lists, 2), Behaviour(np.tile(p, (lists, 1))), np.random.default_rng(5)
    )
    pairs = np.zeros((lists, 4), dtype=int)
    pairs[rows, masks.astype(int)] = counts
    single = np.array([0.5 * 0.7, 0.5 * 0.7, 0.5 * 0.3, 0.5 * 0.3])
    outcomes, expected = [], []
    for a, b in product(range(4), repeat=2):
        if a <= b:
            pattern = np.eye(4, dtype=int)[a] + np.eye(4, dtype=int)[b]
            outcomes.append((pairs == pattern).all(axis=1).sum())
            expected.append(lists * single[a] * single[b] * (1 if a == b else 2))
    assert sum(outcomes) == lists
    assert 1e-3 < chisquare(outcomes, expected).pvalue < 1 - 1e-3


@given(
    st.lists(st.integers(0, 10**12), min_size=1, max_size=4),
    st.integers(1, 5),
    st.sampled_from(["keep", "drop", "resample"]),
    st.integers(0, 9),
)
def test_groups_are_canonical_and_totals_are_kept(sessions, positions, empty, seed):
    rng = np.random.default_rng(seed)
    p = rng.choice([0, 0.5, 0.9, 1], (len(sessions), positions))  # no session stays empty
    groups = clicks.simulate_sessions(np.array(sessions), Behaviour(p), rng, empty_sessions=empty)
    rows, masks, counts = groups
    assert (rows.dtype, masks.dtype, counts.dtype) == (np.int64, np.uint64, np.int64)
    keys = list(zip(rows.tolist(), masks.tolist(), strict=True))
    assert keys == sorted(set(keys))
    assert (counts > 0).all()
    totals, sums = per_list(groups, len(sessions), positions)
    assert not sums[:, (p == 0).all(axis=0)].any()
    certain = (p == 1).any(axis=1)
    assert (totals[certain] == np.array(sessions)[certain]).all()
    assert (totals <= sessions).all()
    if empty == "keep":
        assert (totals == sessions).all()
    else:
        assert (masks > 0).all()
        never = (p == 0).all(axis=1)
        assert not totals[never].any()
    if empty == "resample":
        assert (totals == np.array(sessions))[~(p == 0).all(axis=1)].all()


def test_dropping_loses_the_share_of_empty_sessions_and_no_click():
    p, sessions = np.array([[0.3, 0.2, 0.05]]), np.array([100_000])
    kept = clicks.simulate_sessions(sessions, Behaviour(p), np.random.default_rng(1))
    dropped = clicks.simulate_sessions(
        sessions, Behaviour(p), np.random.default_rng(1), empty_sessions="drop"
    )
    assert (per_list(kept, 1, 3)[1] == per_list(dropped, 1, 3)[1]).all()
    empty = 100_000 - dropped[2].sum()
    expected = 100_000 * 0.7 * 0.8 * 0.95
    assert abs(empty - expected) < 4.5 * np.sqrt(expected)


def test_resampling_draws_from_the_distribution_given_a_click():
    p, sessions = np.array([0.3, 0.2, 0.05]), 100_000
    groups = clicks.simulate_sessions(
        np.array([sessions]),
        Behaviour(p[None]),
        np.random.default_rng(2),
        empty_sessions="resample",
    )
    counts = masks_of(groups, 3)
    assert counts[0] == 0 and counts.sum() == sessions
    given_click = np.array(
        [np.prod([q if mask >> k & 1 else 1 - q for k, q in enumerate(p)]) for mask in range(1, 8)]
    ) / (1 - 0.7 * 0.8 * 0.95)
    assert 1e-3 < chisquare(counts[1:], sessions * given_click).pvalue < 1 - 1e-3


def test_resampling_loses_no_session_however_rare_a_click_is():
    p = np.array([[1e-12, 0, 0], [0.068, 0, 0], [1e-9, 1e-12, 0], [0, 0, 1e-300]])
    groups = clicks.simulate_sessions(
        np.full(4, 10**12), Behaviour(p), np.random.default_rng(0), empty_sessions="resample"
    )
    assert per_list(groups, 4, 3)[0].tolist() == [10**12] * 4
    share = per_list(groups, 4, 3)[1][2] / 10**12
    np.testing.assert_allclose(share, [1 / 1.001, 0.001 / 1.001, 0], atol=1e-5)


def test_the_chance_of_a_first_click_is_never_above_1_by_rounding():
    # P(click) over P(click here or later), of which the latter is the smaller one in float64.
    p = np.array([[0.061, 1e-300], [0.23, 1e-300], [0.25, 1e-300], [0.435, 1e-300]])
    assert (p[:, 0] / -np.expm1(np.log1p(-p[:, 0])) > 1).all()
    assert clicks.first_click(p).tolist() == [[1, 1]] * 4


def test_sessions_that_cannot_have_a_click_are_dropped():
    groups = clicks.simulate_sessions(
        np.array([5, 5]), Behaviour(np.array([[0.0, 0.0], [1.0, 0.0]])), np.random.default_rng(0),
        empty_sessions="resample",
    )  # fmt: skip
    assert [a.tolist() for a in groups] == [[1], [1], [5]]


@pytest.mark.parametrize("empty", ["keep", "drop", "resample"])
def test_no_session_gives_no_group(empty):
    groups = clicks.simulate_sessions(
        np.zeros(3, dtype=int),
        Behaviour(np.full((3, 2), 0.5)),
        np.random.default_rng(0),
        empty_sessions=empty,
    )
    assert [len(a) for a in groups] == [0, 0, 0]


def test_sixty_three_positions_set_the_top_bit():
    p = np.zeros((1, 63))
    p[0, [0, 62]] = 1
    groups = clicks.draw_masks(np.array([2**53]), Behaviour(p), np.random.default_rng(0))
    assert [a.tolist() for a in groups] == [[0], [2**62 + 1], [2**53]]


def test_equal_streams_give_equal_sessions():
    p = np.random.default_rng(0).random((20, 8))
    n = np.arange(20) * 37
    one, two, other = (
        clicks.simulate_sessions(
            n, Behaviour(p), np.random.default_rng(seed), empty_sessions="resample"
        )
        for seed in (1, 1, 2)
    )
    assert all((a == b).all() for a, b in zip(one, two, strict=True))
    assert any(len(a) != len(b) or (a != b).any() for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("queries", [1, 7, 20_000])
def test_uniform_traffic_is_uniform(queries):
    share = clicks.query_traffic(queries, 0, np.random.default_rng(1))
    assert (share == share[0]).all() and share.sum() == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("exponent", [0.5, 1.5, 100])
def test_zipf_traffic_has_its_shares_in_random_order(exponent):
    expected = np.array([r**-exponent for r in range(1, 31)])
    tops = []
    for seed in range(20):
        share = clicks.query_traffic(30, exponent, np.random.default_rng(seed))
        np.testing.assert_allclose(np.sort(share)[::-1], expected / expected.sum(), rtol=1e-12)
        tops.append(int(share.argmax()))
    assert len(set(tops)) > 5
    assert np.random.default_rng(0).multinomial(10**12, share).sum() == 10**12


@given(st.integers(0, 99))
def test_displayed_order_equals_a_plain_sort(seed):
    rng = np.random.default_rng(seed)
    documents = np.array([rng.permutation(20)[:7] for _ in range(4)])
    documents[rng.random(documents.shape) < 0.2] = -1
    scores = rng.integers(-2, 3, documents.shape).astype(float)
    scores[documents < 0] = rng.choice([np.nan, 9.0, -9.0])
    order = order_by_score(documents, scores)
    for row in range(4):
        real = [c for c in range(7) if documents[row, c] >= 0]
        expected = sorted(real, key=lambda c: (-scores[row, c], documents[row, c]))
        assert order[row, : len(real)].tolist() == expected
        assert sorted(order[row]) == list(range(7))


def test_shuffled_lists_are_uniform_over_orders_and_padding_stays_last():
    documents = np.array([[9, 0, 1, -1], [0, -1, -1, -1]])
    order = shuffle(documents, 30_000, np.random.default_rng(1))
    assert order.shape == (60_000, 4)
    assert (order[:30_000, 3] == 3).all()
    assert (order[30_000:, 0] == 0).all()
    codes = order[:30_000, :3] @ np.array([9, 3, 1])
    _, counts = np.unique(codes, return_counts=True)
    assert len(counts) == 6
    assert 1e-3 < chisquare(counts).pvalue < 1 - 1e-3


def test_users_who_stop_at_one_position_go_on_at_others():
    users = Behaviour(np.ones((1, 3)), continuation=np.array([[1.0, 0.0, 1.0]]))
    groups = clicks.draw_masks(np.array([5]), users, np.random.default_rng(0))
    assert [array.tolist() for array in groups] == [[0], [0b011], [5]]

"""Target weights against plain loops, and in whatever order a log has its lists."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from toys import make_log

from ultrbench.errors import UserError
from ultrbench.ranking import targets
from ultrbench.simulation.log import concatenate

THETA = np.array([0.68, 0.61, 0.48, 0.34])


@st.composite
def logs(draw):
    """Three queries of the rows 0-3, 4-5 and 6-9, each shown in several orders, or not at all."""
    parts, groups, queries = [], [], []
    for query, rows in enumerate(([0, 1, 2, 3], [4, 5], [6, 7, 8, 9])):
        for _ in range(draw(st.integers(0, 3))):
            shown = draw(st.permutations(rows))[: draw(st.integers(1, len(rows)))]
            for mask in draw(st.sets(st.integers(0, 2 ** len(shown) - 1), max_size=3)):
                groups.append((len(parts), mask, draw(st.integers(1, 10**6))))
            parts.append([*shown] + [-1] * (4 - len(shown)))
            queries.append(query)
    if not parts:
        parts, queries = [[5, 4, -1, -1]], [1]
    return make_log(parts, groups, queries=queries)


def document_sums(log, value):
    """{(query, row): sum over cells of value(list, position)}, by loops."""
    sums = {}
    for row, (query, documents) in enumerate(zip(log.queries, log.documents, strict=True)):
        for k, document in enumerate(documents):
            if document >= 0:
                key = int(query), int(document)
                sums[key] = sums.get(key, 0) + value(row, k)
    return dict(sorted(sums.items()))


def assert_lists(lists, sums):
    assert lists.rows.tolist() == [row for _, row in sums]
    queries = [query for query, _ in sums]
    starts = [queries.index(query) for query in sorted(set(queries))]
    assert lists.query_ptr.tolist() == [*starts, len(queries)]
    np.testing.assert_allclose(lists.weights, list(sums.values()), rtol=1e-12)


@given(logs())
def test_weighted_clicks_equal_the_sum_over_sessions(log):
    def session_by_session(row, k):
        total = 0.0
        for click_list, mask, count in zip(log.click_list, log.mask, log.count, strict=True):
            if click_list == row and int(mask) >> k & 1:
                total += count / THETA[k]
        return total

    assert_lists(targets.ipw_weights(log, THETA), document_sums(log, session_by_session))


@given(logs())
def test_sums_of_any_cells_equal_a_loop(log):
    cells = np.random.default_rng(0).normal(size=log.documents.shape)
    assert_lists(targets.sum_by_document(log, cells), document_sums(log, lambda r, k: cells[r, k]))


@given(logs())
def test_skylines_equal_a_loop(log):
    gamma = np.linspace(0.1, 1, 10)
    documents = log.documents
    assert_lists(
        targets.expected_clicks(log, gamma, THETA),
        document_sums(log, lambda r, k: THETA[k] * gamma[documents[r, k]]),
    )
    assert_lists(
        targets.expected_clicks(log, gamma, None),
        document_sums(log, lambda r, k: gamma[documents[r, k]]),
    )
    grades = np.arange(10, dtype=np.uint8) % 5
    gains = targets.grade_gains(log, grades)
    assert gains.rows.tolist() == targets.expected_clicks(log, gamma, None).rows.tolist()
    assert gains.weights.tolist() == [2.0 ** (row % 5) - 1 for row in gains.rows]


def in_order(log, order):
    """The same log with its lists in another order."""
    order = np.asarray(order)
    moved = {
        name: getattr(log, name)[order]
        for name in ("documents", "queries", "scores", "rounds", "randomized", "contexts")
    }
    place = np.argsort(order)[log.click_list]
    groups = np.argsort(place, kind="stable")
    return dataclasses.replace(
        log, **moved, click_list=place[groups], mask=log.mask[groups], count=log.count[groups]
    )


@given(logs(), st.data())
def test_the_order_of_lists_changes_no_bit(log, data):
    other = in_order(log, data.draw(st.permutations(range(len(log.queries)))))
    gamma = np.linspace(0.1, 1, 10)
    for target in (
        lambda log: targets.ipw_weights(log, THETA),
        lambda log: targets.expected_clicks(log, gamma, THETA),
        lambda log: targets.grade_gains(log, np.arange(10, dtype=np.uint8)),
    ):
        one, two = target(log), target(other)
        for name in ("rows", "query_ptr", "weights"):
            assert getattr(one, name).tobytes() == getattr(two, name).tobytes()


@given(logs(), logs())
def test_clicks_of_two_rounds_add_up(first, second):
    both = targets.ipw_weights(concatenate([first, second]), THETA)
    expected = dict.fromkeys(both.rows.tolist(), 0.0)
    for log in (first, second):
        lists = targets.ipw_weights(log, THETA)
        for row, weight in zip(lists.rows.tolist(), lists.weights, strict=True):
            expected[row] += weight
    np.testing.assert_allclose(both.weights, list(expected.values()), rtol=1e-12)


def test_longer_propensities_are_cut_and_shorter_ones_refused():
    log = make_log([[3, 1], [5, -1]], [(0, 3, 2), (1, 1, 1)])
    assert targets.ipw_weights(log, np.array([1, 0.5, 0.1])).weights.tolist() == [4, 2, 1]
    with pytest.raises(UserError, match=r"shows 2 positions, .* the first 1 only"):
        targets.ipw_weights(log, np.array([1.0]))
    with pytest.raises(UserError):
        targets.expected_clicks(log, np.ones(6), np.array([1.0]))


def test_an_empty_log_has_no_documents():
    log = make_log(np.zeros((0, 2), dtype=int))
    lists = targets.ipw_weights(log, THETA)
    assert (lists.rows.tolist(), lists.query_ptr.tolist(), lists.weights.tolist()) == ([], [0], [])

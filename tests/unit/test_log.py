"""The click log: sums against plain loops, and what survives the files."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toys import make_log

from ultrbench.simulation.log import (
    ClickLog,
    concatenate,
    log_files,
    read_log,
    read_rounds,
    write_log,
)

FIELDS = list(ClickLog.__dataclass_fields__)


def assert_equal_logs(left, right):
    for name in FIELDS:
        a, b = getattr(left, name), getattr(right, name)
        assert a.dtype == b.dtype, name
        np.testing.assert_array_equal(a, b, err_msg=name)


@st.composite
def logs(draw, width=6):
    """Logs of up to five ragged lists in the form that the simulator gives them."""
    lengths = draw(st.lists(st.integers(1, width), min_size=1, max_size=5))
    shown = max(lengths)
    documents = np.full((len(lengths), shown), -1)
    scores = np.full(documents.shape, np.nan)
    for row, length in enumerate(lengths):
        documents[row, :length] = draw(st.permutations(range(10 * row, 10 * row + length)))
        scores[row, :length] = draw(st.lists(st.floats(-9, 9), min_size=length, max_size=length))
    groups = sorted(
        (row, mask, draw(st.integers(1, 2**40)))
        for row, length in enumerate(lengths)
        for mask in draw(st.sets(st.integers(0, 2**length - 1), max_size=4))
    )
    return make_log(documents, groups, scores=scores, randomized=draw(st.booleans()))


@given(logs())
def test_sums_equal_plain_loops(log):
    clicks = np.zeros(log.documents.shape, dtype=int)
    sessions = np.zeros(len(log.queries), dtype=int)
    for row, mask, count in zip(log.click_list, log.mask, log.count, strict=True):
        sessions[row] += count
        for k in range(log.positions):
            clicks[row, k] += count * (int(mask) >> k & 1)
    np.testing.assert_array_equal(log.clicks, clicks)
    np.testing.assert_array_equal(log.sessions, sessions)
    assert log.clicks.dtype == log.sessions.dtype == np.int64
    assert not log.clicks[~log.shown].any()


@settings(deadline=None)
@given(logs())
def test_a_log_comes_back_from_its_files_and_equal_logs_are_equal_bytes(tmp_path_factory, log):
    folder = tmp_path_factory.mktemp("log")
    first, second = (log_files(folder / name, "train") for name in "ab")
    write_log(log, *first)
    read = read_log(*first)
    assert_equal_logs(read, log)
    write_log(read, *second)
    assert [f.read_bytes() for f in first] == [f.read_bytes() for f in second]


def test_an_empty_log_comes_back_empty(tmp_path):
    write_log(make_log(np.zeros((0, 1), dtype=int)), *log_files(tmp_path, "vali"))
    read = read_log(*log_files(tmp_path, "vali"))
    assert len(read.queries) == len(read.count) == 0
    assert read.clicks.shape == (0, 0)


@given(logs(), st.data())
def test_select_keeps_lists_with_their_clicks(log, data):
    kept = np.array(data.draw(st.lists(st.booleans(), min_size=len(log.queries),
                                       max_size=len(log.queries))))  # fmt: skip
    part = log.select(kept)
    np.testing.assert_array_equal(part.documents, log.documents[kept])
    np.testing.assert_array_equal(part.clicks, log.clicks[kept])
    np.testing.assert_array_equal(part.sessions, log.sessions[kept])
    for name in ("queries", "scores", "rounds", "randomized", "contexts"):
        np.testing.assert_array_equal(getattr(part, name), getattr(log, name)[kept])


@given(logs(width=3), logs(width=6))
def test_concatenate_pads_to_the_wider_log_and_keeps_every_click(left, right):
    both = concatenate([left, right])
    assert both.positions == max(left.positions, right.positions)
    first = np.arange(len(both.queries)) < len(left.queries)
    for part, log in ((both.select(first), left), (both.select(~first), right)):
        width = log.positions
        np.testing.assert_array_equal(part.documents[:, :width], log.documents)
        np.testing.assert_array_equal(part.scores[:, :width], log.scores)
        np.testing.assert_array_equal(part.clicks[:, :width], log.clicks)
        np.testing.assert_array_equal(part.queries, log.queries)
        assert (part.documents[:, width:] == -1).all()
        assert np.isnan(part.scores[:, width:]).all()


def test_one_log_alone_is_itself():
    log = make_log([[3, 1], [7, -1]], [(0, 2, 4), (1, 1, 1)])
    assert_equal_logs(concatenate([log]), log)


def test_rounds_are_read_in_the_order_given(tmp_path):
    log = make_log([[3, 1]], [(0, 2, 4)])
    for name, count in (("a", 4), ("b", 9)):
        write_log(log.with_clicks(log.click_list, log.mask, np.array([count])),
                  *log_files(tmp_path / name, "train"))  # fmt: skip
    assert read_rounds([tmp_path / "b", tmp_path / "a"], "train").clicks.tolist() == [
        [0, 9],
        [0, 4],
    ]


def test_sixty_three_positions_and_counts_up_to_2_to_the_53_are_exact(tmp_path):
    count = 2**53 - 1
    log = make_log([range(63)], [(0, 2**63 - 1, count)])
    assert (log.clicks == count).all()
    write_log(log, *log_files(tmp_path, "train"))
    assert_equal_logs(read_log(*log_files(tmp_path, "train")), log)


def test_other_sessions_do_not_inherit_sums():
    log = make_log([[3, 1]], [(0, 2, 4)])
    assert log.clicks.tolist() == [[0, 4]]
    other = log.with_clicks(np.array([0]), np.array([1], dtype=np.uint64), np.array([7]))
    assert (other.clicks.tolist(), other.sessions.tolist()) == ([[7, 0]], [7])
    assert log.clicks.tolist() == [[0, 4]]


@pytest.mark.parametrize("name", FIELDS)
def test_a_log_is_not_changed_in_place(name):
    with pytest.raises(AttributeError):
        setattr(make_log([[1]]), name, None)

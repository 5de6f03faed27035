# ruff: noqa: E501 - the table of faults reads best with a fault a line
"""Click logs of one's own: what is taken in, and what is refused with a sentence."""

import re
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from toys import make_split

from ultrbench.datasets.split import write_split
from ultrbench.errors import UserError
from ultrbench.simulation.external import read_external_log, read_external_truth
from ultrbench.simulation.log import ClickLog, log_files, read_log
from ultrbench.simulation.truth import read_truth
from ultrbench.stages.clicks import import_clicks

SPLIT = make_split([4, 2, 3])  # rows 0-3, 4-5, 6-8
DOCUMENTS = {10: [2, 0, 3], 20: [5, 4], 5: [6, 8, 7]}
QUERIES = {10: 0, 20: 1, 5: 2}


def valid():
    """The two tables of a log of three lists, as columns."""
    rows = [(i, k, d) for i, shown in DOCUMENTS.items() for k, d in enumerate(shown, start=1)]
    lists = {
        "list_id": [i for i, _, _ in rows],
        "round": [0] * 8,
        "randomized": [False] * 8,
        "query": [QUERIES[i] for i, _, _ in rows],
        "context": [0] * 8,
        "position": [k for _, k, _ in rows],
        "document": [d for _, _, d in rows],
        "policy_score": [1.0 / k for _, k, _ in rows],
    }
    clicks = {"list_id": [10, 10, 20, 5], "mask": [0, 5, 2, 1], "count": [100, 7, 3, 2]}
    return lists, clicks


def write(folder, lists, clicks):
    for path, columns in zip(log_files(folder, "train"), (lists, clicks), strict=True):
        pq.write_table(columns if isinstance(columns, pa.Table) else pa.table(columns), path)


def read(folder, lists, clicks):
    write(folder, lists, clicks)
    return read_external_log(*log_files(folder, "train"), SPLIT, required=True)


def test_a_valid_log_in_canonical_order(tmp_path):
    log = read(tmp_path, *valid())
    assert log.documents.tolist() == [[6, 8, 7], [2, 0, 3], [5, 4, -1]]
    assert log.queries.tolist() == [2, 0, 1]
    assert log.sessions.tolist() == [2, 107, 3]
    assert log.clicks.tolist() == [[2, 0, 0], [7, 0, 7], [0, 3, 0]]
    np.testing.assert_array_equal(log.scores[2], [1, 0.5, np.nan])
    kinds = [getattr(log, name).dtype.name for name in ClickLog.__dataclass_fields__]
    assert kinds == [
        "int64",
        "int64",
        "float64",
        "uint8",
        "bool",
        "uint8",
        "int64",
        "uint64",
        "int64",
    ]


def assert_same(one, two):
    for name in ClickLog.__dataclass_fields__:
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name), err_msg=name)


@pytest.mark.parametrize("seed", range(5))
def test_rows_may_stand_in_any_order_and_groups_be_split(tmp_path, seed):
    rng = np.random.default_rng(seed)
    expected = read(tmp_path, *valid())
    lists, clicks = (pd.DataFrame(columns) for columns in valid())
    clicks.loc[1, "count"] = 4
    clicks = pd.concat([clicks, pd.DataFrame({"list_id": [10], "mask": [5], "count": [3]})])
    for path, frame in zip(log_files(tmp_path, "train"), (lists, clicks), strict=True):
        frame.iloc[rng.permutation(len(frame))].to_parquet(path)  # with an index out of order
    assert_same(read_external_log(*log_files(tmp_path, "train"), SPLIT, required=True), expected)


def test_what_may_be_left_out_and_columns_nobody_asked_for(tmp_path):
    lists, clicks = valid()
    expected = read(tmp_path, lists | {"policy_score": [np.nan] * 8}, clicks)
    for name in ("round", "randomized", "context", "policy_score"):
        del lists[name]
    assert_same(read(tmp_path, lists | {"note": ["x"] * 8}, clicks), expected)


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint16(), pa.uint64(), pa.float16(), pa.float64()])
def test_whole_numbers_of_any_type_are_numbers(tmp_path, kind):
    expected = read(tmp_path, *valid())
    lists, clicks = valid()
    whole = {
        name: pa.array(values, kind)
        for name, values in lists.items()
        if name not in ("randomized", "policy_score")
    }
    assert_same(
        read(tmp_path, lists | whole, {n: pa.array(v, kind) for n, v in clicks.items()}), expected
    )


def changed(table, name, row, value):
    """A valid log with one value changed."""
    tables = valid()
    tables[table][name][row] = value
    return tables


def replaced(table, **columns):
    tables = valid()
    tables[table].update(columns)
    return tables


def without(table, name):
    tables = valid()
    del tables[table][name]
    return tables


LISTS, CLICKS = 0, 1
BAD = {  # name: (tables, words of the sentence, row or None)
    "mask beyond the list": (changed(CLICKS, "mask", 2, 4), "mask 4 .* beyond the end of list 20", 2),
    "mask far beyond": (changed(CLICKS, "mask", 0, 2**62), f"mask {2**62} .* list 10", 0),
    "mask with all bits": (replaced(CLICKS, mask=pa.array([0, 5, 2, 2**64 - 1], pa.uint64())), f"mask {2**64 - 1}", 3),
    "mask negative": (changed(CLICKS, "mask", 1, -1), "`mask` is -1, below 0", 1),
    "count zero": (changed(CLICKS, "count", 1, 0), "`count` is 0, below 1", 1),
    "count negative": (changed(CLICKS, "count", 3, -7), "`count` is -7, below 0", 3),
    "count too large": (changed(CLICKS, "count", 2, 2**53), r"`count` of 9007199254740992 .* 2\^53", 2),
    "counts too many": (replaced(CLICKS, count=[2**52] * 4), r"2\^53 sessions or more", 1),
    "counts that wrap round": (replaced(CLICKS, count=[2**63 - 1] * 4), r"2\^53", 0),
    "count beyond int64": (replaced(CLICKS, count=pa.array([1, 1, 2**63, 1], pa.uint64())), "`count` is 9223372036854775808, above", 2),
    "count a fraction": (changed(CLICKS, "count", 1, 7.5), "`count` is 7.5, a whole number", 1),
    "count NaN": (changed(CLICKS, "count", 2, np.nan), "`count` is nan, a whole number", 2),
    "count infinite": (changed(CLICKS, "count", 2, np.inf), "`count` is inf, a whole number", 2),
    "count missing": (changed(CLICKS, "count", 2, None), "`count` is missing", 2),
    "mask as inexact float": (replaced(CLICKS, mask=[0.0, 2.0**60, 2.0, 1.0]), "a whole number", 1),
    "count as text": (replaced(CLICKS, count=["1", "2", "3", "4"]), "column `count` holds string", None),
    "count as date": (replaced(CLICKS, count=pd.date_range("2020", periods=4)), "holds timestamp", None),
    "mask as lists": (replaced(CLICKS, mask=[[0], [1], [1], [0]]), "column `mask` holds list", None),
    "mask as bytes": (replaced(CLICKS, mask=[b"1"] * 4), "column `mask` holds binary", None),
    "mask as truth values": (replaced(CLICKS, mask=[True] * 4), "column `mask` holds bool", None),
    "count all missing": (replaced(CLICKS, count=pa.nulls(4)), "`count` is missing", 0),
    "unknown list": (changed(CLICKS, "list_id", 1, 11), "list 11 is not in the table of lists", 1),
    "unknown list above all": (changed(CLICKS, "list_id", 1, 2**60 + 1), f"list {2**60 + 1} is not", 1),
    "unknown list below all": (changed(CLICKS, "list_id", 3, 0), "list 0 is not", 3),
    "no clicks column": (without(CLICKS, "mask"), "no column `mask`; wanted are list_id, mask, count$", None),
    "no position column": (without(LISTS, "position"), "no column `position`.*may be left out", None),
    "no click at all": (replaced(CLICKS, mask=[0, 0, 0, 0]), "112 sessions and no click in all", None),
    "no session": (({**valid()[0]}, {n: pa.array([], pa.int64()) for n in valid()[1]}), "0 sessions and no click", None),
    "no list": (({n: pa.array([], pa.int64()) for n in valid()[0]}, valid()[1]), "shows no list", None),
    "document twice": (changed(LISTS, "document", 1, 2), "list 10 shows document 2 twice", 1),
    "document of another query": (changed(LISTS, "document", 4, 7), "document 7 does not belong to query 1", 4),
    "document unknown": (changed(LISTS, "document", 4, 9), "document 9 is unknown.* 0 to 8", 4),
    "document negative": (changed(LISTS, "document", 4, -1), "`document` is -1, below 0", 4),
    "document missing": (changed(LISTS, "document", 4, None), "`document` is missing", 4),
    "query unknown": (changed(LISTS, "query", 7, 3), "query 3 is unknown.* 0 to 2", 7),
    "two queries in a list": (changed(LISTS, "query", 1, 2), "does not belong to query 2", 1),
    "one list id for two queries": (replaced(LISTS, list_id=[10] * 5 + [5] * 3), "list 10 has several values of `query`", 0),
    "gap": (changed(LISTS, "position", 2, 4), "list 10 has position 4; its positions must run", 2),
    "position zero": (changed(LISTS, "position", 0, 0), "list 10 has position 0", 0),
    "position twice": (changed(LISTS, "position", 1, 1), "list 10 has position 1 twice", 1),
    "position missing": (changed(LISTS, "position", 1, None), "`position` is missing", 1),
    "position too large": (changed(LISTS, "position", 1, 300), "`position` is 300, above 255", 1),
    "position as text": (replaced(LISTS, position=list("12312123")), "`position` holds string", None),
    "later round": (replaced(LISTS, round=[1] * 8), "round 1: .*round 0", 0),
    "two rounds in a list": (changed(LISTS, "round", 1, 3), "several values of `round`", 0),
    "randomized neither": (replaced(LISTS, randomized=[2] * 8), "`randomized` is 2, above 1", 0),
    "randomized in part": (changed(LISTS, "randomized", 1, True), "several values of `randomized`", 0),
    "context too large": (replaced(LISTS, context=[0] * 7 + [256]), "`context` is 256, above 255", 7),
    "score infinite": (changed(LISTS, "policy_score", 3, np.inf), "`policy_score` is inf", 3),
    "score beyond squares": (changed(LISTS, "policy_score", 3, -1e155), r"`policy_score` is -1e\+155, beyond 1e\+100", 3),
    "score as text": (replaced(LISTS, policy_score=["1"] * 8), "`policy_score` holds string", None),
    "list id fraction": (replaced(LISTS, list_id=[9.5] + [10.0] * 7), "`list_id` is 9.5", 0),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_a_fault_is_refused_with_file_and_row(tmp_path, name):
    tables, words, row = BAD[name]
    with pytest.raises(UserError) as caught:
        read(tmp_path, *tables)
    message = str(caught.value)
    assert re.search(words, message), message
    assert message.startswith(str(tmp_path / "train."))
    if row is not None:
        assert f"parquet: row {row} (the first is 0): " in message


def test_a_list_longer_than_a_mask_is_refused(tmp_path):
    split = make_split([70])
    lists = {
        "list_id": [1] * 64, "query": [0] * 64, "position": range(1, 65), "document": range(64),
    }  # fmt: skip
    write(tmp_path, lists, {"list_id": [1], "mask": [1], "count": [1]})
    with pytest.raises(UserError, match="list 1 has more than 63 positions"):
        read_external_log(*log_files(tmp_path, "train"), split, required=True)


def test_a_column_twice_is_refused(tmp_path):
    lists, clicks = valid()
    table = pa.table(clicks)
    with pytest.raises(UserError, match="2 columns `mask`"):
        read(tmp_path, lists, table.append_column("mask", pa.array([1] * 4)))


@pytest.mark.parametrize(
    "content", [b"", b"PAR1", b"list_id,mask\n1,2\n", b"PAR1" + bytes(99) + b"PAR1"]
)
def test_another_kind_of_file_is_refused(tmp_path, content):
    write(tmp_path, *valid())
    log_files(tmp_path, "train")[1].write_bytes(content)
    with pytest.raises(UserError, match=r"train\.clicks\.parquet: not a readable parquet file"):
        read_external_log(*log_files(tmp_path, "train"), SPLIT, required=True)


@pytest.mark.parametrize("lost", [0, 1])
def test_an_absent_file_or_a_folder_in_its_place_is_refused(tmp_path, lost):
    write(tmp_path, *valid())
    path = log_files(tmp_path, "train")[lost]
    path.unlink()
    for required in (True, False):
        with pytest.raises(UserError, match=r"parquet: no such file; a click log is"):
            read_external_log(*log_files(tmp_path, "train"), SPLIT, required=required)
    path.mkdir()
    with pytest.raises(UserError, match="no such file"):
        read_external_log(*log_files(tmp_path, "train"), SPLIT, required=True)


def test_a_validation_log_may_be_absent_altogether(tmp_path):
    log = read_external_log(*log_files(tmp_path, "vali"), SPLIT, required=False)
    assert len(log.queries) == 0
    with pytest.raises(UserError):
        read_external_log(*log_files(tmp_path, "train"), SPLIT, required=True)


VALUES = st.one_of(
    st.integers(-3, 12),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(width=64),
    st.none(),
    st.booleans(),
    st.text(max_size=2),
    st.lists(st.integers(0, 1), max_size=2),
)


@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.data())
def test_a_log_with_random_changes_is_sound_or_refused(tmp_path, data):
    tables = [pa.table(columns) for columns in valid()]
    for _ in range(data.draw(st.integers(1, 3))):
        which = data.draw(st.integers(0, 1))
        table = tables[which]
        name = data.draw(st.sampled_from(table.column_names))
        action = data.draw(
            st.sampled_from(["cell", "cell", "cell", "fill", "drop", "lose", "repeat", "move"])
        )
        rows = list(range(len(table)))
        column = table.schema.get_field_index(name)
        if action in ("cell", "fill"):
            values = table.column(column).to_pylist()
            value = data.draw(VALUES)
            if action == "cell" and rows:
                rows = data.draw(st.lists(st.sampled_from(rows), min_size=1, max_size=2))
            for row in rows:
                values[row] = value
            try:
                tables[which] = table.set_column(column, name, pa.array(values))
            except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
                continue  # no parquet table holds such a mixture
        elif action == "drop" and table.num_columns > 1:
            tables[which] = table.remove_column(column)
        elif rows:
            if action == "lose":
                rows = rows[: data.draw(st.integers(0, len(rows)))]
            elif action == "repeat":
                rows = [*rows, data.draw(st.sampled_from(rows))]
            else:
                rows = data.draw(st.permutations(rows))
            tables[which] = table.take(pa.array(rows, pa.int64()))
    write(tmp_path, *tables)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            log = read_external_log(*log_files(tmp_path, "train"), SPLIT, required=True)
        except UserError as error:
            assert str(error).startswith(str(tmp_path))
            return
    shown = log.shown
    assert (SPLIT.query_of_row[log.documents] == log.queries[:, None])[shown].all()
    assert all(len(set(row[row >= 0])) == (row >= 0).sum() > 0 for row in log.documents)
    assert not log.clicks[~shown].any()
    assert (log.clicks <= log.sessions[:, None]).all()
    assert log.clicks.sum() > 0
    total = tables[1].column("count").to_numpy().astype(float).sum()
    assert log.sessions.sum() == total


@settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.integers(0, 1), st.floats(0, 1, exclude_max=True), st.integers(0, 255), st.booleans())
def test_a_file_with_a_wrong_byte_or_a_cut_end_is_sound_or_refused(tmp_path, which, at, byte, cut):
    write(tmp_path, *valid())
    path = log_files(tmp_path, "train")[which]
    content = bytearray(path.read_bytes())
    place = int(at * len(content))
    path.write_bytes(
        content[:place] if cut else content[:place] + bytes([byte]) + content[place + 1 :]
    )
    try:
        log = read_external_log(*log_files(tmp_path, "train"), SPLIT, required=True)
    except UserError:
        return
    assert not log.clicks[~log.shown].any()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "wanted is a table position,theta"),
        ("theta\n0.5\n", "wanted is a table position,theta"),
        ("position,theta\n1,x\n", "wanted is a table position,theta"),
        ("position,theta\n1,\n", "theta at position 1 is nan"),
        ("position,theta\n1,0.5\n2,0\n", "theta at position 2 is 0.0"),
        ("position,theta\n1,1.5\n", "theta at position 1 is 1.5"),
        ("position,theta\n1,1e-310\n2,1\n", "theta at position 1 is 1e-310"),
        ("position,theta\n1,-0.5\n", "theta at position 1 is -0.5"),
        ("position,theta\n1,inf\n", "theta at position 1 is inf"),
        ("position,theta\n0,0.5\n", "positions must be 1, 2, 3"),
        ("position,theta\n1,0.5\n3,0.5\n", "positions must be 1, 2, 3"),
        ("position,theta\n1.5,0.5\n", "positions must be 1, 2, 3"),
        ("position,theta\n99999999999999999999,0.5\n", "positions must be 1, 2, 3"),
        ("position,theta\n,0.5\n", "positions must be 1, 2, 3"),
        ("position,theta\n\x00\n", "truth.csv"),
        ("position,theta\n1,1,00\n2,1,25\n", "or a line has more or fewer cells"),
        ("position,theta,theta\n1,0.9,0.3\n", "a column stands twice"),
        ("position,theta,alpha,alpha\n1,0.9,1,2\n", "a column stands twice"),
        ("position,theta,continuation\n1,0.9,5\n", "continuation at position 1 is 5"),
        ("position,theta,beta\n1,0.9,-7\n", "beta at position 1 is -7.0; 0 to 1 is wanted"),
        ("position,theta,alpha\n1,0.9,1.1\n", "alpha at position 1 is 1.1; -1 to 1 is wanted"),
        ("position,theta,by_position\n1,1,\n2,1,no\n", "by_position must be true or false, got 'no'"),
    ],
)  # fmt: skip
def test_a_wrong_truth_is_refused(tmp_path, text, words):
    path = tmp_path / "truth.csv"
    path.write_text(text)
    with pytest.raises(UserError, match=words):
        read_external_truth(path)


@pytest.mark.parametrize("content", [b"\xff\xfe\x00\x01", b"PAR1" + bytes(range(256))])
def test_a_truth_that_is_no_text_is_refused(tmp_path, content):
    (tmp_path / "truth.csv").write_bytes(content)
    with pytest.raises(UserError, match=r"truth\.csv"):
        read_external_truth(tmp_path / "truth.csv")
    (tmp_path / "folder").mkdir()
    with pytest.raises(UserError, match="folder"):
        read_external_truth(tmp_path / "folder")


@pytest.fixture
def dataset(tmp_path):
    for name in ("train", "vali", "test"):
        write_split(SPLIT, tmp_path / "data", name)
    return tmp_path / "data"


def test_a_log_of_ones_own_takes_the_place_of_round_0(tmp_path, dataset):
    source, out = tmp_path / "own", tmp_path / "out"
    source.mkdir()
    expected = read(source, *valid())
    import_clicks(dataset, source, out)
    assert_same(read_log(*log_files(out, "train")), expected)
    for empty in ("vali", "test"):
        assert len(read_log(*log_files(out, empty)).queries) == 0
    assert read_truth([out / "truth.csv"]) is None
    (source / "truth.csv").write_text("position,theta\n1,0.1\n2,0.30000000000000004\n3,1\n4,0.5\n")
    import_clicks(dataset, source, out)
    assert read_truth([out / "truth.csv"]).tolist() == [0.1, 0.30000000000000004, 1, 0.5]


def test_a_truth_or_a_validation_log_that_does_not_fit_is_refused(tmp_path, dataset):
    source = tmp_path / "own"
    source.mkdir()
    write(source, *valid())
    (source / "truth.csv").write_text("position,theta\n1,0.5\n2,0.4\n")
    with pytest.raises(UserError, match="ends at position 2, the log shows 3"):
        import_clicks(dataset, source, tmp_path / "out")
    (source / "truth.csv").unlink()
    lists = {"list_id": [1] * 4, "query": [0] * 4, "position": [1, 2, 3, 4], "document": range(4)}
    for path, columns in zip(
        log_files(source, "vali"), (lists, {"list_id": [1], "mask": [1], "count": [1]}), strict=True
    ):
        pq.write_table(pa.table(columns), path)
    with pytest.raises(UserError, match="log of vali shows 4 positions, that of train 3"):
        import_clicks(dataset, source, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_real_folder_name_may_look_like_a_partition(tmp_path):
    folder = Path(tmp_path / "mask=3")
    folder.mkdir()
    assert read(folder, *valid()).clicks.sum() == 2 + 14 + 3

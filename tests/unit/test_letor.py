"""The LETOR reader, against scikit-learn's on real text and against the quirks of the format."""

import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ultrbench.datasets import letor
from ultrbench.datasets.letor import read_letor
from ultrbench.errors import UserError

SLICE = Path(__file__).parents[3] / "shared" / "data" / "mslr-web10k-slice.zip"


def read(folder: Path, text: str | bytes, features: int = 5, ymax: int = 4):
    path = folder / "train.txt"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_letor(path, features, ymax)


def test_comments_blank_lines_crlf_and_latin1_are_read(tmp_path):
    text = b"# head\r\n\r\n2 qid:1 1:0.5 5:-2e3 # caf\xe9 qid:9 a_b\r\n  \n0 qid:1\n1.0 qid:2 3:7"
    split, missing = read(tmp_path, text)
    assert split.features.tolist() == [[0.5, 0, 0, 0, -2000], [0] * 5, [0, 0, 7, 0, 0]]
    assert split.features.dtype == np.float32
    assert split.grades.tolist() == [2, 0, 1]
    assert split.query_ptr.tolist() == [0, 2, 3]
    assert split.query_ids.tolist() == ["1", "2"]
    assert missing == 0


@pytest.mark.parametrize("columns", [1, 3, 40])
def test_lines_of_a_query_come_together_in_file_order(tmp_path, monkeypatch, columns):
    monkeypatch.setattr(letor, "_COLUMNS_AT_A_TIME", columns)
    lines = [(30, 1), (7, 2), (30, 3), (-5, 4), (7, 5), (30, 6)]
    text = "".join(f"0 qid:{query} 1:{value} 5:{-value}\n" for query, value in lines)
    split, _ = read(tmp_path, text)
    assert split.query_ids.tolist() == ["30", "7", "-5"]
    assert split.features[:, 0].tolist() == [1, 3, 6, 2, 5, 4]
    assert split.features[:, 4].tolist() == [-1, -3, -6, -2, -5, -4]
    assert split.query_ptr.tolist() == [0, 3, 5, 6]


def test_values_beyond_float32_become_nan_and_are_counted(tmp_path):
    largest = float(np.finfo(np.float32).max)
    text = f"0 qid:1 1:1.79e308 2:-1e39 3:{largest!r} 4:nan 5:1e-60\n"
    split, missing = read(tmp_path, text)
    assert np.array_equal(split.features[0], [np.nan, np.nan, largest, np.nan, 0], equal_nan=True)
    assert missing == 3


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("5 qid:1 1:1", "the grade is '5'; give a whole number from 0 to 4."),
        ("-1 qid:1 1:1", "the grade is '-1'"),
        ("1.5 qid:1 1:1", "the grade is '1.5'"),
        ("nan qid:1 1:1", "the grade is 'nan'"),
        ("good qid:1 1:1", "the grade is 'good'"),
        ("\ufeff1 qid:1 1:1", "the grade is"),
        ("1 1:1", "the second field must be the query"),
        ("1", "the second field must be the query"),
        ("1 1:1 qid:1", "the second field must be the query"),
        ("1 qid:x 1:1", "the query is 'qid:x'"),
        ("1 qid: 1:1", "the query is 'qid:'"),
        ("1 qid:99999999999999999999 1:1", "the query is"),
        ("1 qid:1 0:1", "the feature index 0 is outside 1..5"),
        ("1 qid:1 6:1", "the feature index 6 is outside 1..5, the registry's width"),
        ("1 qid:1 2:1 1:1", "the feature index 1 follows 2"),
        ("1 qid:1 2:1 2:1", "the feature index 2 follows 2"),
        ("1 qid:1 2", "'2' is not INDEX:VALUE"),
        ("1 qid:1 2:", "'2:' is not INDEX:VALUE"),
        ("1 qid:1 a:2", "'a:2' is not INDEX:VALUE"),
        ("1 qid:1 1:2:3", "'1:2:3' is not INDEX:VALUE"),
        ("1 qid:1 1:1_0", "'1:1_0' is not INDEX:VALUE"),
        ("1 qid:1 1:\0", "is not INDEX:VALUE"),
        ("1 qid:1\0 1:1", "the query is"),
        (b"1 qid:1 1:1\x85", "'1:1\\x85' is not INDEX:VALUE"),
        (b"1 qid:1 2\xa0:1", "is not INDEX:VALUE"),
        (b"1 qid:1\xa01:1", "the query is"),
        ("1 qid2:1 1:1", "the second field must be the query"),
        ("1 qid:\u0661 1:1", "the query is"),
        ("1 qid:1 \xb2:1", "is not INDEX:VALUE"),
        ("1 qid:1 1:1\r1 qid:1 1:2", "a carriage return inside the line"),
        ("1 qid:1 1:1 # docid = a\r1 qid:1 1:2", "a carriage return inside the line"),
    ],
)
@pytest.mark.parametrize("piece", [16, 1 << 20])
def test_a_malformed_line_is_named(tmp_path, monkeypatch, line, fault, piece):
    line = line if isinstance(line, bytes) else line.encode()
    monkeypatch.setattr(letor, "PIECE_BYTES", max(piece, len(line) + 1))
    with pytest.raises(UserError) as raised:
        read(tmp_path, b"# head\n0 qid:1 1:1\n\n" + line + b"\n0 qid:1 1:1\n")
    assert str(raised.value).startswith(f"{tmp_path / 'train.txt'}:4: ")
    assert fault in str(raised.value)


@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment\n"])
def test_a_file_without_documents_is_refused(tmp_path, text):
    with pytest.raises(UserError, match="the file has no documents"):
        read(tmp_path, text)


def test_a_line_without_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(letor, "PIECE_BYTES", 64)
    with pytest.raises(UserError, match=r"train.txt:2: the line is longer"):
        read(tmp_path, "0 qid:1 1:1\n" + "1" * 1000)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_pieces_change_nothing(tmp_path_factory, data):
    rows = data.draw(
        st.lists(
            st.tuples(
                st.integers(0, 4),
                st.integers(1, 4),
                st.dictionaries(st.integers(1, 5), st.floats(-1e6, 1e6, width=32), max_size=5),
            ),
            min_size=1,
            max_size=20,
        )
    )
    text = "".join(
        f"{grade} qid:{query} " + " ".join(f"{i}:{values[i]!r}" for i in sorted(values)) + "\n"
        for grade, query, values in rows
    )
    seen = list(dict.fromkeys(query for _, query, _ in rows))
    ordered = sorted(rows, key=lambda row: seen.index(row[1]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(letor, "PIECE_BYTES", data.draw(st.integers(150, 400)))
        split, _ = read(tmp_path_factory.mktemp("pieces"), text)
    assert split.grades.tolist() == [grade for grade, _, _ in ordered]
    assert split.query_ids.tolist() == [str(query) for query in seen]
    assert split.features.tolist() == [[v.get(i, 0.0) for i in range(1, 6)] for _, _, v in ordered]


def test_the_real_slice_equals_scikit_learns_reading(tmp_path, monkeypatch):
    if not SLICE.exists():
        pytest.skip(f"{SLICE.name} is not in ../shared/data beside the repository")
    from sklearn.datasets import load_svmlight_file

    monkeypatch.setattr(letor, "PIECE_BYTES", 1 << 20)
    zipfile.ZipFile(SLICE).extractall(tmp_path)
    for name, queries, documents in (("train", 35, 3675), ("vali", 8, 1325), ("test", 43, 5000)):
        path = tmp_path / "Fold1" / f"{name}.txt"
        split, missing = read_letor(path, features=136, ymax=4)
        matrix, grades, ids = load_svmlight_file(
            str(path), n_features=136, dtype=np.float32, query_id=True, zero_based=False
        )
        assert (len(split.query_ids), len(split.grades), missing) == (queries, documents, 0)
        assert np.array_equal(split.features, matrix.toarray())
        assert np.array_equal(split.grades, grades)
        assert np.array_equal(split.query_ids[split.query_of_row], ids.astype(str))

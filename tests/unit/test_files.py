"""Random streams, atomic files, and splits on disk."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from toys import make_split

from ultrbench import files
from ultrbench.datasets.split import read_split, split_files, write_split
from ultrbench.errors import UserError
from ultrbench.seeding import stream


def first_draw(seed, *names):
    return stream(seed, *names).integers(2**63)


def test_a_stream_is_a_function_of_seed_and_names():
    assert first_draw(3, "sessions", 1) == first_draw(3, "sessions", 1)
    keys = [
        (3,), (4,), (3, 0), (3, 0, 0), (3, "sessions"), (3, "sessions", 0), (3, "sessions", 0, 0),
        (3, "sessions", 1), (3, 1, "sessions"), (3, "session", "s"), (0, "sessions"),
    ]  # fmt: skip
    assert len({first_draw(*key) for key in keys}) == len(keys)


name = st.text(min_size=1, max_size=3) | st.integers(0, 3)


@given(st.tuples(st.integers(0, 3), st.lists(name, max_size=4)), st.lists(name, max_size=4))
def test_streams_of_other_names_differ(key, names):
    seed, others = key
    same = [type(a) for a in names] == [type(b) for b in others] and names == others
    assert (first_draw(seed, *names) == first_draw(seed, *others)) == same


def test_a_block_that_fails_leaves_the_old_file_and_no_half_one(tmp_path):
    target = tmp_path / "deep" / "a.json"
    files.write_text(target, "old")
    with pytest.raises(RuntimeError, match="stop"), files.replacing(target) as half:
        half.write_text("new")
        raise RuntimeError("stop")
    assert target.read_text() == "old"
    assert os.listdir(target.parent) == ["a.json"]  # noqa: PTH208


def test_the_half_file_stands_beside_its_target_and_is_no_match_for_its_name(tmp_path):
    with files.replacing(tmp_path / "theta.csv") as half:
        assert half.parent == tmp_path
        assert half.suffix == ".csv"
        assert half.name.startswith(".")
        half.write_text("x")
        assert not (tmp_path / "theta.csv").exists()
    assert (tmp_path / "theta.csv").read_text() == "x"


def test_what_a_killed_process_left_is_taken_away(tmp_path):
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    kept = [f".theta.{os.getppid()}.partial.csv", ".other.1.partial.csv", "theta.csv"]
    for name in [f".theta.{gone.pid}.partial.csv", *kept]:
        (tmp_path / name).write_text("half")
    (tmp_path / f".unpacked.{gone.pid}.partial").mkdir()
    (tmp_path / f".unpacked.{gone.pid}.partial" / "train.txt").write_text("half")
    files.write_text(tmp_path / "theta.csv", "whole")
    assert files.half_of(tmp_path / "unpacked").parent == tmp_path
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(kept)


def test_what_a_process_of_the_same_number_left_is_taken_away(tmp_path):
    """In a container every job may be process 27; LightGBM writes over no file."""
    own = f".{os.getpid()}.partial"
    (tmp_path / f".new{own}").mkdir()
    (tmp_path / f".a{own}.bin").write_text("half")
    files.half_of(tmp_path / "new").mkdir()
    assert not files.half_of(tmp_path / "a.bin").exists()


def test_text_is_written_as_it_is(tmp_path):
    files.write_text(tmp_path / "a", "nDCG\r\nü\n")
    assert (tmp_path / "a").read_bytes() == "nDCG\r\nü\n".encode()


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {"a": [1, float("-inf")]}])
def test_json_without_numbers_is_refused_and_not_written(tmp_path, value):
    with pytest.raises(ValueError):
        files.write_json(tmp_path / "a.json", value)
    assert list(tmp_path.iterdir()) == []


def test_json_keeps_order_and_numbers(tmp_path):
    value = {"z": 0.1 + 0.2, "a": [True, None, 2**60, "ü"]}
    files.write_json(tmp_path / "a.json", value)
    read = files.read_json(tmp_path / "a.json")
    assert read == value and list(read) == ["z", "a"]
    assert json.loads((tmp_path / "a.json").read_text("utf-8")) == value


def test_equal_arrays_give_equal_bytes_and_come_back(tmp_path):
    arrays = {
        "a": np.arange(5, dtype=np.uint64), "b": np.array(["x", "ä"]), "c": np.full((2, 0), np.nan),
        "d": np.array(0.1),
    }  # fmt: skip
    for name in ("1.npz", "2.npz"):
        files.write_arrays(tmp_path / name, arrays)
    assert (tmp_path / "1.npz").read_bytes() == (tmp_path / "2.npz").read_bytes()
    read = files.read_arrays(tmp_path / "1.npz")
    assert list(read) == list(arrays)
    for key, array in arrays.items():
        assert read[key].dtype == array.dtype
        np.testing.assert_array_equal(read[key], array)


def test_pickles_are_neither_written_nor_read(tmp_path):
    with pytest.raises(ValueError):
        files.write_arrays(tmp_path / "a.npz", {"a": np.array([{}], dtype=object)})
    assert list(tmp_path.iterdir()) == []
    np.savez(tmp_path / "b.npz", a=np.array([{}], dtype=object))
    with pytest.raises(UserError, match=r"b\.npz cannot be read as arrays"):
        files.read_arrays(tmp_path / "b.npz")


def test_a_split_comes_back_with_its_features_on_disk(tmp_path):
    split = make_split([3, 1, 4])
    for folder in ("1", "2"):
        write_split(split, tmp_path / folder, "vali")
    read = read_split(tmp_path / "1", "vali")
    assert isinstance(read.features, np.memmap)
    for name in ("features", "grades", "query_ptr", "query_ids"):
        array = getattr(read, name)
        assert array.dtype == getattr(split, name).dtype
        np.testing.assert_array_equal(array, getattr(split, name))
    assert read.lengths.tolist() == [3, 1, 4]
    assert read.query_of_row.tolist() == [0, 0, 0, 1, 2, 2, 2, 2]
    for one, two in zip(*(split_files(tmp_path / f, "vali") for f in "12"), strict=True):
        assert one.read_bytes() == two.read_bytes()

"""The data stage: from a registry entry to split files, with every check on the way."""

import hashlib
import zipfile
from pathlib import Path

import numpy as np
import pytest
import yaml

from ultrbench.datasets.registry import load_registry
from ultrbench.datasets.split import SPLITS, read_split
from ultrbench.errors import UserError
from ultrbench.files import read_json
from ultrbench.stages.data import prepare_dataset

ROOT = Path(__file__).parents[2]
TEXTS = {
    "train": "2 qid:1 1:0.5\n0 qid:1 3:1e39\n0 qid:2 2:1\n0 qid:2\n",
    "vali": "1 qid:3 1:1\n",
    "test": "0 qid:4 1:1\n2 qid:5 1:2\n",
}


@pytest.fixture
def entry(tmp_path):
    """A registry entry of a small archive in the downloads folder."""
    with zipfile.ZipFile(tmp_path / "mine.zip", "w") as archive:
        for split, text in TEXTS.items():
            archive.writestr(f"Fold1/{split}.txt", text)
    return {
        "kind": "letor",
        "ymax": 2,
        "features": 3,
        "path": ["absent.zip", "mine.zip"],
        "fold": 1,
        "files": {split: f"Fold{{fold}}/{split}.txt" for split in SPLITS},
    }


def refusal(entry, folder) -> str:
    with pytest.raises(UserError) as raised:
        prepare_dataset(entry, "mine", folder, folder / "out")
    assert not (folder / "out" / "dataset.json").exists()
    assert not list((folder / "out").glob(".*"))
    assert (folder / "mine.zip").exists()
    return str(raised.value)


def test_an_archive_becomes_splits(entry, tmp_path):
    prepare_dataset(entry, "mine", tmp_path, tmp_path / "out")
    train = read_split(tmp_path / "out", "train")
    assert np.array_equal(
        train.features, [[0.5, 0, 0], [0, 0, np.nan], [0, 1, 0], [0, 0, 0]], equal_nan=True
    )
    summary = read_json(tmp_path / "out" / "dataset.json")
    assert summary["splits"]["train"] == {
        "queries": 2,
        "documents": 4,
        "grade_shares": [3 / 4, 0.0, 1 / 4],
        "queries_without_relevant": 1,
        "values_beyond_float32": 1,
    }
    assert summary["sha256"]["vali"] == hashlib.sha256(TEXTS["vali"].encode()).hexdigest()
    assert set(summary["sha256"]) == {"mine.zip", *SPLITS}
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == sorted(
        ["dataset.json", *(f"{s}.{kind}" for s in SPLITS for kind in ("features.npy", "lists.npz"))]
    )


def test_equal_sources_give_equal_bytes(entry, tmp_path):
    for out in ("a", "b"):
        prepare_dataset(entry, "mine", tmp_path, tmp_path / out)
    for path in (tmp_path / "a").iterdir():
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()


def test_a_wrong_archive_checksum_is_said(entry, tmp_path):
    message = refusal(entry | {"sha256": {"mine.zip": "0" * 64}}, tmp_path)
    found = hashlib.sha256((tmp_path / "mine.zip").read_bytes()).hexdigest()
    assert f"mine.zip: the sha256 checksum is {found}, the registry expects 0000" in message


def test_a_wrong_file_checksum_is_said(entry, tmp_path):
    message = refusal(entry | {"file_sha256": {"vali": "0" * 64}}, tmp_path)
    assert "mine.zip (Fold{fold}/vali.txt)" not in message
    assert "mine.zip (Fold1/vali.txt): the sha256 checksum is" in message


def test_a_malformed_line_is_named_in_its_archive(entry, tmp_path):
    message = refusal(entry | {"features": 2}, tmp_path)
    assert message.startswith(f"{tmp_path}/mine.zip/Fold1/train.txt:2: the feature index 3")


@pytest.mark.parametrize(
    ("counts", "sentence"),
    [
        ({"train": {"queries": 3}}, "mine: train has 2 queries, the registry expects 3."),
        ({"test": {"documents": 9}}, "mine: test has 2 documents, the registry expects 9."),
    ],
)
def test_other_counts_are_refused(entry, tmp_path, counts, sentence):
    assert sentence in refusal(entry | {"counts": counts}, tmp_path)
    assert sentence in refusal(entry | {"counts": {"fold": 1} | counts}, tmp_path)


def test_counts_of_another_fold_are_not_checked(entry, tmp_path):
    counts = {"fold": 2, "train": {"queries": 99}}
    prepare_dataset(entry | {"counts": counts}, "mine", tmp_path, tmp_path / "out")


def test_a_query_in_two_splits_is_refused(entry, tmp_path):
    folder = tmp_path / "Fold1"
    folder.mkdir()
    for split, text in TEXTS.items():
        (folder / f"{split}.txt").write_text(text.replace("qid:4", "qid:2"))
    message = refusal(entry | {"path": ["Fold1/.."]}, tmp_path)
    assert "the query 2 is both in train and in test" in message


def test_an_absent_source_says_what_to_do(entry, tmp_path):
    message = refusal(entry | {"path": ["a.zip", "b"], "obtain": "Ask X."}, tmp_path)
    assert message == (
        f"The data set mine is not there. Ask X. Put it at {tmp_path}/a.zip or {tmp_path}/b."
    )


def test_the_slice_becomes_splits(tmp_path):
    schema = yaml.safe_load((ROOT / "workflow/schemas/datasets.schema.yaml").read_text())
    entry = load_registry(ROOT / "config/datasets.yaml", schema)["mslr-web10k-slice"]
    if not (ROOT.parent / "shared/data/mslr-web10k-slice.zip").exists():
        pytest.skip("mslr-web10k-slice.zip is not in ../shared/data beside the repository")
    prepare_dataset(entry, "mslr-web10k-slice", ROOT / "downloads", tmp_path)
    splits = read_json(tmp_path / "dataset.json")["splits"]
    assert [splits[s]["queries"] for s in SPLITS] == [35, 8, 43]
    assert [splits[s]["documents"] for s in SPLITS] == [3675, 1325, 5000]

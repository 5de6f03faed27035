"""Bins on disk: the fits of a matrix, whichever way its bins came."""

import resource
from pathlib import Path

import numpy as np
import pytest

from ultrbench.errors import UserError
from ultrbench.ranking import boosting
from ultrbench.ranking.binned import BinnedFeatures, bin_documents, read_binned, write_binned
from ultrbench.ranking.model import BASE_PARAMETERS
from ultrbench.ranking.targets import TrainingLists

SIZE = {"trees": 5, "leaves": 5, "learning_rate": 0.3, "min_data_in_leaf": 2, "seed": 1}


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """Features of both splits, and the bins of 300 and 60 of their documents."""
    folder, rng = tmp_path_factory.mktemp("binned"), np.random.default_rng(0)
    train = rng.random((400, 3)).astype(np.float32), np.arange(50, 350)
    vali = rng.random((100, 3)).astype(np.float32), np.arange(20, 80)
    files = folder / "train.bin", folder / "vali.bin"
    write_binned(*files, train, vali, seed=1)
    return files, train, vali


def fit(features, validation_features, rows, watched) -> boosting.Fit:
    gains = np.linspace(0, 3, len(watched)).reshape(-1, 10)
    lists = boosting.ValidationLists(watched.reshape(-1, 10), gains, None)
    weights = np.random.default_rng(1).random(len(rows))
    return boosting.train(
        features,
        TrainingLists(rows, np.arange(0, len(rows) + 1, 10), weights),
        objective="softmax",
        validation={"grades": lists},
        validation_features=validation_features,
        patience=9,
        **SIZE,
    )


def test_all_binned_documents_give_the_fit_of_their_matrix(world):
    files, train, vali = world
    bins = read_binned(*files, train, vali)
    assert fit(*bins, train[1], vali[1]) == fit(train[0], vali[0], train[1], vali[1])


def test_some_of_the_binned_documents_are_trained_on_in_the_same_bins(world):
    files, train, vali = world
    bins = read_binned(*files, train, vali)
    rows, watched = train[1][100:200], vali[1][10:40]
    result = fit(*bins, rows, watched)
    assert result != fit(
        train[0], vali[0], rows, watched
    )  # whose bins are those of fewer documents
    data = bin_documents(train[0], train[1], BASE_PARAMETERS)
    again = BinnedFeatures(train[0], train[1], data)
    assert fit(again, vali[0], rows, watched) == result


def test_documents_without_bins_are_binned_afresh_and_validated_alike(world):
    files, train, vali = world
    bins = read_binned(*files, train, vali)
    for rows, watched in (
        (np.arange(200), vali[1][:30]),
        (train[1], np.arange(30)),
        (train[1][:100], np.arange(30)),
    ):
        result = fit(*bins, rows, watched)
        assert result.curve == fit(bins[0], vali[0], rows, watched).curve
    assert fit(*bins, np.arange(200), vali[1]) == fit(train[0], vali[0], np.arange(200), vali[1])


def test_the_same_features_give_the_same_files(world, tmp_path):
    files, train, vali = world
    again = tmp_path / "train.bin", tmp_path / "vali.bin"
    write_binned(*again, train, vali, seed=1)
    assert [a.read_bytes() for a in again] == [f.read_bytes() for f in files]


def test_files_that_cannot_be_read_are_a_sentence(world, tmp_path):
    files, train, vali = world
    for text in (b"", b"lightgbm of another time", files[0].read_bytes()[:2000]):
        broken = tmp_path / "train.bin"
        broken.write_bytes(text)
        with pytest.raises(UserError, match=r"train\.bin: .*delete it"):
            read_binned(broken, files[1], train, vali)
    with pytest.raises(UserError, match=r"train\.bin: 300 documents instead of 299"):
        read_binned(*files, (train[0], train[1][1:]), vali)


def test_a_full_disk_leaves_no_half_file(world, tmp_path):
    """LightGBM says nothing of what the disk does not take."""
    _, train, vali = world
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        with pytest.raises(UserError, match=r"train\.bin: the disk took no more"):
            write_binned(tmp_path / "train.bin", tmp_path / "vali.bin", train, vali, seed=1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="a folder that takes no files")
def test_a_folder_that_takes_no_files_is_named_by_the_system(world):
    _, train, vali = world
    with pytest.raises(OSError, match="/proc/self"):
        write_binned(Path("/proc/self/train.bin"), Path("/proc/self/vali.bin"), train, vali, seed=1)

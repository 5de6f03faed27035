"""The synthetic generator: frozen, in pieces or whole, and as hard as it says."""

import hashlib

import numpy as np
import pytest

from ultrbench.datasets.split import read_split, split_files
from ultrbench.datasets.synthetic import draw_query, list_lengths, write_synthetic

ENTRY = {
    "seed": 1,
    "features": 40,
    "documents": 30,
    "queries": {"train": 1000, "vali": 300, "test": 1000},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("synthetic")
    for split in ("train", "test"):
        write_synthetic(ENTRY, split, folder)
    return folder


def ndcg(scores, split, cutoff=10):
    values = []
    for start, stop in zip(split.query_ptr[:-1], split.query_ptr[1:], strict=True):
        gains = 2.0 ** split.grades[start:stop] - 1
        discounts = 1 / np.log2(np.arange(2, 2 + min(cutoff, len(gains))))
        order = np.argsort(-scores[start:stop], kind="stable")
        ideal = np.sort(gains)[::-1][:cutoff] @ discounts
        values.append(gains[order][:cutoff] @ discounts / ideal if ideal > 0 else 0.0)
    return np.mean(values)


def test_version_1_is_frozen(folder):
    split = read_split(folder, "test")
    digest = hashlib.sha256(split.grades.tobytes() + split.query_ptr.tobytes()).hexdigest()
    assert digest == "2766e108a4f56ab23787ede12c3e4e93a7ebe0ec67a91351b3c8035bdb8a9711"
    features, _ = draw_query(1, "test", 0, documents=5, features=40)
    assert features.sum(axis=0)[[0, 1, 2, 13, 39]] == pytest.approx(
        [-0.007425928, 14.74833, 2.836617, 5.0, 2.442742], rel=1e-5
    )


def test_a_smaller_set_is_the_beginning_of_a_larger_one(folder, tmp_path):
    write_synthetic(ENTRY | {"queries": {"test": 7}}, "test", tmp_path)
    small, large = read_split(tmp_path, "test"), read_split(folder, "test")
    rows = small.query_ptr[-1]
    assert np.array_equal(small.features, large.features[:rows])
    assert np.array_equal(small.grades, large.grades[:rows])
    assert np.array_equal(small.query_ids, large.query_ids[:7])


def test_equal_seeds_give_equal_bytes_and_others_do_not(tmp_path):
    entry = ENTRY | {"queries": {"vali": 20}}
    write_synthetic(entry, "vali", tmp_path / "a")
    write_synthetic(entry, "vali", tmp_path / "b")
    write_synthetic(entry | {"seed": 2}, "vali", tmp_path / "c")
    for a, b, c in zip(*(split_files(tmp_path / f, "vali") for f in "abc"), strict=True):
        assert a.read_bytes() == b.read_bytes() != c.read_bytes()


def test_lists_are_log_normal():
    lengths = list_lengths(3, "train", 20_000, 103.0)
    assert lengths.mean() == pytest.approx(103, rel=0.02)
    assert np.log(lengths).std() == pytest.approx(0.5, rel=0.03)
    assert list_lengths(3, "train", 20_000, 6.0).min() == 5


def test_grades_and_scales_are_like_letor(folder):
    split = read_split(folder, "train")
    shares = np.bincount(split.grades, minlength=5) / len(split.grades)
    assert shares == pytest.approx([0.70, 0.16, 0.09, 0.03, 0.02], abs=0.02)
    spread = np.std(split.features, axis=0)
    assert spread.max() > 1e5
    assert spread.min() < 1
    values = [len(np.unique(column)) for column in split.features.T]
    assert min(values) <= 3
    first = split.features[: split.query_ptr[1]]
    assert (first.std(axis=0) == 0).any(), "some features are of the query"


def test_difficulty_on_full_lists(folder):
    """A linear model on 1 % of the queries, all trees on all grades, and random order."""
    import lightgbm as lgb
    from sklearn.svm import LinearSVC

    train, test = read_split(folder, "train"), read_split(folder, "test")
    mean, spread = train.features.mean(axis=0), train.features.std(axis=0)
    linear = []
    for repeat in range(5):
        rng = np.random.default_rng(repeat)
        differences = []
        for query in rng.choice(1000, 10, replace=False):
            start, stop = train.query_ptr[query : query + 2]
            grades, rows = train.grades[start:stop], train.features[start:stop] / spread
            better, worse = np.nonzero(grades[:, None] > grades)
            pick = rng.permutation(len(better))[:200]
            differences.append(rows[better[pick]] - rows[worse[pick]])
        pairs = np.concatenate(differences)
        signs = np.where(rng.random(len(pairs)) < 0.5, 1, -1)
        svm = LinearSVC(C=0.01, fit_intercept=False).fit(pairs * signs[:, None], signs)
        linear.append(ndcg((test.features - mean) / spread @ svm.coef_[0], test))
    assert 0.64 < np.mean(linear) < 0.70

    data = lgb.Dataset(train.features, train.grades, group=train.lengths)
    parameters = {"objective": "lambdarank", "metric": "None", "num_leaves": 15, "seed": 1}
    model = lgb.train(parameters | {"verbose": -1, "num_threads": 1}, data, 150)
    assert 0.80 < ndcg(model.predict(test.features), test) < 0.86
    assert ndcg(np.random.default_rng(1).random(len(test.grades)), test) < 0.35

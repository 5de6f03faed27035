"""Logging policies: what they learn from, what they must not see, and their candidates."""

import dataclasses
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from toys import make_split

from ultrbench.datasets.split import SPLITS, Split, read_split, write_split
from ultrbench.errors import UserError
from ultrbench.files import read_arrays, read_json, write_json
from ultrbench.ranking import lambdamart, svm
from ultrbench.simulation import policies
from ultrbench.stages.policies import train_policy

SVM = {"kind": "ranking_svm", "share": 0.1, "cost": 200.0}
LAMBDAMART = {
    "kind": "lambdamart", "share": 0.3, "trees": 10, "leaves": 8, "learning_rate": 0.1
}  # fmt: skip
RANDOM = {"kind": "random"}


def regraded(split, grades):
    return dataclasses.replace(split, grades=grades)


@pytest.fixture(scope="module")
def splits():
    rng = np.random.default_rng(1)
    return {
        name: make_split(rng.integers(1, 30, size), seed=seed)
        for seed, (name, size) in enumerate({"train": 60, "vali": 10, "test": 12}.items())
    }


@given(st.integers(2, 400), st.floats(0.01, 0.99), st.integers(0, 2**31 - 1))
def test_disjoint_parts_every_query_once(queries, pool, seed):
    if np.ceil(pool * queries) >= queries:
        with pytest.raises(UserError, match=r"policy_queries\.pool: .*leaves none to log"):
            policies.split_queries(queries, mode="disjoint", pool=pool, seed=seed)
        return
    parts = policies.split_queries(queries, mode="disjoint", pool=pool, seed=seed)
    assert sorted([*parts.policy, *parts.logged]) == list(range(queries))
    assert len(parts.policy) == np.ceil(round(pool * queries, 9)) > 0
    assert (np.diff(parts.logged) > 0).all()


def test_shared_lets_policies_and_logs_use_all_queries():
    parts = policies.split_queries(9, mode="shared", pool=0.3, seed=1)
    assert sorted(parts.policy) == parts.logged.tolist() == list(range(9))


def test_the_pool_depends_on_the_seed_alone_and_grows_in_the_same_order():
    small, large, other = (
        policies.split_queries(50, mode="disjoint", pool=pool, seed=seed).policy
        for pool, seed in ((0.2, 1), (0.4, 1), (0.2, 2))
    )
    assert large[:10].tolist() == small.tolist() != other.tolist()


@pytest.mark.parametrize(
    ("share", "total", "count"),
    [(0.01, 100, 1), (0.07, 100, 7), (0.55, 100, 55), (0.011, 100, 2), (1.0, 7, 7), (0.3, 35, 11)],
)
def test_shares_are_rounded_up_but_not_by_the_last_binary_digit(share, total, count):
    assert policies.count_of(share, total) == count


@given(st.lists(st.integers(0, 4), min_size=1, max_size=12))
def test_unequal_pairs_equal_a_plain_count(grades):
    expected = sum(a != b for a, b in combinations(grades, 2))
    assert policies.unequal_pairs(np.array(grades, dtype=np.uint8)) == expected


def test_many_documents_do_not_overflow_the_count_of_pairs():
    assert policies.unequal_pairs(np.arange(100_000, dtype=np.int64) % 2) == 50_000**2


def split_with_pairs(pairs):
    """A split whose queries have these numbers of unequal pairs: one relevant among p + 1."""
    lengths = np.array(pairs) + 1
    ptr = np.concatenate([[0], np.cumsum(lengths)])
    grades = np.zeros(ptr[-1], dtype=np.uint8)
    grades[ptr[:-1]] = np.array(pairs) > 0
    return Split(np.zeros((ptr[-1], 1)), grades, ptr, np.arange(len(pairs)).astype(str))


@pytest.mark.parametrize(
    ("pairs", "share", "taken"),
    [
        ([50] * 20, 0.05, 5),  # 1 query is extended to 5
        ([10] * 20, 0.05, 5),  # exactly 50 pairs
        ([9] * 20, 0.05, 6),  # 45 pairs of 5 queries are too few
        ([0] * 10 + [25] * 10, 0.05, 12),  # queries without pairs do not count
        ([50] * 20, 0.4, 8),
        ([50] * 20, 1.0, 20),
        ([0] * 19 + [50], 0.05, 20),
    ],
)
def test_a_sample_has_five_queries_and_fifty_pairs(pairs, share, taken):
    train = split_with_pairs(pairs)
    for order in (np.arange(20), np.arange(20)[::-1]):
        if order[0] and len(set(pairs)) > 1:
            continue
        sample = policies.sample_queries(train, order, share)
        assert sample.tolist() == sorted(order[:taken])


@pytest.mark.parametrize("pairs", [[2] * 20, [50] * 4, [0] * 20])
def test_a_pool_that_is_too_small_to_learn_from_is_refused(pairs):
    train = split_with_pairs(pairs)
    with pytest.raises(UserError, match=r"a larger policy_queries\.pool"):
        policies.sample_queries(train, np.arange(len(pairs)), 0.05)


@pytest.mark.parametrize("size", [1, 3, 10, 40])
def test_candidates_equal_a_plain_sort_with_ties_by_row(splits, size):
    split = splits["train"]
    rng = np.random.default_rng(size)
    scores = rng.integers(-3, 3, len(split.grades)) / 2
    queries = np.sort(rng.permutation(60)[:25])
    documents, top = policies.truncate(split, scores, queries, size)
    assert documents.shape == top.shape == (25, size)
    for q, row, values in zip(queries, documents, top, strict=True):
        rows = range(split.query_ptr[q], split.query_ptr[q + 1])
        best = sorted(rows, key=lambda i: (-scores[i], i))[:size]
        assert row.tolist() == best + [-1] * (size - len(best))
        assert values[: len(best)].tolist() == [scores[i] for i in best]
        assert np.isnan(values[len(best) :]).all()


def scores_of(policy, splits, seed=3):
    order = policies.split_queries(60, mode="disjoint", pool=0.5, seed=seed).policy
    return policies.score_documents(policy, splits, order, ymax=4, seed=seed)


@pytest.mark.parametrize("policy", [RANDOM, SVM, LAMBDAMART], ids=lambda p: p["kind"])
def test_only_the_grades_of_the_sample_reach_the_scores(splits, policy):
    scores, sample = scores_of(policy, splits)
    assert len(sample) == {"random": 0, "ranking_svm": 6, "lambdamart": 18}[policy["kind"]]
    train, rng = splits["train"], np.random.default_rng(5)
    unseen = ~np.isin(train.query_of_row, sample)
    grades = train.grades.copy()
    grades[unseen] = rng.permutation(grades[unseen])
    other = {
        "train": regraded(train, grades),
        "vali": regraded(splits["vali"], np.zeros_like(splits["vali"].grades)),
        "test": regraded(splits["test"], rng.permutation(splits["test"].grades)),
    }
    again, same = scores_of(policy, other)
    assert same.tolist() == sample.tolist()
    for name in SPLITS:
        assert again[name].tobytes() == scores[name].tobytes()
        assert len(scores[name]) == len(splits[name].grades)
    if len(sample):
        grades = np.where(unseen, train.grades, 4 - train.grades).astype(np.uint8)
        assert (scores_of(policy, splits | {"train": regraded(train, grades)})[0]["test"]
                != scores["test"]).any()  # fmt: skip


def pair_accuracy(scores, split):
    right = total = 0
    for start, end in zip(split.query_ptr[:-1], split.query_ptr[1:], strict=True):
        s, y = scores[start:end], split.grades[start:end].astype(int)
        better = y[:, None] > y[None]
        right += ((s[:, None] > s[None]) & better).sum()
        total += better.sum()
    return right / total


def test_policies_rank_unseen_queries_better_than_chance(splits):
    def accuracy(policy, seed=3):
        return pair_accuracy(scores_of(policy, splits, seed)[0]["test"], splits["test"])

    assert abs(np.mean([accuracy(RANDOM, seed) for seed in range(40)]) - 0.5) < 0.05
    assert accuracy(SVM) > 0.75
    assert accuracy(LAMBDAMART) > 0.65


def test_random_scores_differ_by_seed_and_split(splits):
    one, two = scores_of(RANDOM, splits, seed=1)[0], scores_of(RANDOM, splits, seed=2)[0]
    assert (one["train"] != two["train"]).all()
    assert one["vali"][0] != one["test"][0]


def test_pairs_of_the_svm_equal_a_plain_loop(splits):
    split = splits["vali"]
    features = split.features.astype(float)
    differences, labels = svm.pair_differences(features, split.grades, split.query_ptr, 1)
    expected = [
        features[i] - features[j]
        for start, end in zip(split.query_ptr[:-1], split.query_ptr[1:], strict=True)
        for i in range(start, end)
        for j in range(start, end)
        if split.grades[i] > split.grades[j]
    ]
    np.testing.assert_array_equal(differences * labels[:, None], expected)
    assert (labels[::2] == 1).all() and (labels[1::2] == -1).all()


def test_the_svm_draws_among_too_many_pairs(monkeypatch, splits):
    monkeypatch.setattr(svm, "MAX_PAIRS", 20)
    split = splits["vali"]
    arguments = split.features.astype(float), split.grades, split.query_ptr
    one, two, other = (svm.pair_differences(*arguments, seed)[0] for seed in (1, 1, 2))
    assert len(one) == 20
    assert (one == two).all() and (one != other).any()


def test_features_of_all_scales_and_missing_ones_are_normalised(monkeypatch):
    monkeypatch.setattr(svm, "CHUNK_ROWS", 2)
    features = np.array(
        [[0, -5, np.nan, 7, 1e30], [1, 5, np.nan, 7, np.nan], [np.inf, 0, np.nan, 7, -1e30]],
        dtype=np.float32,
    )
    low, high = svm.feature_range(features)
    np.testing.assert_allclose(low, [0, -5, 0, 7, -1e30], rtol=1e-6)
    np.testing.assert_allclose(high, [1, 5, 0, 7, 1e30], rtol=1e-6)
    scaled = svm.normalise(features, low, high)
    expected = [
        [-1, -1, -1, -1, 1],
        [1, 1, -1, -1, -1],
        [1, 2 * np.log(6) / np.log(11) - 1, -1, -1, -1],
    ]
    np.testing.assert_allclose(scaled, expected, atol=1e-12)


@pytest.mark.parametrize("fit", [svm.fit, lambdamart.fit], ids=["svm", "lambdamart"])
def test_constant_and_missing_features_give_finite_scores(fit):
    split = split_with_pairs([20] * 6)
    features = np.full((len(split.grades), 2), np.nan, dtype=np.float32)
    features[:, 0] = 3
    train = dataclasses.replace(split, features=features)
    sizes = {"cost": 200.0} if fit is svm.fit else {
        "ymax": 4, "trees": 3, "leaves": 4, "learning_rate": 0.1
    }  # fmt: skip
    scores = fit(train, np.arange(6), seed=0, **sizes)(features)
    assert scores.shape == split.grades.shape
    assert np.isfinite(scores).all()


def test_the_svm_scores_no_document(splits):
    predict = svm.fit(splits["train"], np.arange(20), cost=200, seed=1)
    assert predict(np.empty((0, 5), dtype=np.float32)).shape == (0,)


@pytest.fixture
def dataset(tmp_path, splits):
    for name, split in splits.items():
        write_split(split, tmp_path / "data", name)
    write_json(tmp_path / "data/dataset.json", {"ymax": 4})
    return tmp_path / "data"


@pytest.mark.parametrize("mode", ["disjoint", "shared"])
def test_the_stage_writes_candidates_that_policies_have_not_learnt_from(
    tmp_path, dataset, splits, mode
):
    paths = [(tmp_path / f"{run}.npz", tmp_path / f"{run}.json") for run in "ab"]
    for candidates, report in paths:
        train_policy(
            dataset, candidates, report,
            policy=LAMBDAMART, policy_queries={"mode": mode, "pool": 0.4}, list_size=6, seed=2,
        )  # fmt: skip
    assert paths[0][0].read_bytes() == paths[1][0].read_bytes()
    assert paths[0][1].read_bytes() == paths[1][1].read_bytes()
    arrays, about = read_arrays(paths[0][0]), read_json(paths[0][1])
    names = splits["train"].query_ids
    logged = set(names[arrays["train_queries"]])
    assert len(about["queries_trained_on"]) == 18
    assert logged.isdisjoint(about["queries_trained_on"]) == (mode == "disjoint")
    assert about["queries_put_aside"] == (24 if mode == "disjoint" else 0)
    assert about["queries_logged"] == len(logged) == (36 if mode == "disjoint" else 60)
    for name in SPLITS:
        split = read_split(dataset, name)
        queries, documents = arrays[f"{name}_queries"], arrays[f"{name}_documents"]
        shown = documents >= 0
        assert documents.shape == arrays[f"{name}_scores"].shape == (len(queries), 6)
        assert (shown.sum(axis=1) == np.minimum(split.lengths[queries], 6)).all()
        assert (split.query_of_row[documents] == queries[:, None])[shown].all()
    assert arrays["test_all_scores"].shape == splits["test"].grades.shape
    best = arrays["test_scores"][:, 0]
    assert (
        best.tolist()
        == np.maximum.reduceat(arrays["test_all_scores"], splits["test"].query_ptr[:-1]).tolist()
    )

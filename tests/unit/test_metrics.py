"""Metrics against independent implementations, by hand, and on input at the edge."""

import io
import zipfile
from itertools import pairwise
from math import log2
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from ultrbench.errors import UserError
from ultrbench.evaluation import metrics
from ultrbench.evaluation.lists import rank_documents
from ultrbench.evaluation.ties import tie_sensitivity, tied_queries

SLICE = Path(__file__).parents[2].parent / "shared/data/mslr-web10k-slice.zip"
CUTOFFS = (1, 3, 5, 10)


def recipe_ndcg(scores, grades, k):
    """The protocol's recipe, word for word."""
    pairs = sorted(zip(scores, grades, strict=True), key=lambda pair: -pair[0])
    dcg = sum((2.0**rel - 1) / log2(i + 2) for i, (_, rel) in enumerate(pairs[:k]))
    best = sorted(grades, reverse=True)[:k]
    idcg = sum((2.0**rel - 1) / log2(i + 2) for i, rel in enumerate(best))
    return dcg / idcg if idcg > 0 else 0.0


def naive_err(scores, grades, k, ymax):
    pairs = sorted(zip(scores, grades, strict=True), key=lambda pair: -pair[0])
    total, going_on = 0.0, 1.0
    for rank, (_, grade) in enumerate(pairs[:k], start=1):
        satisfied = (2.0**grade - 1) / 2**ymax
        total += going_on * satisfied / rank
        going_on *= 1 - satisfied
    return total


@st.composite
def ragged_lists(draw):
    """Scores with many ties, grades 0..4, lists of 0 to 60 documents."""
    lengths = draw(st.lists(st.integers(0, 60), min_size=1, max_size=6))
    size = sum(lengths)
    scores = draw(arrays(np.float64, size, elements=st.integers(-3, 3).map(lambda v: v / 2)))
    grades = draw(arrays(np.uint8, size, elements=st.integers(0, 4)))
    return scores, grades, np.concatenate([[0], np.cumsum(lengths)])


@settings(max_examples=150, deadline=None)
@given(ragged_lists())
def test_ndcg_and_err_follow_the_recipe_on_lists_with_ties(data):
    scores, grades, ptr = data
    mask = metrics.padding_mask(ptr)
    names = [f"{kind}@{k}" for kind in ("nDCG", "ERR") for k in CUTOFFS]
    values = metrics.compute_metrics(
        names, metrics.pad(scores, ptr, 9.0), metrics.pad(grades, ptr, 4), mask, 4
    )
    for q, (a, b) in enumerate(pairwise(ptr)):
        one = scores[a:b].tolist(), grades[a:b].tolist()
        for k in CUTOFFS:
            assert values[f"nDCG@{k}"][q] == pytest.approx(recipe_ndcg(*one, k), abs=1e-12)
            assert values[f"ERR@{k}"][q] == pytest.approx(naive_err(*one, k, 4), abs=1e-12)


@pytest.mark.parametrize("width", [2, 10, 57])
def test_ndcg_equals_scikit_learn_without_ties(width):
    from sklearn.metrics import dcg_score, ndcg_score

    rng = np.random.default_rng(width)
    scores = rng.permuted(np.tile(np.arange(width, dtype=float), (40, 1)), axis=1)
    grades = rng.integers(0, 5, scores.shape)
    gains = 2**grades - 1
    for k in (1, 3, width):
        for gain, target in (("exponential", gains), ("linear", grades)):
            assert metrics.ndcg(scores, grades, cutoff=k, gain=gain, mean=True) == pytest.approx(
                ndcg_score(target, scores, k=k), abs=1e-12
            )
            assert metrics.dcg(scores, grades, cutoff=k, gain=gain, mean=True) == pytest.approx(
                dcg_score(target, scores, k=k), abs=1e-12
            )


@pytest.fixture(scope="module")
def real_lists():
    if not SLICE.exists():
        pytest.skip("mslr-web10k-slice.zip is not beside the repository (../shared/data)")
    from sklearn.datasets import load_svmlight_file

    with zipfile.ZipFile(SLICE) as archive:
        text = archive.read("Fold1/test.txt")
    features, grades, query = load_svmlight_file(io.BytesIO(text), query_id=True)
    starts = np.flatnonzero(np.diff(query, prepend=-1))
    return features.toarray(), grades.astype(np.uint8), np.append(starts, len(query))


@pytest.mark.parametrize("feature", [0, 109, 135])
def test_real_lists_follow_the_recipe_ties_included(real_lists, feature):
    features, grades, ptr = real_lists
    scores, mask = metrics.pad(features[:, feature], ptr, 0.0), metrics.padding_mask(ptr)
    names = [f"{kind}@{k}" for kind in ("nDCG", "ERR") for k in CUTOFFS]
    values = metrics.compute_metrics(names, scores, metrics.pad(grades, ptr, 0), mask, 4)
    for q, (a, b) in enumerate(pairwise(ptr)):
        one = features[a:b, feature].tolist(), grades[a:b].tolist()
        for k in CUTOFFS:
            assert values[f"nDCG@{k}"][q] == pytest.approx(recipe_ndcg(*one, k), abs=1e-12)
            assert values[f"ERR@{k}"][q] == pytest.approx(naive_err(*one, k, 4), abs=1e-12)


def test_real_lists_equal_scikit_learn_without_ties(real_lists):
    from sklearn.metrics import ndcg_score

    _, grades, ptr = real_lists
    scores = np.random.default_rng(1).permutation(len(grades)).astype(float)
    ours = metrics.ndcg(
        metrics.pad(scores, ptr, 0.0),
        metrics.pad(grades, ptr, 0),
        metrics.padding_mask(ptr),
        cutoff=10,
    )
    for value, a, b in zip(ours, ptr[:-1], ptr[1:], strict=True):
        gains = 2.0 ** grades[None, a:b] - 1
        assert value == pytest.approx(ndcg_score(gains, scores[None, a:b], k=10), abs=1e-12)


# One list, best first: grades 0 1 0 2 (relevant at ranks 2 and 4).
SCORES, GRADES = np.array([[4.0, 3.0, 2.0, 1.0]]), np.array([[0, 1, 0, 2]])


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("P@1", 0.0),
        ("P@4", 2 / 4),
        ("P@10", 2 / 10),
        ("P", 2 / 4),
        ("R@2", 1 / 2),
        ("R@10", 2 / 2),
        ("AP", (1 / 2 + 2 / 4) / 2),
        ("AP@2", (1 / 2) / 2),
        ("RR", 1 / 2),
        ("RR@1", 0.0),
        ("Hit@1", 0.0),
        ("Hit@2", 1.0),
        ("DCG", 1 / log2(3) + 3 / log2(5)),
        ("DCG(gain=linear)@4", 1 / log2(3) + 2 / log2(5)),
        ("nDCG@2", (1 / log2(3)) / (3 / log2(2) + 1 / log2(3))),
        ("ERR@4", 1 / 4 / 2 + 3 / 4 * 3 / 4 / 4),
        ("RBP(p=.5)", 0.5 * (0.5 + 0.5**3)),
        ("RBP(p=.5,gain=linear)", 0.5 * (0.5 / 2 + 0.5**3)),
        ("RBP(p=.5,gain=exponential)", 0.5 * (0.5 / 3 + 0.5**3)),
        ("RBP(p=0)", 0.0),
        ("RBPresidual(p=.5)@3", 0.5**3),
        ("RBPresidual(p=.5)@10", 0.5**4),
    ],
)
def test_by_hand(name, expected):
    value = metrics.compute_metrics([name], SCORES, GRADES, ymax=2)
    assert list(value) == [name]
    assert value[name][0] == pytest.approx(expected, abs=1e-15)


def test_judged_documents_outside_the_list_count_as_relevant():
    judged = np.array([[0, 1, 0, 2, 4]])
    assert metrics.recall(SCORES, GRADES, judged=judged)[0] == 2 / 3
    assert metrics.average_precision(SCORES, GRADES, judged=judged)[0] == (1 / 2 + 2 / 4) / 3
    assert metrics.ndcg(SCORES, GRADES, cutoff=1, judged=judged)[0] == 0.0
    dcg, best = 1 / log2(3) + 3 / log2(5), 15 + 3 / log2(3) + 1 / log2(4)
    assert metrics.ndcg(SCORES, GRADES, judged=judged)[0] == pytest.approx(dcg / best)


ALL = ["nDCG@10", "DCG", "ERR@5", "P@3", "R@3", "AP", "RR", "RBP", "Hit@2", "P"]


def test_users_of_rbp_go_on_with_probability_point_eight_unless_told_otherwise():
    scores, grades = np.array([[3.0, 2.0, 1.0]]), np.array([[1, 0, 2]])
    assert metrics.rbp(scores, grades).tolist() == metrics.rbp(scores, grades, p=0.8).tolist()
    assert metrics.rbp(scores, grades).tolist() != metrics.rbp(scores, grades, p=0.7).tolist()


def test_queries_without_relevant_documents_and_empty_lists_are_zero():
    scores, grades = np.ones((2, 3)), np.zeros((2, 3), np.uint8)
    mask = np.array([[True] * 3, [False] * 3])
    grades[1] = 4  # padding, whatever it holds
    for name, values in metrics.compute_metrics(ALL, scores, grades, mask, 4).items():
        assert values.tolist() == [0.0, 0.0], name
    assert metrics.rbp_residual(scores, grades, mask, p=0.5).tolist() == [0.5**3, 1.0]


def test_lists_without_any_document_and_no_queries():
    for shape in ((2, 0), (0, 3)):
        for name, values in metrics.compute_metrics(
            ALL, np.ones(shape), np.ones(shape), ymax=4
        ).items():
            assert values.tolist() == [0.0] * shape[0], name
    with pytest.raises(UserError, match="0 queries"):
        metrics.ndcg(np.ones((0, 3)), np.ones((0, 3)), mean=True)


def test_padding_changes_nothing_wherever_it_stands():
    rng = np.random.default_rng(5)
    scores, grades = rng.normal(size=(30, 7)), rng.integers(0, 5, (30, 7))
    wide = np.full((30, 90), np.nan), np.full((30, 90), 4), np.zeros((30, 90), bool)
    at = np.sort(rng.permuted(np.tile(np.arange(90), (30, 1)), axis=1)[:, :7], axis=1)
    for array, values in zip(wide, (scores, grades, True), strict=True):
        np.put_along_axis(array, at, values, axis=1)
    ours, padded = (
        metrics.compute_metrics(ALL, *lists, ymax=4) for lists in ((scores, grades), wide)
    )
    for name, values in ours.items():
        np.testing.assert_array_equal(values, padded[name], err_msg=name)


def test_short_and_long_lists_whole_and_broken_grades_have_one_value(monkeypatch):
    """Lists are ranked by pairs or by sorting, whole grades counted and others sorted."""
    rng = np.random.default_rng(6)
    scores, grades = rng.integers(0, 4, (50, 30)) / 2, rng.integers(0, 5, (50, 30))
    mask = rng.random(scores.shape) < 0.9
    names = [*ALL, "RR@3", "RBPresidual", "nDCG(gain=linear)@5", "RBP(gain=exponential)"]
    values = metrics.compute_metrics(names, scores, grades.astype(np.uint8), mask, 20)
    again = metrics.compute_metrics(names, scores, grades.astype(np.float64), mask, 20)
    with_more = [
        np.append(array, rest, axis=1)
        for array, rest in (
            (scores, np.full((50, 300), -1.0)),
            (grades, np.zeros((50, 300), int)),
            (mask, np.zeros((50, 300), bool)),
        )
    ]
    long = metrics.compute_metrics(names, *with_more, 20)
    monkeypatch.setattr("ultrbench.evaluation.lists.NARROW", 0)
    ordered = metrics.compute_metrics(names, scores, grades, mask, 20)
    for name, value in values.items():
        for other in (again, long, ordered):
            np.testing.assert_array_equal(value, other[name], err_msg=name)


def test_means_are_those_of_the_values(monkeypatch):
    rng = np.random.default_rng(7)
    lists = rng.normal(size=(30, 7)), rng.integers(0, 5, (30, 7))
    values = metrics.compute_metrics(ALL, *lists, ymax=4)
    monkeypatch.setattr("ultrbench.evaluation.lists.CHUNK", 20)
    means = metrics.compute_metrics(ALL, *lists, ymax=4, mean=True)
    assert list(means) == list(values)
    for name, mean in means.items():
        assert mean == pytest.approx(values[name].mean(), abs=1e-14)


def test_one_document():
    grades = np.array([[0], [1], [4]])
    values = metrics.compute_metrics([*ALL, "P@1"], np.zeros((3, 1)), grades, ymax=4)
    for name in ("nDCG@10", "R@3", "AP", "RR", "Hit@2", "P", "P@1"):
        assert values[name].tolist() == [0.0, 1.0, 1.0], name
    assert values["P@3"].tolist() == [0.0, 1 / 3, 1 / 3]
    assert values["DCG"].tolist() == [0.0, 1.0, 15.0]
    assert values["ERR@5"].tolist() == [0.0, 1 / 16, 15 / 16]
    assert values["RBP(p=.8)"] == pytest.approx([0.0, 0.2, 0.2])


def test_a_million_queries_have_the_values_of_the_few_that_they_repeat():
    rng = np.random.default_rng(8)
    scores, grades = rng.normal(size=(1000, 5)), rng.integers(0, 5, (1000, 5), np.uint8)
    names = ["nDCG@3", "ERR@5", "AP"]
    few = metrics.compute_metrics(names, scores, grades, ymax=4)
    many = metrics.compute_metrics(
        names, np.tile(scores, (1000, 1)), np.tile(grades, (1000, 1)), ymax=4
    )
    for name in names:
        np.testing.assert_array_equal(many[name].reshape(1000, 1000), [few[name]] * 1000)


def test_chunks_change_nothing(monkeypatch):
    rng = np.random.default_rng(5)
    scores, grades = rng.normal(size=(30, 7)), rng.integers(0, 5, (30, 7))
    whole = metrics.compute_metrics(ALL, scores, grades, ymax=4)
    monkeypatch.setattr("ultrbench.evaluation.lists.CHUNK", 20)
    for name, values in metrics.compute_metrics(ALL, scores, grades, ymax=4).items():
        np.testing.assert_array_equal(values, whole[name], err_msg=name)


@given(st.data(), st.sampled_from([1, 2, 10, 50]))
def test_the_best_documents_are_those_of_a_stable_full_sort(data, width):
    levels = st.sampled_from([-np.inf, -1.0, 0.0, 1.0, np.inf])
    scores = data.draw(arrays(np.float64, (4, width), elements=levels))
    mask = data.draw(arrays(bool, (4, width)))
    depth = data.draw(st.integers(1, width))
    order = rank_documents(scores, mask, depth)
    for row, real, found in zip(scores, mask, order, strict=True):
        expected = sorted(np.flatnonzero(real), key=lambda i: -row[i])[:depth]
        assert found[: len(expected)].tolist() == expected


def test_bad_input_is_a_sentence_that_names_the_query():
    scores, grades = np.ones((3, 2)), np.ones((3, 2))
    scores[2, 1] = np.nan
    with pytest.raises(UserError, match=r"Query 2, document 1 .* NaN"):
        metrics.ndcg(scores, grades)
    assert metrics.ndcg(scores, grades, ~np.isnan(scores), mean=True) == 1.0
    with pytest.raises(UserError, match=r"Query 1, document 0 .* above the top grade ymax = 4"):
        metrics.err(np.ones((3, 2)), np.array([[1, 2], [5, 0], [0, 0]]), ymax=4, cutoff=1)
    with pytest.raises(UserError, match=r"Query 0, document 0 .* negative"):
        metrics.ndcg(np.ones((1, 1)), np.array([[-1]]))
    with pytest.raises(UserError, match=r"Query 0, document 1 .* infinite"):
        metrics.ndcg(np.ones((1, 2)), np.array([[1, np.inf]]))
    with pytest.raises(UserError, match="one shape"):
        metrics.ndcg(np.ones((1, 2)), np.ones((1, 3)))
    with pytest.raises(UserError, match="pass ymax"):
        metrics.compute_metrics(["ERR@5"], np.ones((1, 1)), np.ones((1, 1)))


@pytest.mark.parametrize(
    ("given_name", "canonical"),
    [
        ("nDCG@10", "nDCG@10"),
        ("nDCG(gain=exponential)@10", "nDCG@10"),
        ("RBP(p=0.8)@10", "RBP(p=.8)@10"),
        ("RBP( p=.95, gain=linear )", "RBP(p=.95,gain=linear)"),
        ("MAP", "AP"),
        ("MRR@10", "RR@10"),
    ],
)
def test_names_have_one_canonical_form(given_name, canonical):
    metric = metrics.parse_metric(given_name)
    assert metric.name == canonical
    assert metrics.parse_metric(metric.name) == metric


@pytest.mark.parametrize(
    "name",
    ["ndcg@10", "nDCG@0", "nDCG@", "RBP(p=1)@10", "RBP(q=.8)", "nDCG(gain=log)", "P@1.5", ""],
)
def test_names_that_mean_nothing_are_refused(name):
    with pytest.raises(UserError):
        metrics.parse_metric(name)


def test_ties_are_seen_inside_and_just_behind_the_cutoff():
    scores = np.array([[3.0, 2.0, 1.0, 1.0], [3.0, 2.0, 2.0, 1.0], [3.0, 3.0, 2.0, 1.0]])
    assert tied_queries(scores, cutoff=2).tolist() == [False, True, True]
    mask = np.array([[True] * 4, [True, True, False, True], [True] * 4])
    assert tied_queries(scores, mask, cutoff=2).tolist() == [False, False, True]


def test_sensitivity_to_ties_is_the_mean_change():
    scores = np.array([[1.0, 1.0], [2.0, 1.0]])  # P@1 of query 0 is 1 or 0, of query 1 always 1
    grades = np.array([[1, 0], [1, 0]])
    change = tie_sensitivity(
        ["P@1", "R@2"], scores, grades, orders=2000, rng=np.random.default_rng(1)
    )
    assert change["P@1"] == pytest.approx(0.5 / 2, abs=0.025)
    assert change["R@2"] == 0.0


def test_the_document_lists_every_metric_and_interface_with_its_user():
    text = (Path(__file__).parents[2] / "docs/metrics.md").read_text(encoding="utf-8")
    named, _, rest = text.partition("## Conventions")
    interfaces = rest.partition("## Interfaces")[2].partition("\n## ")[0]
    users = {metrics.parse_metric(row[0].replace("@k", "")): row[2] for row in _table_rows(named)}
    assert {metric.kind: user for metric, user in users.items()} == {
        kind: metrics.Metric(kind).user for kind in metrics._KINDS
    }
    assert {row[0]: row[1].strip("`") for row in _table_rows(interfaces)} == metrics.INTERFACES
    for interface, name in metrics.INTERFACES.items():
        assert metrics.headline_metric(interface).name == name
    with pytest.raises(UserError, match="no interface 'kiosk'"):
        metrics.headline_metric("kiosk")


def _table_rows(text):
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| `")]
    return [[row[0].strip("`"), *row[1:]] for row in rows]


@pytest.mark.parametrize(
    "metric",
    [
        *(metrics.ndcg, metrics.dcg, metrics.precision, metrics.recall, metrics.average_precision),
        *(metrics.reciprocal_rank, metrics.rbp, metrics.hit_rate),
        *(metrics.parse_metric("nDCG@2"), metrics.parse_metric("RR")),
    ],
)
def test_a_metric_is_that_of_each_query_unless_the_mean_is_asked_for(metric):
    scores, grades = np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([[1, 0], [1, 0]])
    options = {} if isinstance(metric, metrics.Metric) else {"cutoff": 2}
    values = metric(scores, grades, **options)
    assert values.shape == (2,)
    assert metric(scores, grades, **options, mean=True) == values.mean()

"""Exposure, diversity, novelty and serendipity by hand and against SciPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial.distance import pdist

from ultrbench.errors import UserError
from ultrbench.evaluation import beyond_accuracy as beyond

SHOWN = np.array([[0, 1, 2], [3, 0, -1], [-1, -1, -1]])


def test_exposure_is_examination_by_place_times_sessions():
    theta = np.array([1.0, 0.5, 0.25, 0.1])
    seen = beyond.exposure(SHOWN, theta, 6, np.array([10, 2, 5]))
    assert seen.tolist() == [10 + 2 * 0.5, 10 * 0.5, 10 * 0.25, 2.0, 0.0, 0.0]
    assert beyond.coverage(seen, np.array([0, 6])).tolist() == [4 / 6]
    by_query = beyond.coverage(seen, np.array([0, 3, 3, 6]))
    np.testing.assert_array_equal(by_query, [1.0, np.nan, 1 / 3])


@given(arrays(np.float64, st.integers(1, 12), elements=st.integers(0, 9)))
def test_gini_is_half_the_relative_mean_difference(values):
    found = beyond.gini(
        np.concatenate([[5.0], values, [1.0, 3.0]]),
        np.array([0, 1, len(values) + 1, len(values) + 3]),
    )
    assert found[0] == 0.0
    assert found[2] == pytest.approx(1 / 4)  # (2 * 3 - ...) : |1 - 3| / (2 * 4)
    if values.sum() == 0:
        assert np.isnan(found[1])
    else:
        differences = np.abs(values[:, None] - values).sum()
        expected = differences / (2 * len(values) * values.sum())
        assert found[1] == pytest.approx(expected, abs=1e-12)


def test_one_item_with_all_exposure_has_the_largest_gini():
    assert beyond.gini(np.array([0, 0, 0, 0, 7.0]), np.array([0, 5])) == pytest.approx(1 - 1 / 5)


def test_novelty_is_mean_surprisal_within_the_catalogue():
    popularity = np.array([7, 0, 0, 3])
    together = beyond.novelty(SHOWN, popularity, np.array([0, 4]))
    shares = np.array([8, 1, 1, 4]) / 14
    expected = [-np.log2(shares[[0, 1, 2]]).mean(), -np.log2(shares[[3, 0]]).mean(), np.nan]
    np.testing.assert_allclose(together, expected)
    apart = beyond.novelty(np.array([[0, 1], [2, 3]]), popularity, np.array([0, 2, 4]))
    np.testing.assert_allclose(
        apart, [-np.log2([8 / 9, 1 / 9]).mean(), -np.log2([1 / 5, 4 / 5]).mean()]
    )


@pytest.mark.parametrize("distance", ["cosine", "euclidean"])
def test_diversity_is_scipys_mean_pairwise_distance(distance):
    rng = np.random.default_rng(1)
    features = rng.normal(size=(20, 5)).astype(np.float32)
    shown = np.stack([rng.permutation(20)[:6] for _ in range(8)])
    shown[3, 4:] = -1
    shown[4, 1:] = -1
    found = beyond.intra_list_diversity(shown, features, distance)
    for value, items in zip(found, shown, strict=True):
        items = items[items >= 0]
        if len(items) < 2:
            assert np.isnan(value)
        else:
            expected = pdist(features[items].astype(float), distance).mean()
            assert value == pytest.approx(expected, rel=1e-9)
    with pytest.raises(UserError, match="'cosine' or 'euclidean', not 'hamming'"):
        beyond.intra_list_diversity(shown, features, "hamming")


def test_items_of_zeros_are_far_from_all_others():
    assert (
        beyond.intra_list_diversity(np.array([[0, 1]]), np.array([[0.0, 0.0], [1.0, 2.0]])) == 1.0
    )


def test_serendipity_counts_relevant_items_that_were_not_expected():
    expected = np.array([[1, 5], [9, -1], [0, 1]])
    relevance = np.array([[1, 1, 0], [1, 0, 1], [1, 1, 1]])
    found = beyond.serendipity(SHOWN, expected, relevance)
    np.testing.assert_array_equal(found, [1 / 3, 1 / 2, np.nan])


def test_documents_of_single_queries_are_no_catalogue():
    lists = np.array([[0, 1], [1, 0], [2, 3]])
    with pytest.raises(UserError, match="No item is shown for two queries"):
        beyond.require_shared_catalogue(lists, np.array([0, 0, 1]))
    beyond.require_shared_catalogue(lists, np.array([0, 1, 2]))
    beyond.require_shared_catalogue(lists, np.array([0, 0, 0]))

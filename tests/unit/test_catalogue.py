"""The shared synthetic catalogue, and what the measures say of rankers with known habits."""

import numpy as np
import pytest

from ultrbench.evaluation import beyond_accuracy as beyond
from ultrbench.evaluation import catalogue, sampled
from ultrbench.evaluation.catalogue import Taste

RANKERS = {
    "true": Taste(1, 1, 0),
    "personal": Taste(1, 0, 0.5),
    "popular": Taste(0, 1, 0),
}


@pytest.fixture(scope="module")
def made():
    return catalogue.synthetic_catalogue(400, 2000, RANKERS, rng=np.random.default_rng(3))


def test_ranks_and_top_lists_agree(made):
    for ranks, top in zip(made.ranks, made.top, strict=True):
        found = top == made.relevant[:, None]
        np.testing.assert_array_equal(found.any(axis=1), ranks <= 10)
        np.testing.assert_array_equal(found.argmax(axis=1)[ranks <= 10] + 1, ranks[ranks <= 10])
    better, _, worse = np.log(made.ranks).mean(axis=1)
    assert better < worse < np.log(2000)


def test_chunks_bound_memory_and_the_seed_decides(monkeypatch, made):
    again = catalogue.synthetic_catalogue(400, 2000, RANKERS, rng=np.random.default_rng(3))
    np.testing.assert_array_equal(again.top, made.top)
    monkeypatch.setattr(catalogue, "CHUNK", 2000 * 7)
    chunked = catalogue.synthetic_catalogue(400, 2000, RANKERS, rng=np.random.default_rng(3))
    assert (chunked.top[2] == made.top[2]).all()  # what depends on the items alone


def test_a_popular_ranker_narrows_the_catalogue(made):
    ptr, theta = np.array([0, 2000]), 1 / np.arange(1, 11)
    exposed = [beyond.exposure(top, theta, 2000) for top in made.top]
    covered = [float(beyond.coverage(e, ptr)[0]) for e in exposed]
    unequal = [float(beyond.gini(e, ptr)[0]) for e in exposed]
    surprise = [float(beyond.novelty(top, made.popularity, ptr).mean()) for top in made.top]
    assert covered[1] > covered[0] > covered[2] == 10 / 2000
    assert unequal[1] < unequal[0] < unequal[2]
    assert surprise[1] > surprise[0] > surprise[2]
    beyond.require_shared_catalogue(made.top[0], np.arange(400))
    relevance = (made.top[0] == made.relevant[:, None]).astype(float)
    pleased = beyond.serendipity(made.top[0], made.top[2], relevance)
    assert 0 < pleased.mean() < relevance.mean()


def test_the_order_of_rankers_is_safe_with_all_items_only():
    made = catalogue.synthetic_catalogue(400, 500, RANKERS, rng=np.random.default_rng(3))
    table = sampled.order_table(
        made.ranks[:2],
        made.names[:2],
        500,
        "nDCG@10",
        sample_sizes=[20, 499],
        user_counts=[50, 400],
        gammas=[0.1],
        repeats=40,
        rng=np.random.default_rng(1),
    )
    assert (table["better"] == "true").all() and len(table) == 2 * 4 * 2
    assert table["agreement"].between(0, 1).all()
    whole = table[(table["samples"] == 499) & (table["users"] == 400)].set_index("correction")
    assert whole.loc["none", "agreement"] > 0.95

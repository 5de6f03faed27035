"""Click logs whose clicks are the expected ones, for estimators that need several orders."""

import numpy as np
from toys import candidates, make_log

from ultrbench.simulation.display import shuffle

GAMMA = np.array([1.0, 0.5, 0.25, 0.125])
THETA = np.array([0.5, 0.25, 0.125])


def expected_log(orders, gamma, *, sessions=64, theta=THETA, queries=None):
    """Lists whose clicks are exactly sessions * theta * gamma, one position a session."""
    groups = []
    for row, documents in enumerate(orders):
        left = sessions
        for k, document in enumerate(documents):
            if document < 0:
                continue
            clicks = sessions * theta[k] * gamma[document]
            assert clicks == int(clicks)
            groups.append((row, 1 << k, int(clicks)))
            left -= int(clicks)
        groups.append((row, 0, left))
    groups = [group for group in groups if group[2]]
    return make_log(orders, groups, queries=[0] * len(orders) if queries is None else queries)


def of_queries(orders, queries):
    """The arguments of `expected_log` for as many queries with these orders of four documents."""
    copies = [np.where(np.asarray(orders) < 0, -1, np.add(orders, 4 * q)) for q in range(queries)]
    owners = np.repeat(np.arange(queries), len(orders)).tolist()
    return {
        "orders": np.concatenate(copies).tolist(),
        "gamma": np.tile(GAMMA, queries),
        "queries": owners,
    }


def shuffled(split, lists, seed=0):
    """A log of several random orders of five candidates a query, without sessions."""
    documents = candidates(split, width=5, seed=seed)
    order = shuffle(documents, lists, np.random.default_rng(seed))
    query = np.repeat(np.arange(len(documents)), lists)
    return make_log(np.take_along_axis(documents[query], order, 1), queries=query)

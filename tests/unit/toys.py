"""Small data sets and click logs for the tests."""

import numpy as np

from ultrbench.datasets.split import Split
from ultrbench.simulation import clicks
from ultrbench.simulation.behaviour import Behaviour
from ultrbench.simulation.log import ClickLog


def make_split(lengths, *, seed=0, features=5):
    """A split whose grades 0..4 depend on its first two features, with noise."""
    rng = np.random.default_rng(seed)
    rows = int(np.sum(lengths))
    latent = rng.normal(size=(rows, features))
    relevance = latent[:, 0] + 0.7 * latent[:, 1] + 0.5 * rng.normal(size=rows)
    return Split(
        np.exp(latent).astype(np.float32),
        np.searchsorted([0.0, 0.6, 1.2, 1.8], relevance).astype(np.uint8),
        np.concatenate([[0], np.cumsum(lengths)]),
        np.array([f"q{q}" for q in range(len(lengths))]),
    )


def make_log(documents, groups=(), *, queries=None, scores=None, randomized=False):
    """A click log of displayed lists, padded with -1, and groups (list, mask, count)."""
    documents = np.array(documents)
    lists = len(documents)
    click_list, mask, count = zip(*groups, strict=True) if groups else ((), (), ())
    return ClickLog(
        documents,
        np.arange(lists) if queries is None else np.array(queries),
        np.full(documents.shape, np.nan) if scores is None else np.array(scores),
        np.zeros(lists, dtype=np.uint8),
        np.broadcast_to(np.array(randomized, dtype=bool), lists).copy(),
        np.zeros(lists, dtype=np.uint8),
        np.array(click_list, dtype=np.int64),
        np.array(mask, dtype=np.uint64),
        np.array(count, dtype=np.int64),
    )


def click(log, sessions, theta, gamma, seed=0):
    """Sessions of the position-based model on the lists of a log; gamma is by document row."""
    probability = np.where(log.shown, theta[: log.positions] * gamma[log.documents], 0.0)
    rng = np.random.default_rng(seed)
    return log.with_clicks(*clicks.simulate_sessions(sessions, Behaviour(probability), rng))


def candidates(split, *, width, seed=0):
    """The first `width` documents of each query in an order that prefers high grades a little."""
    rng = np.random.default_rng(seed)
    documents = np.full((len(split.query_ids), width), -1)
    for q, (start, end) in enumerate(zip(split.query_ptr[:-1], split.query_ptr[1:], strict=True)):
        order = np.argsort(-split.grades[start:end] + 3 * rng.normal(size=end - start))[:width]
        documents[q, : len(order)] = start + order
    return documents

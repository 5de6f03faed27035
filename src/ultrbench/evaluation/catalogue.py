"""A synthetic catalogue of items that all users share, ranked for each of them by some rankers.

Sampled metrics and measures beyond accuracy need items with an identity across queries, which the
documents of learning-to-rank data sets do not have.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

CHUNK = 1 << 22


@dataclass(frozen=True)
class Taste:
    """How a ranker scores an item: what of the user's taste it knows, and of popularity.

    Attributes
    ----------
    personal : float
        Weight of the user's taste.
    popular : float
        Weight of the item's popularity.
    noise : float
        Standard deviation of the ranker's error in each item factor, whose own is 1.
    """

    personal: float
    popular: float
    noise: float


@dataclass(frozen=True)
class Catalogue:
    """Items, users with one relevant item each, and how rankers order the items for them.

    Attributes
    ----------
    features : numpy.ndarray
        float64 ``[items, factors]``, item factors.
    popularity : numpy.ndarray
        int64 ``[items]``, interactions of an earlier log.
    relevant : numpy.ndarray
        int64 ``[users]``, the item that each user goes for.
    names : tuple of str
        The rankers.
    ranks : numpy.ndarray
        int64 ``[rankers, users]``, exact rank of the relevant item among all items, from 1.
    top : numpy.ndarray
        int64 ``[rankers, users, k]``, the first k items.
    """

    features: np.ndarray
    popularity: np.ndarray
    relevant: np.ndarray
    names: tuple[str, ...]
    ranks: np.ndarray
    top: np.ndarray


def synthetic_catalogue(
    users: int,
    items: int,
    rankers: Mapping[str, Taste],
    *,
    factors: int = 8,
    top: int = 10,
    rng: np.random.Generator,
) -> Catalogue:
    """Draw a catalogue, its users and the rankings of all items for each of them.

    An item's utility to a user is the product of their factors, normal with standard deviation 1,
    plus its popularity, a standard normal; the relevant item is a draw from the softmax of twice
    the utility. Earlier interactions are Poisson with 50 exp(popularity) on average.

    Parameters
    ----------
    users, items : int
        Their numbers. The time is that of users x items x rankers products; memory is bounded.
    rankers : mapping of str to Taste
        The rankers.
    factors : int
        Length of the factors.
    top : int
        First items to keep.
    rng : numpy.random.Generator
        Source of all draws.

    Returns
    -------
    Catalogue

    Examples
    --------
    >>> rankers = {"personal": Taste(1, 0, 0.5), "popular": Taste(0, 1, 0)}
    >>> made = synthetic_catalogue(5, 100, rankers, top=3, rng=np.random.default_rng(1))
    >>> made.ranks.shape, made.top.shape
    ((2, 5), (2, 5, 3))
    >>> len(np.unique(made.top[1]))  # the popular ranker shows everyone the same
    3
    """
    features = rng.normal(size=(items, factors))
    appeal = rng.normal(size=items)
    popularity = rng.poisson(50 * np.exp(appeal))
    seen = {
        name: features + taste.noise * rng.normal(size=features.shape)
        for name, taste in rankers.items()
    }
    relevant = np.empty(users, np.int64)
    ranks = np.empty((len(rankers), users), np.int64)
    first = np.empty((len(rankers), users, top), np.int64)
    step = max(1, CHUNK // items)
    for start in range(0, users, step):
        rows = slice(start, min(start + step, users))
        tastes = rng.normal(size=(rows.stop - start, factors))
        utility = tastes @ features.T + appeal
        relevant[rows] = (2 * utility + rng.gumbel(size=utility.shape)).argmax(axis=1)
        for ranker, (name, taste) in enumerate(rankers.items()):
            scores = taste.personal * tastes @ seen[name].T + taste.popular * appeal
            own = np.take_along_axis(scores, relevant[rows, None], axis=1)
            ranks[ranker, rows] = 1 + (scores > own).sum(axis=1)
            best = np.argpartition(-scores, top, axis=1)[:, :top]
            order = np.take_along_axis(-scores, best, axis=1).argsort(axis=1)
            first[ranker, rows] = np.take_along_axis(best, order, axis=1)
    return Catalogue(features, popularity, relevant, tuple(rankers), ranks, first)

"""Initial logging policies: they score every document, and their top N are the candidates."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ultrbench.datasets.split import Split
from ultrbench.errors import UserError
from ultrbench.own_code import find_function, own_file, read_only
from ultrbench.ranking import lambdamart, svm
from ultrbench.seeding import stream

MIN_QUERIES, MIN_PAIRS = 5, 50


@dataclass(frozen=True)
class QuerySplit:
    """Which training queries train policies and which are logged.

    Attributes
    ----------
    policy : numpy.ndarray
        int64, queries whose grades a policy may see, in seeded order.
    logged : numpy.ndarray
        int64, queries whose clicks are logged, ascending.
    """

    policy: np.ndarray
    logged: np.ndarray


def count_of(share: float, total: int) -> int:
    """Return a share of a number, rounded up.

    Parameters
    ----------
    share : float
        From 0 to 1.
    total : int
        What it is a share of.

    Returns
    -------
    int
        The smallest whole number that is no less, apart from rounding of the product.

    Examples
    --------
    >>> count_of(0.01, 35), count_of(0.07, 100)  # 0.07 * 100 is 7.000000000000001 to a computer
    (1, 7)
    """
    return int(np.ceil(round(share * total, 9)))


def split_queries(queries: int, *, mode: str, pool: float, seed: int) -> QuerySplit:
    """Part the training queries into those for policies and those for clicks.

    Parameters
    ----------
    queries : int
        Number of training queries.
    mode : {"disjoint", "shared"}
        ``disjoint`` puts a share `pool` aside for the policies, the same for every policy of a
        replicate; ``shared`` lets policies learn from the grades of logged queries.
    pool : float
        Share of the training queries put aside.
    seed : int
        Replicate seed.

    Returns
    -------
    QuerySplit
        The two parts; under ``shared`` both are all queries.

    Raises
    ------
    UserError
        When no query is left to log clicks for.

    Examples
    --------
    >>> parts = split_queries(10, mode="disjoint", pool=0.3, seed=1)
    >>> len(parts.policy), len(parts.logged)
    (3, 7)
    """
    order = stream(seed, "policy queries").permutation(queries)
    if mode == "shared":
        return QuerySplit(order, np.arange(queries))
    put_aside = count_of(pool, queries)
    if put_aside >= queries:
        raise UserError(
            f"policy_queries.pool: {pool} of {queries} training queries leaves none to log clicks"
            " for; use a smaller share or a larger data set"
        )
    return QuerySplit(order[:put_aside], np.sort(order[put_aside:]))


def unequal_pairs(grades: np.ndarray) -> int:
    """Return the number of document pairs with different grades in one list.

    Parameters
    ----------
    grades : numpy.ndarray
        Integer grades, ``[documents]``.

    Returns
    -------
    int
        Pairs, each counted once.

    Examples
    --------
    >>> unequal_pairs(np.array([0, 0, 1, 4]))  # all 6 but the pair of zeros
    5
    """
    counts = np.bincount(grades)
    return int((counts.sum() ** 2 - (counts**2).sum()) // 2)


def sample_queries(train: Split, order: np.ndarray, share: float) -> np.ndarray:
    """Take the first queries of a seeded order: a share of all, and enough to learn from.

    Parameters
    ----------
    train : Split
        The training split.
    order : numpy.ndarray
        int64, the queries that may be taken, in seeded order.
    share : float
        Share of all training queries, rounded up; more are taken in the same order until there
        are at least 5 queries and 50 pairs of unequal grade.

    Returns
    -------
    numpy.ndarray
        int64, ascending.

    Raises
    ------
    UserError
        When the queries of `order` run out first.

    Examples
    --------
    Six queries of 10 documents, of which 5 are relevant: 25 unequal pairs each.

    >>> train = Split(
    ...     np.zeros((60, 1)), np.arange(60) % 2, np.arange(7) * 10, np.arange(6).astype(str)
    ... )
    >>> sample_queries(train, np.array([5, 3, 1, 0, 2, 4]), 0.1).tolist()
    [0, 1, 2, 3, 5]
    """
    wanted = max(count_of(share, len(train.query_ids)), MIN_QUERIES)
    pairs = 0
    for taken, q in enumerate(order, start=1):
        pairs += unequal_pairs(train.grades[train.query_ptr[q] : train.query_ptr[q + 1]])
        if taken >= wanted and pairs >= MIN_PAIRS:
            return np.sort(order[:taken])
    raise UserError(
        f"a logging policy needs {wanted} queries with {MIN_PAIRS} pairs of unequal grade, and the"
        f" {len(order)} training queries that it may use have {pairs}; use a larger data set, a"
        " policy of kind random, or, with policy_queries.mode disjoint, a larger"
        " policy_queries.pool or mode shared"
    )


def score_documents(
    policy: dict[str, Any], splits: dict[str, Split], order: np.ndarray, *, ymax: int, seed: int
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Train a logging policy and score every document of every split.

    Parameters
    ----------
    policy : dict
        ``kind`` (``random``, ``ranking_svm``, ``lambdamart``, or ``file.py:function`` in a file of
        one's own) and the parameters of the kind.
    splits : dict of Split
        By name; only the grades of the training queries that are sampled are used.
    order : numpy.ndarray
        int64, training queries that the policy may learn from, in seeded order.
    ymax : int
        Top grade of the data set.
    seed : int
        Replicate seed.

    Returns
    -------
    scores : dict of numpy.ndarray
        float64 ``[documents]`` for each split.
    sample : numpy.ndarray
        int64, training queries whose grades were used, ascending; empty for ``random``; all that
        may be used for a policy of one's own.

    Raises
    ------
    UserError
        As `sample_queries`; when a policy of one's own gives no score for each document.

    Examples
    --------
    >>> test = Split(np.zeros((3, 1)), np.zeros(3, int), np.array([0, 3]), np.array(["q1"]))
    >>> scores, sample = score_documents(
    ...     {"kind": "random"}, {"test": test}, np.array([0]), ymax=4, seed=1
    ... )
    >>> scores["test"].shape, sample.size
    ((3,), 0)
    """
    if policy["kind"] == "random":
        scores = {
            name: stream(seed, "random policy", name).random(len(split.grades))
            for name, split in splits.items()
        }
        return scores, np.empty(0, dtype=np.int64)
    if own_file(policy["kind"]):
        return _own_scores(policy, splits, order, ymax=ymax, seed=seed), np.sort(order)
    train = splits["train"]
    sample = sample_queries(train, order, policy["share"])
    if policy["kind"] == "ranking_svm":
        predict = svm.fit(train, sample, cost=policy["cost"], seed=seed)
    else:
        predict = lambdamart.fit(
            train,
            sample,
            ymax=ymax,
            trees=policy["trees"],
            leaves=policy["leaves"],
            learning_rate=policy["learning_rate"],
            seed=seed,
        )
    return {name: predict(split.features) for name, split in splits.items()}, sample


def _own_scores(
    policy: dict[str, Any], splits: dict[str, Split], order: np.ndarray, **about: Any
) -> dict[str, np.ndarray]:
    parameters = {key: value for key, value in policy.items() if key != "kind"}
    kind = policy["kind"]
    wanted = {name: len(split.grades) for name, split in splits.items()}
    fields = ("features", "grades", "query_ptr", "query_ids")
    lent = {
        name: replace(split, **{field: read_only(getattr(split, field)) for field in fields})
        for name, split in splits.items()
    }
    scores = find_function({}, kind)(lent, read_only(order), **about, **parameters)
    try:
        given = {name: np.ma.asarray(scores[name]) for name in wanted}
        scores = {
            name: np.ma.filled(values.astype(np.float64, casting="same_kind"), np.nan)
            for name, values in given.items()
        }
    except Exception:  # a mapping of one's own may raise whatever it likes
        raise UserError(
            f"{kind}: a dict is wanted with the scores of the documents of {', '.join(wanted)}"
        ) from None
    for name, documents in wanted.items():
        if scores[name].shape != (documents,) or not np.isfinite(scores[name]).all():
            raise UserError(
                f"{kind}: one finite score for each of the {documents} documents of {name} is"
                f" wanted, got shape {list(scores[name].shape)}"
            )
    return scores


def truncate(
    split: Split, scores: np.ndarray, queries: np.ndarray, list_size: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the top documents of each query by score: its candidates.

    Parameters
    ----------
    split : Split
        The split.
    scores : numpy.ndarray
        float64 ``[documents]``; ties go to the smaller document row.
    queries : numpy.ndarray
        int64, queries to truncate.
    list_size : int
        N, documents kept a query.

    Returns
    -------
    documents : numpy.ndarray
        int64 ``[queries, list_size]``, document rows by descending score; -1 where the query has
        fewer documents.
    scores : numpy.ndarray
        float64 ``[queries, list_size]``; NaN where padded.

    Examples
    --------
    >>> split = Split(np.zeros((3, 1)), np.zeros(3, int), np.array([0, 2, 3]), np.array(["a", "b"]))
    >>> documents, scores = truncate(split, np.array([0.1, 0.7, 0.2]), np.array([0, 1]), 2)
    >>> documents.tolist(), scores.tolist()
    ([[1, 0], [2, -1]], [[0.7, 0.1], [0.2, nan]])
    """
    ranked = np.lexsort((np.arange(len(scores)), -scores, split.query_of_row))
    offsets = np.arange(list_size)
    inside = offsets < split.lengths[queries, None]
    index = np.where(inside, split.query_ptr[queries, None] + offsets, 0)
    documents = np.where(inside, ranked[index], -1)
    return documents, np.where(inside, scores[documents], np.nan)

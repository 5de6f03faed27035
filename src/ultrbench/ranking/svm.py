"""Linear ranking SVM on a few queries: the weak logging policy."""

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from ultrbench.datasets.split import Split
from ultrbench.seeding import stream

MAX_PAIRS = 100_000
CHUNK_ROWS = 65_536


def feature_range(features: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return smallest and largest finite value of each feature, float64 ``[features]``.

    Works in blocks of rows, so that a matrix larger than memory can be read from disk.

    Parameters
    ----------
    features : numpy.ndarray
        ``[documents, features]``.

    Returns
    -------
    low, high : numpy.ndarray
        float64 ``[features]``; both 0 for a feature without a finite value.

    Examples
    --------
    >>> [a.tolist() for a in feature_range(np.array([[1.0, np.nan], [3.0, np.inf]]))]
    [[1.0, 0.0], [3.0, 0.0]]
    """
    low = np.full(features.shape[1], np.inf)
    high = np.full(features.shape[1], -np.inf)
    for start in range(0, len(features), CHUNK_ROWS):
        block = np.asarray(features[start : start + CHUNK_ROWS], dtype=np.float64)
        low = np.fmin(low, np.fmin.reduce(np.where(np.isfinite(block), block, np.inf), axis=0))
        high = np.fmax(high, np.fmax.reduce(np.where(np.isfinite(block), block, -np.inf), axis=0))
    empty = low > high
    return np.where(empty, 0.0, low), np.where(empty, 0.0, high)


def normalise(features: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Map features to [-1, 1] on a logarithmic scale; missing values become -1.

    x -> 2 log(1 + x - low)/log(1 + high - low) - 1, clipped at the ends: LETOR features span many
    orders of magnitude, and a linear model needs them on one scale (Ai et al. 2018 do the same
    for Istella-S).

    Parameters
    ----------
    features : numpy.ndarray
        ``[documents, features]``.
    low, high : numpy.ndarray
        ``[features]``, the range on the training split (`feature_range`).

    Returns
    -------
    numpy.ndarray
        float64 ``[documents, features]``; constant features are -1.

    Examples
    --------
    >>> features = np.array([[0.0], [9.0], [99.0], [np.nan]])
    >>> normalise(features, np.zeros(1), np.full(1, 99.0)).tolist()
    [[-1.0], [0.0], [1.0], [-1.0]]
    """
    span = np.log1p(high - low)
    present = np.nan_to_num(features.astype(np.float64), nan=-np.inf)
    shifted = np.log1p(np.clip(present - low, 0, None))
    return np.clip(2 * shifted / np.where(span > 0, span, np.inf) - 1, -1, 1)


def pair_differences(
    features: np.ndarray, grades: np.ndarray, query_ptr: np.ndarray, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return one row for each pair of unequal grades within a query, better minus worse.

    At most 100,000 pairs, drawn with `seed`; half of them are turned round, so that both classes
    are there.

    Parameters
    ----------
    features : numpy.ndarray
        float64 ``[documents, features]``.
    grades : numpy.ndarray
        Integer grades, ``[documents]``.
    query_ptr : numpy.ndarray
        int64 ``[queries + 1]``.
    seed : int
        Replicate seed.

    Returns
    -------
    differences : numpy.ndarray
        float64 ``[pairs, features]``.
    labels : numpy.ndarray
        int64 ``[pairs]``, 1 or -1, alternating.

    Examples
    --------
    >>> features, grades = np.array([[1.0], [5.0], [2.0]]), np.array([0, 2, 1])
    >>> [a.tolist() for a in pair_differences(features, grades, np.array([0, 3]), 0)]
    [[[4.0], [-3.0], [1.0]], [1, -1, 1]]
    """
    better, worse = [], []
    for start, end in pairwise(query_ptr):
        i, j = np.nonzero(grades[start:end, None] > grades[None, start:end])
        better.append(i + start)
        worse.append(j + start)
    i, j = np.concatenate(better), np.concatenate(worse)
    if len(i) > MAX_PAIRS:
        kept = np.sort(stream(seed, "pairs").choice(len(i), MAX_PAIRS, replace=False))
        i, j = i[kept], j[kept]
    labels = np.where(np.arange(len(i)) % 2 == 0, 1, -1)
    return (features[i] - features[j]) * labels[:, None], labels


def fit(
    train: Split, queries: np.ndarray, *, cost: float, seed: int
) -> Callable[[np.ndarray], np.ndarray]:
    """Fit a linear ranking SVM to the grades of some training queries.

    Joachims (KDD 2002), with the squared hinge loss of Chapelle and Keerthi (2010). `cost`
    weighs the mean loss of a pair, so that C = cost / pairs for each: sharing it out over the
    queries, as SVMrank does, all but removes the regularisation where there are five of them
    (on a slice of MSLR it took fifty times as long, for a lower nDCG on held-out queries).

    Parameters
    ----------
    train : Split
        The training split; the range of features is taken from all of it, grades only from
        `queries`.
    queries : numpy.ndarray
        int64, training queries, ascending.
    cost : float
        Weight of the mean loss of a pair against half the squared norm of the weights.
    seed : int
        Replicate seed.

    Returns
    -------
    callable
        Maps features ``[documents, features]`` to scores, float64 ``[documents]``.

    Examples
    --------
    >>> features = np.array([[1.0], [9.0], [2.0], [8.0]])
    >>> train = Split(features, np.array([0, 1, 0, 1]), np.array([0, 2, 4]), np.array(["a", "b"]))
    >>> predict = fit(train, np.array([0, 1]), cost=200, seed=1)
    >>> predict(features).argsort().tolist()
    [0, 2, 3, 1]
    """
    from sklearn.svm import LinearSVC

    low, high = feature_range(train.features)
    lengths = train.lengths[queries]
    rows = np.concatenate([np.arange(*train.query_ptr[q : q + 2]) for q in queries])
    query_ptr = np.concatenate([[0], np.cumsum(lengths)])
    differences, labels = pair_differences(
        normalise(train.features[rows], low, high), train.grades[rows], query_ptr, seed
    )
    model = LinearSVC(
        C=cost / len(labels), dual=False, fit_intercept=False, random_state=0, max_iter=10_000
    )
    weights = model.fit(differences, labels).coef_[0]

    def predict(features: np.ndarray) -> np.ndarray:
        blocks = range(0, len(features), CHUNK_ROWS)
        scores = [normalise(features[b : b + CHUNK_ROWS], low, high) @ weights for b in blocks]
        return np.concatenate(scores) if scores else np.empty(0)

    return predict

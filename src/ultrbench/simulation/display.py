"""Displayed lists: the order in which a display policy shows the candidates."""

import numpy as np


def order_by_score(documents: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Return the displayed order of candidates: by score, descending.

    Parameters
    ----------
    documents : numpy.ndarray
        int64 ``[queries, candidates]``, document rows; -1 is padding and goes last.
    scores : numpy.ndarray
        float64 ``[queries, candidates]``. Ties go to the smaller document row, whatever the
        order of the columns.

    Returns
    -------
    numpy.ndarray
        int64 ``[queries, candidates]``, column indices in displayed order.

    Examples
    --------
    >>> order_by_score(np.array([[7, 3, -1]]), np.array([[0.5, 0.5, 9.0]])).tolist()
    [[1, 0, 2]]
    """
    key = np.where(documents < 0, -np.inf, scores)
    return np.lexsort((documents, -key), axis=1)


def shuffle(documents: np.ndarray, lists: int, rng: np.random.Generator) -> np.ndarray:
    """Return uniformly random displayed orders, `lists` for each query.

    Parameters
    ----------
    documents : numpy.ndarray
        int64 ``[queries, candidates]``, document rows; -1 is padding and goes last.
    lists : int
        Displayed lists a query.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    numpy.ndarray
        int64 ``[queries * lists, candidates]``, column indices; the lists of a query are
        neighbours.

    Examples
    --------
    >>> shuffle(np.array([[7, 3, -1]]), 2, np.random.default_rng(0))[:, 2].tolist()
    [2, 2]
    """
    keys = rng.random((len(documents) * lists, documents.shape[1]))
    keys[np.repeat(documents, lists, axis=0) < 0] = np.inf
    return np.argsort(keys, axis=1, kind="stable")


def plackett_luce(
    documents: np.ndarray,
    scores: np.ndarray,
    lists: int,
    rng: np.random.Generator,
    *,
    temperature: float,
) -> np.ndarray:
    """Return displayed orders drawn from a Plackett-Luce model, `lists` for each query.

    Documents are drawn one after the other without replacement, each with a probability
    proportional to exp(score / temperature): the order of the scores plus Gumbel noise.

    Parameters
    ----------
    documents, scores : numpy.ndarray
        As in `order_by_score`.
    lists : int
        Displayed lists a query.
    rng : numpy.random.Generator
        Source of randomness.
    temperature : float
        On the scale of the scores; towards 0 the order is that of `order_by_score`.

    Returns
    -------
    numpy.ndarray
        As in `shuffle`.

    Examples
    --------
    >>> documents, scores = np.array([[7, 3, -1]]), np.array([[0.0, 9.0, np.nan]])
    >>> rng = np.random.default_rng(0)
    >>> plackett_luce(documents, scores, 2, rng, temperature=0.1).tolist()
    [[1, 0, 2], [1, 0, 2]]
    """
    repeated, means = (np.repeat(a, lists, axis=0) for a in (documents, scores))
    # Noise times temperature, not scores over it: a small temperature must not overflow.
    return order_by_score(repeated, means + temperature * rng.gumbel(size=means.shape))

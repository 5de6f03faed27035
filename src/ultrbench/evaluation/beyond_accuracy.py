"""Beyond accuracy: coverage, diversity, exposure, novelty and serendipity of displayed items.

Items are numbered by row. A *catalogue* is a set of items that compete for the same places:
`catalogue_ptr` gives consecutive catalogues, ``[0, items]`` for one that all lists share. In
learning-to-rank data sets a document belongs to one query: there each query is a catalogue of its
own (``catalogue_ptr`` is the split's ``query_ptr``), and `require_shared_catalogue` refuses what
would compare documents of different queries.
"""

import numpy as np

from ultrbench.errors import UserError


def require_shared_catalogue(shown: np.ndarray, queries: np.ndarray) -> None:
    """Refuse lists whose items have no identity across queries.

    Parameters
    ----------
    shown : numpy.ndarray
        int ``[lists, ranks]``, displayed items; -1 pads.
    queries : numpy.ndarray
        int ``[lists]``.

    Raises
    ------
    UserError
        Where there are several queries and no item was shown for two of them.

    Examples
    --------
    >>> require_shared_catalogue(np.array([[0, 1], [1, 2]]), np.array([0, 1]))
    """
    row, column = np.nonzero(shown >= 0)
    pairs = np.unique(np.column_stack([shown[row, column], queries[row]]), axis=0)
    if len(np.unique(pairs[:, 1])) > 1 and len(np.unique(pairs[:, 0])) == len(pairs):
        raise UserError(
            "No item is shown for two queries: these documents belong to single queries and form "
            "no common catalogue. Pass the split's query_ptr as catalogue_ptr for the measures "
            "within queries."
        )


def exposure(
    shown: np.ndarray, theta: np.ndarray, items: int, sessions: np.ndarray | None = None
) -> np.ndarray:
    """Return how often each item was examined: the examination probability of its places, summed.

    Parameters
    ----------
    shown : numpy.ndarray
        int ``[lists, ranks]``, displayed items; -1 pads.
    theta : numpy.ndarray
        float ``[ranks]``, examination probability by rank.
    items : int
        Items there are.
    sessions : numpy.ndarray, optional
        int ``[lists]``, how often each list was displayed; default once.

    Returns
    -------
    numpy.ndarray
        float64 ``[items]``.

    References
    ----------
    Singh and Joachims 2018.

    Examples
    --------
    >>> exposure(np.array([[2, 0], [2, -1]]), np.array([1.0, 0.5]), 3).tolist()
    [0.5, 0.0, 2.0]
    """
    sessions = np.ones(len(shown)) if sessions is None else sessions
    seen = sessions[:, None] * np.asarray(theta, np.float64)[: shown.shape[1]]
    real = shown >= 0
    return np.bincount(shown[real], weights=seen[real], minlength=items)


def coverage(exposed: np.ndarray, catalogue_ptr: np.ndarray) -> np.ndarray:
    """Return the share of each catalogue's items that were exposed at all.

    Parameters
    ----------
    exposed : numpy.ndarray
        float ``[items]``, as `exposure` returns it.
    catalogue_ptr : numpy.ndarray
        int ``[catalogues + 1]``, see the module.

    Returns
    -------
    numpy.ndarray
        float64 ``[catalogues]``, in [0, 1]; NaN for an empty catalogue.

    Examples
    --------
    >>> coverage(np.array([0.5, 0.0, 2.0]), np.array([0, 3])).round(3).tolist()
    [0.667]
    """
    sizes = np.diff(catalogue_ptr)
    found = np.diff(np.append(0, np.cumsum(np.asarray(exposed) > 0))[catalogue_ptr])
    return np.divide(found, sizes, out=np.full(len(sizes), np.nan), where=sizes > 0)


def gini(exposed: np.ndarray, catalogue_ptr: np.ndarray) -> np.ndarray:
    """Return the Gini coefficient of exposure in each catalogue.

    sum_i (2 i - n - 1) x_(i) / (n sum x), x ascending: 0 where all items get the same, 1 - 1/n
    where one gets all.

    Parameters
    ----------
    exposed : numpy.ndarray
        float ``[items]``, 0 or more.
    catalogue_ptr : numpy.ndarray
        int ``[catalogues + 1]``, see the module.

    Returns
    -------
    numpy.ndarray
        float64 ``[catalogues]``; NaN for a catalogue without exposure.

    References
    ----------
    Gini 1912; Fleder and Hosanagar 2009 for recommenders.

    Examples
    --------
    >>> gini(np.array([1.0, 1.0, 0.0, 3.0]), np.array([0, 2, 4])).tolist()
    [0.0, 0.5]
    """
    sizes = np.diff(catalogue_ptr)
    catalogue = np.repeat(np.arange(len(sizes)), sizes)
    ordered = np.asarray(exposed, np.float64)[np.lexsort((exposed, catalogue))]
    place = np.arange(len(ordered)) - np.repeat(catalogue_ptr[:-1], sizes) + 1
    signed = (2 * place - np.repeat(sizes, sizes) - 1) * ordered
    above = np.bincount(catalogue, weights=signed, minlength=len(sizes))
    below = sizes * np.bincount(catalogue, weights=ordered, minlength=len(sizes))
    return np.divide(above, below, out=np.full(len(sizes), np.nan), where=below > 0)


def novelty(shown: np.ndarray, popularity: np.ndarray, catalogue_ptr: np.ndarray) -> np.ndarray:
    """Return the mean surprisal, -log2 of the share of popularity, of each list's items.

    Parameters
    ----------
    shown : numpy.ndarray
        int ``[lists, ranks]``, displayed items; -1 pads.
    popularity : numpy.ndarray
        int ``[items]``, impressions or clicks of an earlier log. Shares are taken within the
        item's catalogue, of counts plus one: an item never seen is rare, not infinitely so.
    catalogue_ptr : numpy.ndarray
        int ``[catalogues + 1]``, see the module.

    Returns
    -------
    numpy.ndarray
        float64 ``[lists]``, in bits; NaN for an empty list.

    References
    ----------
    Zhou et al. 2010; Vargas and Castells 2011.

    Examples
    --------
    >>> novelty(np.array([[0, 1]]), np.array([2, 0]), np.array([0, 2])).round(4).tolist()
    [1.2075]
    """
    counts = np.asarray(popularity) + 1.0
    sizes = np.diff(catalogue_ptr)
    catalogue = np.repeat(np.arange(len(sizes)), sizes)
    totals = np.bincount(catalogue, weights=counts, minlength=len(sizes))
    surprisal = -np.log2(counts / totals[catalogue])
    real = shown >= 0
    return _mean_of_list(np.where(real, surprisal[shown], 0.0).sum(axis=1), real.sum(axis=1))


def intra_list_diversity(
    shown: np.ndarray, features: np.ndarray, distance: str = "cosine"
) -> np.ndarray:
    """Return the mean distance between the features of all pairs of items of each list.

    Parameters
    ----------
    shown : numpy.ndarray
        int ``[lists, ranks]``, displayed items; -1 pads.
    features : numpy.ndarray
        float ``[items, features]``, without NaN; scale them first where their ranges differ.
    distance : {"cosine", "euclidean"}
        1 - cosine (1 to a vector of zeros), or the Euclidean distance.

    Returns
    -------
    numpy.ndarray
        float64 ``[lists]``; NaN for a list of fewer than two items.

    References
    ----------
    Ziegler et al. 2005, as mean distance.

    Examples
    --------
    >>> features = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 0.0]])
    >>> intra_list_diversity(np.array([[0, 1, 2], [0, 2, -1]]), features).round(4).tolist()
    [0.6667, 0.0]
    """
    if distance not in ("cosine", "euclidean"):
        raise UserError(f"distance is 'cosine' or 'euclidean', not {distance!r}.")
    total, pairs = np.zeros(len(shown)), np.zeros(len(shown))
    items = np.unique(shown[shown >= 0])
    norms = np.zeros(len(features))
    vectors = features[items]
    norms[items] = np.sqrt(np.einsum("if,if->i", vectors, vectors, dtype=np.float64))
    # Rank by rank, so that no array [lists, ranks, ranks, features] is held.
    for first in range(shown.shape[1]):
        for second in range(first + 1, shown.shape[1]):
            rows = np.flatnonzero((shown[:, first] >= 0) & (shown[:, second] >= 0))
            a, b = shown[rows, first], shown[rows, second]
            x, y = features[a].astype(np.float64), features[b].astype(np.float64)
            if distance == "euclidean":
                apart = np.sqrt(((x - y) ** 2).sum(axis=1))
            else:
                length = norms[a] * norms[b]
                dot = np.einsum("if,if->i", x, y)
                apart = 1 - np.divide(dot, length, out=np.zeros_like(dot), where=length > 0)
            total[rows] += apart
            pairs[rows] += 1
    return _mean_of_list(total, pairs)


def serendipity(shown: np.ndarray, expected: np.ndarray, relevance: np.ndarray) -> np.ndarray:
    """Return the mean relevance of each list's items, of which expected ones count nothing.

    Parameters
    ----------
    shown : numpy.ndarray
        int ``[lists, ranks]``, the first k items of each list; -1 pads.
    expected : numpy.ndarray
        int ``[lists, other ranks]``, what the popularity or the logging order would have shown
        there; -1 pads.
    relevance : numpy.ndarray
        float ``[lists, ranks]``, relevance of the items in `shown`, such as 1 for a grade above 0.

    Returns
    -------
    numpy.ndarray
        float64 ``[lists]``; NaN for an empty list.

    References
    ----------
    Murakami et al. 2008; Ge et al. 2010.

    Examples
    --------
    >>> shown, relevance = np.array([[4, 7, 9]]), np.array([[1, 1, 0]])
    >>> serendipity(shown, np.array([[4, 5, 6]]), relevance).round(4).tolist()  # 7 of three
    [0.3333]
    """
    real = shown >= 0
    surprising = real.copy()
    for column in np.asarray(expected).T:
        surprising &= shown != column[:, None]
    return _mean_of_list((relevance * surprising).sum(axis=1), real.sum(axis=1))


def _mean_of_list(total: np.ndarray, count: np.ndarray) -> np.ndarray:
    return np.divide(total, count, out=np.full(len(total), np.nan), where=count > 0)

"""How many queries have tied scores, and how much a metric depends on their order."""

from collections.abc import Sequence

import numpy as np

from ultrbench.evaluation.lists import rank_documents
from ultrbench.evaluation.metrics import compute_metrics, parse_metric


def tied_queries(
    scores: np.ndarray, mask: np.ndarray | None = None, *, cutoff: int | None
) -> np.ndarray:
    """Tell for each query whether the order of its first `cutoff` ranks rests on a tie.

    That is so where a document in the first `cutoff` ranks has the score of another one, be that
    one inside or just behind them.

    Parameters
    ----------
    scores, mask
        ``[queries, documents]``, as in `ultrbench.evaluation.metrics`.
    cutoff : int or None
        Ranks that count; None for all.

    Returns
    -------
    numpy.ndarray
        bool ``[queries]``; its mean is the share of tied queries.

    Examples
    --------
    >>> tied_queries(np.array([[3.0, 2.0, 2.0], [3.0, 2.0, 1.0]]), cutoff=2).tolist()
    [True, False]
    """
    scores = np.asarray(scores, dtype=np.float64)
    order = rank_documents(scores, mask, None if cutoff is None else cutoff + 1)
    ranked = np.take_along_axis(scores, order, axis=1)
    equal = ranked[:, 1:] == ranked[:, :-1]
    if mask is not None:
        equal &= np.take_along_axis(mask, order[:, 1:], axis=1)
    return equal.any(axis=1)


def tie_sensitivity(
    names: Sequence[str],
    scores: np.ndarray,
    grades: np.ndarray,
    mask: np.ndarray | None = None,
    ymax: int | None = None,
    *,
    orders: int = 20,
    rng: np.random.Generator,
) -> dict[str, float]:
    """Return how far the mean of each metric moves when ties are broken at random.

    Parameters
    ----------
    names, scores, grades, mask, ymax
        As in `ultrbench.evaluation.metrics.compute_metrics`.
    orders : int
        Random tie orders drawn.
    rng : numpy.random.Generator
        Source of the orders.

    Returns
    -------
    dict of str to float
        By canonical name: the mean over orders of the absolute change of the metric's mean over
        queries, against ties in document order.

    Examples
    --------
    >>> constant = np.zeros((1, 2))  # P@1 is 1 in document order, 1/2 of the time 0
    >>> change = tie_sensitivity(["P@1"], constant, np.array([[1, 0]]), orders=4000,
    ...                          rng=np.random.default_rng(1))
    >>> round(change["P@1"], 1)
    0.5
    """
    scores, grades = np.asarray(scores), np.asarray(grades)
    mask = np.ones(scores.shape, bool) if mask is None else mask
    changes = {parse_metric(name).name: 0.0 for name in names}
    rows = tied_queries(scores, mask, cutoff=scores.shape[1])
    if not rows.any():
        return changes
    total, scores, grades, mask = len(scores), scores[rows], grades[rows], mask[rows]
    stable = compute_metrics(names, scores, grades, mask, ymax)
    for _ in range(orders):
        order = rng.random(scores.shape).argsort(axis=1)
        s, g, m = (np.take_along_axis(a, order, axis=1) for a in (scores, grades, mask))
        for name, values in compute_metrics(names, s, g, m, ymax).items():
            changes[name] += abs(float(np.sum(values - stable[name]))) / total / orders
    return changes

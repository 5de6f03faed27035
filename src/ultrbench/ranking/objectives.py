"""IPW objectives for LightGBM: gradients and hessians on lists with target weights.

Propensities never enter as LightGBM's ``weight``: it multiplies gradients after the pairs of a
query are summed, and zeros on documents without clicks would destroy the pairs. Here the target
weight w_i of a document, the sum of its clicks over theta at their positions, is part of the loss.

A correction that subtracts an expected number of clicks (`ultrbench.ranking.affine`) can make w_i
negative. The gradients then are those of the loss as it stands, linear in w and so unbiased;
clipping at 0 would not be. But the loss has no minimum where negative weights prevail, so the
hessian takes |w_i| without the factor that vanishes: such a document moves by no more than the
learning rate a tree.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

HESSIAN_FLOOR = 1e-6
PAIR_BLOCK = 2_000_000

Objective = Callable[[np.ndarray, object], tuple[np.ndarray, np.ndarray]]


def normalise_weights(weights: np.ndarray, query_ptr: np.ndarray) -> np.ndarray:
    """Divide target weights by the mean total weight of a query.

    The scale of the weights then does not interact with ``lambda_l2``, ``min_sum_hessian`` and
    the floor of the hessian, which therefore act alike on every method.

    Parameters
    ----------
    weights : numpy.ndarray
        float64 ``[documents]``, target weights, 0 or more.
    query_ptr : numpy.ndarray
        int64 ``[queries + 1]``.

    Returns
    -------
    numpy.ndarray
        float64 ``[documents]``; all zeros stay zeros.

    Examples
    --------
    >>> normalise_weights(np.array([2.0, 0.0, 6.0]), np.array([0, 2, 3])).tolist()
    [0.5, 0.0, 1.5]
    """
    total = weights.sum()
    return weights * ((len(query_ptr) - 1) / total) if total > 0 else weights


def list_softmax(scores: np.ndarray, query_ptr: np.ndarray) -> np.ndarray:
    """Return the softmax of the scores within each list.

    Parameters
    ----------
    scores : numpy.ndarray
        float64 ``[documents]``, finite.
    query_ptr : numpy.ndarray
        int64 ``[queries + 1]``; every query has at least one document.

    Returns
    -------
    numpy.ndarray
        float64 ``[documents]``, adding up to 1 in each list.

    Examples
    --------
    >>> list_softmax(np.array([0.0, 0.0, 5.0]), np.array([0, 2, 3])).tolist()
    [0.5, 0.5, 1.0]
    """
    lengths = np.diff(query_ptr)
    starts = query_ptr[:-1]
    shifted = np.exp(scores - np.repeat(np.maximum.reduceat(scores, starts), lengths))
    return shifted / np.repeat(np.add.reduceat(shifted, starts), lengths)


def softmax_objective(weights: np.ndarray, query_ptr: np.ndarray) -> Objective:
    """Listwise softmax with IPW: loss_q = -sum_i w_i log softmax(f)_i.

    With W = sum_i w_i and p = softmax(f), the gradient is W p - w and the diagonal of the hessian
    W p (1 - p). Ai et al. (SIGIR 2018), equation 4, with the sum over sessions taken first.
    With negative weights, sum_i |w_i| p (1 - p) + max(-w_i, 0).

    Parameters
    ----------
    weights : numpy.ndarray
        float64 ``[documents]``, target weights, rows in canonical order; they may be negative.
    query_ptr : numpy.ndarray
        int64 ``[queries + 1]``; every query has at least one document.

    Returns
    -------
    callable
        ``(scores, dataset) -> (gradient, hessian)`` for ``lgb.train``.

    Examples
    --------
    >>> objective = softmax_objective(np.array([1.0, 0.0]), np.array([0, 2]))
    >>> objective(np.zeros(2), None)[0].tolist()
    [-0.5, 0.5]
    """
    lengths, starts = np.diff(query_ptr), query_ptr[:-1]
    totals = np.repeat(np.add.reduceat(weights, starts), lengths)
    sizes = np.repeat(np.add.reduceat(np.abs(weights), starts), lengths)
    negative = np.maximum(-weights, 0.0)

    def objective(scores: np.ndarray, _: object) -> tuple[np.ndarray, np.ndarray]:
        p = list_softmax(scores, query_ptr)
        hessian = sizes * p * (1 - p) + negative
        return totals * p - weights, np.maximum(hessian, HESSIAN_FLOOR)

    return objective


@dataclass(frozen=True)
class Pairs:
    """The pairs of places i < j of a list.

    Attributes
    ----------
    first, second : numpy.ndarray
        int64 ``[pairs]``, i and j.
    sides : numpy.ndarray
        float64 ``[pairs, width]``, 1 at i and -1 at j: what is summed over pairs by place.
    """

    first: np.ndarray
    second: np.ndarray
    sides: np.ndarray

    @classmethod
    def of(cls, width: int) -> "Pairs":
        """Return all pairs of `width` places.

        Examples
        --------
        >>> Pairs.of(3).sides.tolist()
        [[1.0, -1.0, 0.0], [1.0, 0.0, -1.0], [0.0, 1.0, -1.0]]
        """
        first, second = np.triu_indices(width, 1)
        places = np.eye(width)
        return cls(first, second, places[first] - places[second])

    def gaps(self, values: np.ndarray) -> np.ndarray:
        """Return values at i less those at j, ``[lists, pairs]``."""
        return values[:, self.first] - values[:, self.second]

    def discount_gaps(self, ranks: np.ndarray, real: np.ndarray) -> np.ndarray:
        """Return |1/log2(1 + rank_i) - 1/log2(1 + rank_j)| of each pair (Burges 2010).

        Parameters
        ----------
        ranks : numpy.ndarray
            int64 ``[lists, width]``, from 0.
        real : numpy.ndarray
            bool ``[lists, width]``; a pair with padding has gap 0.

        Returns
        -------
        numpy.ndarray
            float64 ``[lists, pairs]``.

        Examples
        --------
        >>> Pairs.of(2).discount_gaps(np.array([[0, 2]]), np.array([[True, True]])).tolist()
        [[0.5]]
        """
        discount = (1 / np.log2(2 + np.arange(ranks.shape[1] + 1)))[ranks]
        return np.abs(self.gaps(discount)) * (real[:, self.first] & real[:, self.second])


def pairwise_objective(weights: np.ndarray, query_ptr: np.ndarray) -> Objective:
    """LambdaMART with IPW: loss_q = sum_i w_i sum_{j != i} |delta_ij| log(1 + exp(f_j - f_i)).

    Every weighted document i is compared with **all** other documents j of its list (Joachims et
    al., WSDM 2017); comparing only with unclicked documents is biased even with the true theta.
    |delta_ij| is the gap of `Pairs.discount_gaps` by the current scores, with ties in row order.

    Parameters
    ----------
    weights, query_ptr
        As in `softmax_objective`.

    Returns
    -------
    callable
        ``(scores, dataset) -> (gradient, hessian)`` for ``lgb.train``.

    Examples
    --------
    >>> objective = pairwise_objective(np.array([1.0, 0.0]), np.array([0, 2]))
    >>> objective(np.zeros(2), None)[0].round(4).tolist()
    [-0.1845, 0.1845]
    """
    lengths = np.diff(query_ptr)
    width = int(lengths.max())
    inside = np.arange(width) < lengths[:, None]
    targets = np.zeros(inside.shape)
    targets[inside] = weights
    pairs = Pairs.of(width)
    block = max(1, PAIR_BLOCK // width**2)

    def lists(scores: np.ndarray, part: slice) -> tuple[np.ndarray, np.ndarray]:
        w, real = targets[part], inside[part]
        ranks = np.argsort(np.argsort(-scores, axis=1, kind="stable"), axis=1, kind="stable")
        # P(j above i) by the current scores; padding has delta 0, so its scores do not matter.
        finite = np.where(real, scores, 0.0)
        p = 1 / (1 + np.exp(np.clip(pairs.gaps(finite), -50, 50)))
        delta = pairs.discount_gaps(ranks, real)
        pull, curve = np.zeros(delta.shape), np.zeros(delta.shape)
        for place, sign, wrong in ((pairs.first, 1, p), (pairs.second, -1, 1 - p)):
            force = w[:, place] * delta * wrong
            pull += sign * force
            curve += np.where(force < 0, -force, force * (1 - wrong))
        return -pull @ pairs.sides, curve @ np.abs(pairs.sides)

    def objective(scores: np.ndarray, _: object) -> tuple[np.ndarray, np.ndarray]:
        padded = np.full(inside.shape, -np.inf)
        padded[inside] = scores
        gradient, hessian = np.empty(inside.shape), np.empty(inside.shape)
        for start in range(0, len(lengths), block):
            part = slice(start, start + block)
            gradient[part], hessian[part] = lists(padded[part], part)
        return gradient[inside], np.maximum(hessian[inside], HESSIAN_FLOOR)

    return objective


OBJECTIVES = {"softmax": softmax_objective, "pairwise": pairwise_objective}

"""Unbiased LambdaMART: position biases and the ranker in one boosting run."""

from typing import Any

import numpy as np

from ultrbench.errors import UserError
from ultrbench.propensity.estimate import FROM_FEATURES, Estimate, assuming, up_to_scale
from ultrbench.propensity.fixed_point import at_rest
from ultrbench.ranking.boosting import boost
from ultrbench.ranking.objectives import HESSIAN_FLOOR, PAIR_BLOCK, Objective, Pairs
from ultrbench.ranking.targets import sum_by_document
from ultrbench.simulation.display import order_by_score
from ultrbench.simulation.log import ClickLog


def pair_counts(log: ClickLog) -> np.ndarray:
    """Count the sessions with a click at i and none at j, each over its ideal DCG.

    Parameters
    ----------
    log : ClickLog
        Displayed lists with clicks.

    Returns
    -------
    numpy.ndarray
        float64 ``[lists, positions, positions]``: a session with m clicks adds
        1 / sum_{r <= m} 1/log2(1 + r) to each of its pairs, the normaliser of its nDCG. Padding
        is never clicked and counts in no pair.
    """
    from scipy.sparse import csr_matrix

    bits = (log.mask[:, None] >> np.arange(log.positions, dtype=np.uint64)) & np.uint64(1) == 1
    missed = ~bits & log.shown[log.click_list]
    ideal = np.append(1.0, np.cumsum(1 / np.log2(2 + np.arange(log.positions))))
    weight = log.count / ideal[bits.sum(axis=1)]
    groups = (np.ones(len(bits)), (log.click_list, np.arange(len(bits))))
    by_list = csr_matrix(groups, shape=(len(log.queries), len(bits)))
    clicked = (bits * weight[:, None]).T
    return np.stack([by_list @ (row[:, None] * missed) for row in clicked], axis=1)


class PositionBiases:
    """The biases t_plus and t_minus, updated once a tree, as their objective is boosted.

    Parameters
    ----------
    log : ClickLog
        Displayed lists with clicks.
    cell : numpy.ndarray
        int64 ``[lists, positions]``, the training row of each displayed cell.
    p : float
        Order of the regulariser.
    tolerance : float
        Settled when no log(theta) has moved by more in the last 10 trees.

    Attributes
    ----------
    plus, minus : numpy.ndarray
        float64 ``[positions]``, 1 at the first position.
    trace : list of list of float
        t_plus^(1 + p) after each tree.
    """

    def __init__(self, log: ClickLog, cell: np.ndarray, *, p: float, tolerance: float) -> None:
        counts = pair_counts(log)
        for name, axis in (("clicked above", 2), ("passed over for", 1)):
            silent = np.flatnonzero(counts.sum(axis=(0, axis)) == 0)
            if len(silent):
                raise UserError(
                    f"estimator paird: position {silent[0] + 1} is never {name} another document"
                    " of its session, so its bias is not defined; log more sessions or show fewer"
                    " positions (list_size)"
                )
        # As in `normalise_weights`: the scale shall not meet min_sum_hessian and the floor.
        counts *= len(np.unique(log.queries)) * (log.positions - 1) / counts.sum()
        self._pairs = Pairs.of(log.positions)
        first, second = self._pairs.first, self._pairs.second
        self._above, self._below = counts[:, first, second], counts[:, second, first]
        self._log, self._cell, self._p, self._tolerance = log, cell, p, tolerance
        self.plus, self.minus = np.ones(log.positions), np.ones(log.positions)
        self.trace: list[list[float]] = []

    @property
    def theta(self) -> np.ndarray:
        """t_plus^(1 + p), float64 ``[positions]``."""
        return self.plus ** (1 + self._p)

    @property
    def settled(self) -> bool:
        """Whether theta has come to rest."""
        return at_rest([np.log(theta) for theta in self.trace], self._tolerance)

    def objective(self, rows: int) -> Objective:
        """Return LambdaMART's gradients with the pairs over t_plus_i t_minus_j.

        Every call takes the biases of the call before, then updates them by the losses that it
        has seen; once settled they rest.
        """
        log, shape, pairs = self._log, self._log.documents.shape, self._pairs
        block = max(1, PAIR_BLOCK // shape[1] ** 2)

        def objective(scores: np.ndarray, _: object) -> tuple[np.ndarray, np.ndarray]:
            by_cell = scores[self._cell]
            order = order_by_score(log.documents, by_cell)
            ranks = np.argsort(order, axis=1, kind="stable")
            gradient, hessian = np.empty(shape), np.empty(shape)
            loss = np.zeros((shape[1], shape[1]))
            first, second = pairs.first, pairs.second
            for start in range(0, shape[0], block):
                part = slice(start, start + block)
                gap = np.clip(pairs.gaps(by_cell[part]), -50, 50)
                odds = np.exp(-gap)
                wrong, surprise = odds / (1 + odds), np.log1p(odds)
                delta = pairs.discount_gaps(ranks[part], log.shown[part])
                above, below = self._above[part] * delta, self._below[part] * delta
                loss[first, second] += np.einsum("ij,ij->j", above, surprise)
                loss[second, first] += np.einsum("ij,ij->j", below, surprise + gap)
                down = above * wrong / (self.plus[first] * self.minus[second])
                up = below * (1 - wrong) / (self.plus[second] * self.minus[first])
                gradient[part] = (up - down) @ pairs.sides
                hessian[part] = (down * (1 - wrong) + up * wrong) @ np.abs(pairs.sides)
            if not self.settled:
                self._update(loss)
            sums = [
                np.bincount(self._cell[log.shown], weights=values[log.shown], minlength=rows)
                for values in (gradient, hessian)
            ]
            return sums[0], np.maximum(sums[1], HESSIAN_FLOOR)

        return objective

    def _update(self, loss: np.ndarray) -> None:
        of_plus, of_minus = loss @ (1 / self.minus), (1 / self.plus) @ loss
        self.plus = (of_plus / of_plus[0]) ** (1 / (1 + self._p))
        self.minus = (of_minus / of_minus[0]) ** (1 / (1 + self._p))
        self.trace.append(self.theta.tolist())


def estimate(
    log: ClickLog,
    *,
    features: np.ndarray,
    seed: int,
    regulariser: float,
    tolerance: float,
    trees: int,
    leaves: int,
    learning_rate: float,
    min_data_in_leaf: int,
    **_: Any,
) -> Estimate:
    """Estimate position biases and train a ranker by Unbiased LambdaMART (pairwise debiasing).

    Hu et al. (WWW 2019). With P(click | i) = t_plus_i P(relevant) and P(no click | j) =
    t_minus_j P(not relevant), pairs of a clicked document i and one passed
    over, j, of the same session enter the loss as L_ij / (t_plus_i t_minus_j), with L_ij =
    |delta nDCG_ij| log(1 + exp(f_j - f_i)), and

        t_plus_i = (sum_j L_ij / t_minus_j / sum_j L_1j / t_minus_j)^(1/(1 + p))

    and t_minus alike, where p is the order of the regulariser |t|^p. The published p = 1
    shrinks: t_plus comes near the square root of theta, so theta = t_plus^(1 + p) is reported, and
    t_plus beside it. The second assumption does not hold under a position-based model (a document
    not clicked was either not examined or not attractive), so theta is biased even so.

    The method is one for boosted trees already: the biases start at 1 and are updated once a tree,
    in the sample. Here the sum over sessions is taken first; the authors' division of |delta nDCG|
    by the distance of the scores is left out, as it stands in their code only; theta rests once
    it has settled. It need not: as trees memorise clicks, the losses no longer speak of positions.

    Parameters
    ----------
    log : ClickLog
        Displayed lists with clicks; positions^2 floats a list are held in memory.
    features : numpy.ndarray
        float32 ``[documents, features]`` of the training split.
    seed : int
        Replicate seed.
    regulariser : float
        p.
    tolerance : float
        Settled when no log(theta_k / theta_1) has moved by more in the last 10 trees.
    trees, leaves, learning_rate, min_data_in_leaf
        Size of the ranker.

    Returns
    -------
    Estimate
        With the ranker, and columns ``t_plus`` and ``t_minus``.

    Raises
    ------
    UserError
        When a position is in no pair.
    """
    lists = sum_by_document(log, np.zeros(log.documents.shape))
    cell = np.where(log.shown, np.searchsorted(lists.rows, log.documents), 0)
    biases = PositionBiases(log, cell, p=regulariser, tolerance=tolerance)
    model = boost(
        features,
        lists.rows,
        biases.objective(len(lists.rows)),
        trees=trees,
        leaves=leaves,
        learning_rate=learning_rate,
        min_data_in_leaf=min_data_in_leaf,
        seed=seed,
    )
    return up_to_scale(
        biases.theta,
        trace=biases.trace,
        converged=biases.settled,
        columns={"t_plus": biases.plus, "t_minus": biases.minus},
        model=model,
        **assuming(log, FROM_FEATURES),
    )

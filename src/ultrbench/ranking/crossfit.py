"""Out-of-fold ranker scores: predictions for queries that a ranker has not been trained on."""

from collections.abc import Callable

import numpy as np

from ultrbench.errors import UserError
from ultrbench.ranking.binned import BinnedFeatures, bin_documents
from ultrbench.ranking.model import BASE_PARAMETERS
from ultrbench.ranking.objectives import (
    Objective,
    list_softmax,
    normalise_weights,
    softmax_objective,
)
from ultrbench.ranking.targets import sum_by_document
from ultrbench.seeding import stream
from ultrbench.simulation.log import ClickLog


def held_out_loss(scores: np.ndarray, weights: np.ndarray, query_ptr: np.ndarray) -> float:
    """Return the listwise softmax loss -sum_i w_i log softmax(f)_i of lists not trained on.

    Parameters
    ----------
    scores, weights : numpy.ndarray
        float64 ``[documents]``, out-of-fold scores and target weights.
    query_ptr : numpy.ndarray
        int64 ``[queries + 1]``.

    Returns
    -------
    float
        Summed over lists; lower is better.

    Examples
    --------
    >>> held_out_loss(np.zeros(2), np.array([3.0, 1.0]), np.array([0, 2]))  # 4 log 2
    2.77...
    """
    p = list_softmax(scores, query_ptr)
    return -float(weights @ np.log(np.maximum(p, 1e-300)))


class CrossFit:
    """Softmax rankers on the documents of a log, each for the queries of the other folds.

    The features are binned once; every call of `scores` trains `folds` rankers afresh.

    Parameters
    ----------
    log : ClickLog
        Displayed lists; every displayed document is a training row.
    features : numpy.ndarray or BinnedFeatures
        float32 ``[documents, features]`` of the training split.
    folds : int
        Parts of the queries, at random; no more than there are queries.
    trees, leaves, learning_rate
        Size of the rankers. The number of trees used is the one with the lowest held-out loss.
    seed : int
        Replicate seed.

    Attributes
    ----------
    query_ptr : numpy.ndarray
        int64 ``[queries + 1]``, over the documents of the log in canonical order.

    Raises
    ------
    UserError
        When there are fewer queries than folds.

    Examples
    --------
    >>> log = ClickLog(
    ...     np.array([[1, 0], [2, 3]]), np.array([0, 1]), np.zeros((2, 2)), np.zeros(2, np.uint8),
    ...     np.zeros(2, bool), np.zeros(2, np.uint8),
    ...     np.array([0]), np.array([1], np.uint64), np.array([1]),
    ... )
    >>> rankers = CrossFit(
    ...     log, np.eye(4, dtype=np.float32), folds=2, trees=2, leaves=3, learning_rate=0.1, seed=1
    ... )
    >>> rankers.scores(np.array([0.0, 1.0, 0.0, 0.0])).shape
    (4,)
    >>> rankers.by_cell(np.array([10, 11, 12, 13])).tolist()
    [[11, 10], [12, 13]]
    """

    def __init__(
        self,
        log: ClickLog,
        features: np.ndarray | BinnedFeatures,
        *,
        folds: int,
        trees: int,
        leaves: int,
        learning_rate: float,
        seed: int,
    ) -> None:
        lists = sum_by_document(log, np.zeros(log.documents.shape))
        self.query_ptr = lists.query_ptr
        self._trees = trees
        self._parameters = BASE_PARAMETERS | {
            "metric": "None",
            "num_leaves": leaves,
            "learning_rate": learning_rate,
            "seed": seed,
        }
        # Where each displayed cell finds its document; padding points at the first.
        self._cell = np.where(log.shown, np.searchsorted(lists.rows, log.documents), 0)
        queries = len(self.query_ptr) - 1
        if queries < folds:
            raise UserError(
                f"the log has {queries} queries, too few for {folds} folds; lower `folds` of the"
                " estimator, or log more queries"
            )
        fold_of_query = stream(seed, "folds").permutation(queries) % folds
        fold_of_row = np.repeat(fold_of_query, np.diff(self.query_ptr))
        binned = bin_documents(features, lists.rows, self._parameters)
        self._parts = []
        for fold in range(folds):
            held_out = fold_of_row == fold
            data, unseen = (
                binned.subset(np.flatnonzero(rows).tolist(), params=self._parameters).construct()
                for rows in (~held_out, held_out)
            )
            self._parts.append((held_out, data, unseen))

    def by_cell(self, values: np.ndarray) -> np.ndarray:
        """Spread values by document over the displayed cells, ``[lists, positions]``."""
        return values[self._cell]

    def _pointer(self, rows: np.ndarray) -> np.ndarray:
        lengths = np.add.reduceat(rows.astype(np.int64), self.query_ptr[:-1])
        return np.concatenate([[0], np.cumsum(lengths[lengths > 0])])

    def scores(self, weights: np.ndarray) -> np.ndarray:
        """Train on target weights and return out-of-fold scores.

        Parameters
        ----------
        weights : numpy.ndarray
            float64 ``[documents]``, target weights in canonical order.

        Returns
        -------
        numpy.ndarray
            float64 ``[documents]``.
        """

        def objective(rows: np.ndarray) -> Objective:
            pointer = self._pointer(rows)
            return softmax_objective(normalise_weights(weights[rows], pointer), pointer)

        return self.boost(objective, lambda scores: held_out_loss(scores, weights, self.query_ptr))

    def boost(
        self,
        objective: Callable[[np.ndarray], Objective],
        loss: Callable[[np.ndarray], float],
    ) -> np.ndarray:
        """Train on any objective and return out-of-fold scores, float64 ``[documents]``.

        Parameters
        ----------
        objective : callable
            Maps the documents to train on, bool ``[documents]``, to their objective.
        loss : callable
            Maps out-of-fold scores to what the number of trees minimises.
        """
        import lightgbm as lgb

        staged = np.zeros((self._trees, self.query_ptr[-1]))
        for held_out, data, unseen in self._parts:
            parameters = self._parameters | {"objective": objective(~held_out)}
            # LightGBM keeps the scores of a validation set as trees are added: no predictions.
            curve: list[np.ndarray] = []

            def keep(scores: np.ndarray, _: object, curve: list = curve) -> tuple:
                curve.append(scores.copy())
                return "", 0.0, False

            lgb.train(
                parameters, data, num_boost_round=self._trees, valid_sets=[unseen], feval=keep
            )
            staged[:, held_out] = curve
        losses = [loss(scores) for scores in staged]
        return staged[int(np.argmin(losses))]

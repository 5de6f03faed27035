"""Out-of-fold ranker scores: predictions for queries that a ranker has not been trained on."""

import numpy as np

from ultrbench.ranking.model import BASE_PARAMETERS
from ultrbench.ranking.objectives import list_softmax, normalise_weights, softmax_objective
from ultrbench.ranking.targets import sum_by_document
from ultrbench.seeding import stream
from ultrbench.simulation.log import ClickLog


def held_out_loss(scores: np.ndarray, weights: np.ndarray, query_ptr: np.ndarray) -> float:
    """Return the listwise softmax loss -sum_i w_i log softmax(f)_i of lists not trained on."""
    p = list_softmax(scores, query_ptr)
    return -float(weights @ np.log(np.maximum(p, 1e-300)))


class CrossFit:
    """Softmax rankers on the documents of a log, each for the queries of the other folds.

    The features are binned once; every call of `scores` trains `folds` rankers afresh.

    Parameters
    ----------
    log : ClickLog
        Displayed lists; every displayed document is a training row.
    features : numpy.ndarray
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
    """

    def __init__(
        self,
        log: ClickLog,
        features: np.ndarray,
        *,
        folds: int,
        trees: int,
        leaves: int,
        learning_rate: float,
        seed: int,
    ) -> None:
        import lightgbm as lgb

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
        fold_of_query = stream(seed, "folds").permutation(queries) % folds
        fold_of_row = np.repeat(fold_of_query, np.diff(self.query_ptr))
        matrix = np.ascontiguousarray(features[lists.rows])
        binned = lgb.Dataset(matrix, params=self._parameters, free_raw_data=False).construct()
        self._parts = []
        for fold in range(folds):
            held_out = fold_of_row == fold
            data, unseen = (
                binned.subset(np.flatnonzero(rows), params=self._parameters).construct()
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
        import lightgbm as lgb

        staged = np.zeros((self._trees, len(weights)))
        for held_out, data, unseen in self._parts:
            pointer = self._pointer(~held_out)
            target = normalise_weights(weights[~held_out], pointer)
            parameters = self._parameters | {"objective": softmax_objective(target, pointer)}
            # LightGBM keeps the scores of a validation set as trees are added: no predictions.
            curve: list[np.ndarray] = []

            def keep(scores: np.ndarray, _: object, curve: list = curve) -> tuple:
                curve.append(scores.copy())
                return "", 0.0, False

            lgb.train(
                parameters, data, num_boost_round=self._trees, valid_sets=[unseen], feval=keep
            )
            staged[:, held_out] = curve
        losses = [held_out_loss(scores, weights, self.query_ptr) for scores in staged]
        return staged[int(np.argmin(losses))]

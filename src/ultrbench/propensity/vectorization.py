"""Vectorization: observation and relevance as vectors, in one boosting run."""

from typing import Any

import numpy as np

from ultrbench.propensity.estimate import Estimate, up_to_scale
from ultrbench.propensity.fixed_point import at_rest
from ultrbench.ranking.boosting import boost
from ultrbench.ranking.objectives import HESSIAN_FLOOR, Objective
from ultrbench.ranking.targets import sum_by_document
from ultrbench.simulation.log import ClickLog

FROZEN = 5


class Vectors:
    """Relevance vectors of documents and observation vectors of positions, as they are boosted.

    Parameters
    ----------
    log : ClickLog
        Displayed lists with clicks.
    cell : numpy.ndarray
        int64 ``[lists, positions]``, the training row of each displayed cell.
    rows : int
        Training rows.
    dimensions : int
        Length of the vectors.
    learning_rate : float
        Step of the observation vectors.

    Attributes
    ----------
    relevance : numpy.ndarray
        float64 ``[rows, dimensions]``.
    observation : numpy.ndarray
        float64 ``[positions, dimensions]``; the mean over impressions of every column is 1.
    trace : list of list of float
        `observation` after each tree, position by position.
    """

    def __init__(
        self, log: ClickLog, cell: np.ndarray, rows: int, *, dimensions: int, learning_rate: float
    ) -> None:
        self._log, self._cell, self._rate = log, cell, learning_rate
        queries = len(np.unique(log.queries))
        self._clicks = log.clicks * (queries / max(1, log.clicks.sum()))
        impressions = log.sessions @ log.shown
        self._share = impressions / impressions.sum()
        self.relevance = np.zeros((rows, dimensions))
        self.relevance[:, -1] = 1.0
        self.observation = np.ones((log.positions, dimensions))
        self.trace: list[list[float]] = []

    def gradients(self) -> tuple[np.ndarray, np.ndarray]:
        """Gradient and hessian of -sum_k c_k log softmax(<r, o>)_k in the dot products.

        float64 ``[lists, positions]`` each; 0 where a list is padded.
        """
        shown = self._log.shown
        dots = np.einsum("lkd,kd->lk", self.relevance[self._cell], self.observation)
        dots = np.where(shown, dots, -np.inf)
        p = np.exp(dots - dots.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        expected = self._clicks.sum(axis=1, keepdims=True) * p
        return expected - self._clicks, expected * (1 - p)

    def observe(self) -> None:
        """Move the observation vectors one damped Newton step, with their mean kept."""
        gradient, hessian = self.gradients()
        r = self.relevance[self._cell]
        slope = np.einsum("lk,lkd->kd", gradient, r)
        curve = np.einsum("lk,lkd->kd", hessian, r**2) * r.shape[2]
        step = self._rate * slope / np.maximum(curve, HESSIAN_FLOOR)
        self.observation -= step - self._share @ step

    def objective(self) -> Objective:
        """Return the loss of `gradients` as it looks to one dimension, each tree's in turn."""
        rows, dimensions = self.relevance.shape
        before = np.zeros(rows)

        def objective(scores: np.ndarray, _: object) -> tuple[np.ndarray, np.ndarray]:
            tree = len(self.trace)
            self.relevance[:, (tree - 1) % dimensions] += scores - before
            before[:] = scores
            if tree >= FROZEN:
                self.observe()
            self.trace.append(self.observation.ravel().tolist())
            seen = self.observation[:, tree % dimensions]
            gradient, hessian = self.gradients()
            sums = [
                np.bincount(self._cell.ravel(), weights=values.ravel(), minlength=rows)
                for values in (gradient * seen, hessian * seen**2)
            ]
            return sums[0], np.maximum(sums[1], HESSIAN_FLOOR)

        return objective


def estimate(
    log: ClickLog,
    *,
    features: np.ndarray,
    seed: int,
    dimensions: int,
    tolerance: float,
    trees: int,
    leaves: int,
    learning_rate: float,
    min_data_in_leaf: int,
    **_: Any,
) -> Estimate:
    """Learn relevance and observation vectors, and rank by a base vector.

    Chen et al. (KDD 2022, arXiv 2206.01702). One number for examination assumes that clicks
    factor into examination and relevance; sums of d such products can express more:
    click ~ softmax over the list of <r(x), o_k>, with r and o in R^d. To rank without knowing
    positions, relevance is projected on a base vector b(q), the expected observation vector of
    the list: score = <r(x), b(q)>.

    Adapted for boosted trees:

    - r has one dimension a tree: the dimensions take turns, so that d costs no more trees.
    - In the authors' network b depends on the query, as a density of o given the documents'
      features. Here o depends on the position alone and every query shows the same positions, so b
      is the mean of o over impressions. The scale of a dimension is free: o is kept at mean 1, b
      is all ones, and the score <r, b> is the plain sum of the trees, an ordinary model.
    - r starts at (0, ..., 0, 1): a network's outputs are not centred, and with r = 0 nothing could
      move o. The constant is what carries a position effect common to all documents, log theta_k
      of a position-based model.
    - As with the authors o starts at ones and rests for the first trees (500 of 15,000 steps
      there, 5 trees here), then takes one damped Newton step a tree, in the sample. It need not
      settle: as trees memorise clicks, o goes on.

    There is no scalar propensity, so it is NaN; the columns ``observation_1``, ... hold o.

    Parameters
    ----------
    log : ClickLog
        Displayed lists with clicks.
    features : numpy.ndarray
        float32 ``[documents, features]`` of the training split.
    seed : int
        Replicate seed.
    dimensions : int
        d.
    tolerance : float
        Settled when no component of o has varied by more in the last 10 trees.
    trees, leaves, learning_rate, min_data_in_leaf
        Size of the ranker; the learning rate is also the step of o.

    Returns
    -------
    Estimate
        With the ranker; propensities are NaN.
    """
    lists = sum_by_document(log, np.zeros(log.documents.shape))
    cell = np.where(log.shown, np.searchsorted(lists.rows, log.documents), 0)
    vectors = Vectors(
        log, cell, len(lists.rows), dimensions=dimensions, learning_rate=learning_rate
    )
    model = boost(
        features,
        lists.rows,
        vectors.objective(),
        trees=trees,
        leaves=leaves,
        learning_rate=learning_rate,
        min_data_in_leaf=min_data_in_leaf,
        seed=seed,
    )
    return up_to_scale(
        np.full(log.positions, np.nan),
        trace=vectors.trace,
        converged=at_rest(vectors.trace, tolerance),
        columns={f"observation_{d + 1}": o for d, o in enumerate(vectors.observation.T)},
        model=model,
    )

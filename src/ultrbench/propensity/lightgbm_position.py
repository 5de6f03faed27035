"""LightGBM's own debiasing: lambdarank with a factor for each position."""

import re
from typing import Any

import numpy as np

from ultrbench.errors import UserError
from ultrbench.propensity.estimate import Estimate, up_to_scale
from ultrbench.ranking.binned import bin_documents
from ultrbench.ranking.model import BASE_PARAMETERS
from ultrbench.ranking.targets import sum_by_document
from ultrbench.simulation.log import ClickLog

FACTOR = re.compile(r"\[Debug\]\s+(\d+)\s+(\S+)$")


class _Listener:
    """LightGBM tells its position factors in debug messages only, after every tree."""

    def __init__(self, positions: int) -> None:
        self.factors = np.full(positions, np.nan)

    def info(self, message: str) -> None:
        if found := FACTOR.search(message.rstrip()):
            self.factors[int(found[1])] = float(found[2])
        elif "[Debug]" not in message and "[Info]" not in message:
            print(message)

    warning = print


def expand_sessions(log: ClickLog) -> tuple[np.ndarray, ...]:
    """Spread the groups of equal sessions as LightGBM's lambdarank wants them.

    Sessions without a click, or with nothing but clicks, have no pair and are left out.

    Parameters
    ----------
    log : ClickLog
        Displayed lists with clicks.

    Returns
    -------
    documents, positions : numpy.ndarray
        int64 ``[rows]``, document row and position (from 0): a group's documents in canonical
        order, group after group.
    clicked : numpy.ndarray
        uint8 ``[rows]``.
    count : numpy.ndarray
        int64 ``[rows]``, sessions of the row's group.
    group : numpy.ndarray
        int64 ``[groups]``, rows of each group.

    Examples
    --------
    >>> log = ClickLog(
    ...     np.array([[4, 2]]), np.array([0]), np.array([[0.9, 0.1]]), np.zeros(1, np.uint8),
    ...     np.zeros(1, bool), np.zeros(1, np.uint8),
    ...     np.array([0, 0]), np.array([0, 2], np.uint64), np.array([3, 5]),
    ... )
    >>> [a.tolist() for a in expand_sessions(log)]
    [[2, 4], [1, 0], [1, 0], [5, 5], [2]]
    """
    lengths = log.shown.sum(axis=1)
    clicks = np.bitwise_count(log.mask)
    kept = (clicks > 0) & (clicks < lengths[log.click_list])
    lists = log.click_list[kept]
    key = np.where(log.shown, log.documents, np.iinfo(np.int64).max)
    order = np.argsort(key, axis=1, kind="stable")[lists]
    real = np.arange(log.positions) < lengths[lists][:, None]
    bits = (log.mask[kept][:, None] >> order.astype(np.uint64)) & np.uint64(1)
    documents = np.take_along_axis(log.documents[lists], order, axis=1)
    count = np.broadcast_to(log.count[kept][:, None], order.shape)
    clicked = bits[real].astype(np.uint8)
    return documents[real], order[real], clicked, count[real], lengths[lists]


def estimate(
    log: ClickLog,
    *,
    features: np.ndarray,
    seed: int,
    trees: int,
    leaves: int,
    learning_rate: float,
    min_data_in_leaf: int,
    **_: Any,
) -> Estimate:
    """Train LightGBM's lambdarank with its own position debiasing.

    LightGBM (since 4.1) adds a factor b_k to the score of a document at position k while pairs
    are compared, and after each tree moves b_k by a Newton step on the sum of the gradients at
    position k; the factors are dropped at prediction. There is no paper. A factor is additive on
    the scale of the scores, so it is no examination probability: no propensity is reported, the
    factors after the last tree stand in the column ``bias_factor``.

    One LightGBM query a distinct (list, click mask), weighted by its sessions: clicks are labels
    0 and 1, since labels above 30 are refused and counts are no grades. Fewest documents in a
    leaf, and so rows, grow with the rows a document has. Features are binned on the documents
    once, as for every other ranker.

    Parameters
    ----------
    log : ClickLog
        Displayed lists with clicks.
    features : numpy.ndarray
        float32 ``[documents, features]`` of the training split.
    seed : int
        Replicate seed.
    trees, leaves, learning_rate, min_data_in_leaf
        Size of the ranker.

    Returns
    -------
    Estimate
        With the ranker; propensities are NaN.

    Raises
    ------
    UserError
        When no session has both a clicked document and another.
    """
    import lightgbm as lgb

    documents, positions, clicked, count, group = expand_sessions(log)
    if not len(documents):
        raise UserError(
            "estimator lightgbm_position: no session of the log has both a clicked document and"
            " one without a click, so there is no pair to learn from; log more sessions"
        )

    class Rows(lgb.Sequence):
        """The rows of the groups, so that their features are never held at once."""

        batch_size = 65_536

        def __len__(self) -> int:
            return len(documents)

        def __getitem__(self, index: int | slice | list[int]) -> np.ndarray:
            return features[documents[index]].astype(np.float64)

    distinct = sum_by_document(log, np.zeros(log.documents.shape)).rows
    parameters = BASE_PARAMETERS | {
        "objective": "lambdarank",
        "label_gain": [0, 1],
        "metric": "None",
        "num_leaves": leaves,
        "learning_rate": learning_rate,
        "min_data_in_leaf": max(1, round(min_data_in_leaf * len(documents) / len(distinct))),
        "seed": seed,
        "verbosity": 2,
    }
    listener = _Listener(log.positions)
    lgb.register_logger(listener)
    binned = bin_documents(features, distinct, parameters)
    data = lgb.Dataset(
        Rows(), clicked, weight=count, group=group, reference=binned, params=parameters
    ).construct()
    data.set_position(positions)
    model = lgb.train(parameters, data, num_boost_round=trees).model_to_string()
    columns = {"bias_factor": listener.factors}
    return up_to_scale(np.full(log.positions, np.nan), columns=columns, model=model)

"""Plain LambdaMART on true grades: the strong logging policy."""

from collections.abc import Callable

import numpy as np

from ultrbench.datasets.split import Split
from ultrbench.ranking.model import BASE_PARAMETERS


def fit(
    train: Split,
    queries: np.ndarray,
    *,
    ymax: int,
    trees: int,
    leaves: int,
    learning_rate: float,
    seed: int,
) -> Callable[[np.ndarray], np.ndarray]:
    """Fit LightGBM's LambdaMART to the grades of some training queries, all their documents.

    Parameters
    ----------
    train : Split
        The training split.
    queries : numpy.ndarray
        int64, training queries, ascending.
    ymax : int
        Top grade; the gain of grade y is 2^y - 1.
    trees, leaves, learning_rate
        Size of the ensemble.
    seed : int
        Replicate seed.

    Returns
    -------
    callable
        Maps features ``[documents, features]`` to scores, float64 ``[documents]``.

    Examples
    --------
    >>> grades = np.arange(100) % 3
    >>> train = Split(grades[:, None] * 1.0, grades, np.array([0, 50, 100]), np.array(["a", "b"]))
    >>> predict = fit(
    ...     train, np.array([0, 1]), ymax=2, trees=3, leaves=4, learning_rate=0.1, seed=1
    ... )
    >>> predict(np.array([[2.0], [0.0], [1.0]])).argsort().tolist()
    [1, 2, 0]
    """
    import lightgbm as lgb

    rows = np.concatenate([np.arange(*train.query_ptr[q : q + 2]) for q in queries])
    parameters = BASE_PARAMETERS | {
        "objective": "lambdarank",
        "metric": "None",
        "label_gain": [2**y - 1 for y in range(ymax + 1)],
        "num_leaves": leaves,
        "learning_rate": learning_rate,
        "seed": seed,
    }
    data = lgb.Dataset(
        train.features[rows], train.grades[rows], group=train.lengths[queries], params=parameters
    )
    model = lgb.train(parameters, data, num_boost_round=trees)
    return lambda features: np.asarray(model.predict(features, num_threads=1))

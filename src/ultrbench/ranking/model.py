"""LightGBM models as text, and the parameters that make them reproducible."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from ultrbench.errors import UserError

BASE_PARAMETERS: dict[str, Any] = {
    "deterministic": True,
    "force_row_wise": True,
    "num_threads": 1,
    "verbosity": -1,
    "feature_pre_filter": False,
}


def refuse_blank(features: np.ndarray) -> None:
    """Stop where every feature is 0: LightGBM drops such columns, and fails when none is left.

    Parameters
    ----------
    features : numpy.ndarray
        ``[documents, features]``, of the documents to train on.

    Raises
    ------
    UserError
        When nothing but 0 is in it.

    Examples
    --------
    >>> refuse_blank(np.array([[0.0, 0.0], [0.0, 2.0]]))
    """
    if not features.any():
        raise UserError(
            f"every feature of the {len(features)} documents to train on is 0, so that nothing"
            " tells them apart; check the features of the data set"
        )


def predict(model: str, features: np.ndarray, trees: int | None = None) -> np.ndarray:
    """Score documents with a model text.

    Parameters
    ----------
    model : str
        LightGBM's text form.
    features : numpy.ndarray
        float32 ``[documents, features]``.
    trees : int, optional
        Use the first trees only.

    Returns
    -------
    numpy.ndarray
        float64 ``[documents]``.

    Examples
    --------
    >>> import lightgbm as lgb
    >>> features = np.arange(8.0)[:, None]
    >>> data = lgb.Dataset(features, features[:, 0] > 3)
    >>> model = lgb.train(BASE_PARAMETERS | {"min_data_in_leaf": 1}, data, 2).model_to_string()
    >>> (np.diff(predict(model, features)) > 0).nonzero()[0].tolist()
    [3]
    """
    import lightgbm as lgb

    booster = lgb.Booster(model_str=model)
    return np.asarray(booster.predict(features, num_iteration=trees or -1, num_threads=1))


def predict_staged(
    model: str, features: np.ndarray, trees: Mapping[str, int]
) -> dict[str, np.ndarray]:
    """Score documents with the first trees of a model, for several numbers of trees in one pass.

    Parameters
    ----------
    model, features
        As in `predict`.
    trees : mapping of int
        Number of trees by name.

    Returns
    -------
    dict of numpy.ndarray
        float64 ``[documents]`` by name.

    Examples
    --------
    >>> import lightgbm as lgb
    >>> features = np.arange(8.0)[:, None]
    >>> data = lgb.Dataset(features, features[:, 0] > 3)
    >>> model = lgb.train(BASE_PARAMETERS | {"min_data_in_leaf": 1}, data, 3).model_to_string()
    >>> scores = predict_staged(model, features, {"clicks": 3, "grades": 1})
    >>> np.allclose(scores["clicks"], predict(model, features, 3))
    True
    """
    import lightgbm as lgb

    booster = lgb.Booster(model_str=model)
    staged, total, done = {}, np.zeros(len(features)), 0
    for count in sorted(set(trees.values())):
        total = total + booster.predict(
            features, start_iteration=done, num_iteration=count - done, num_threads=1
        )
        staged[count], done = total, count
    return {name: staged[count] for name, count in trees.items()}


def count_trees(model: str) -> int:
    """Return the number of trees of a model text.

    Examples
    --------
    >>> count_trees("tree\\n\\nTree=0\\nnum_leaves=1\\n\\nTree=1\\nnum_leaves=1\\n")
    2
    """
    return model.count("\nTree=")

"""LightGBM models as text, and the parameters that make them reproducible."""

from typing import Any

import numpy as np

BASE_PARAMETERS: dict[str, Any] = {
    "deterministic": True,
    "force_row_wise": True,
    "num_threads": 1,
    "verbosity": -1,
    "feature_pre_filter": False,
}


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
    """
    import lightgbm as lgb

    booster = lgb.Booster(model_str=model)
    return booster.predict(features, num_iteration=trees or -1, num_threads=1)


def count_trees(model: str) -> int:
    """Return the number of trees of a model text.

    Examples
    --------
    >>> count_trees("tree\\n\\nTree=0\\nnum_leaves=1\\n\\nTree=1\\nnum_leaves=1\\n")
    2
    """
    return model.count("\nTree=")

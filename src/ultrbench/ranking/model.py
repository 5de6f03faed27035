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
    return booster.predict(features, num_iteration=trees or -1, num_threads=1)

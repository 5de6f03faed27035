"""What methods are called in tables and figures."""

from collections.abc import Mapping

NAMES = {
    "naive": "Naive clicks",
    "naive_aa": "Naive (A/A)",
    "oracle": "Oracle IPW",
    "ctr": "CTR",
    "randomization": "IPW-Random",
    "shuffled_clicks": "Shuffled clicks",
    "dla": "DLA",
    "rem": "Regression-EM",
    "upe": "UPE",
    "upe_scaled": "UPE, scaled",
    "crossfit": "Crossfit",
    "harvest": "Harvesting",
    "fixed_effects": "Fixed effects",
    "paird": "PairD",
    "paird_regularised": "PairD, p = 1",
    "vectorization": "Vectorization",
    "lightgbm_position": "LightGBM position",
    "affine": "Affine",
    "affine_oracle": "Affine, oracle",
    "ips_dcm": "IPS-DCM",
    "policy_aware": "Policy-aware IPW",
    "labeled": "Labeled (grades)",
    "relevance_skyline": "∞ sessions, unbiased",
    "examined_skyline": "∞ sessions, naive",
    "logging_policy": "Logging policy",
    "random_order": "Random order",
}


def display_name(method: str, labels: Mapping[str, str] | None = None) -> str:
    """Return the label of a method in tables and figures.

    Parameters
    ----------
    method : str
        Its name in the config.
    labels : mapping of str to str, optional
        Labels from the config, by method; they come before the built-in ones.

    Returns
    -------
    str
        The label; the name itself where there is none.

    Examples
    --------
    >>> display_name("dla"), display_name("dla", {"dla": "DLA, 2 folds"}), display_name("mine")
    ('DLA', 'DLA, 2 folds', 'mine')
    """
    return (labels or {}).get(method) or NAMES.get(method, method)

"""What follows from a checked configuration, for the workflow and the stages alike.

It stands apart from the checks, so that editing one of them re-runs no stage.
"""

from collections.abc import Mapping
from typing import Any

METRICS = ("nDCG", "ERR")
HEADLINE_CUTOFF = 10
LOGS = ("initial", "randomized", "replica")
BASELINES = ("logging_policy", "random_order")
JOINT = ("paird", "vectorization", "lightgbm_position")
WITHOUT_THETA = ("vectorization", "lightgbm_position", "trust", "last_clicks")
SIZE = ("trees", "leaves", "learning_rate", "min_data_in_leaf")


def study_methods(config: Mapping[str, Any], setting: str) -> list[str]:
    """Return the methods that run in a setting, in the order of the table's rows.

    Examples
    --------
    >>> study_methods({"settings": {"static": {"methods": ["naive", "dla"]}}}, "static")
    ['naive', 'dla']
    """
    return list(config["settings"][setting]["methods"])


def method_log(config: Mapping[str, Any], method: str) -> str:
    """Return which log a method works on: ``initial``, ``randomized`` or ``replica``.

    A method with a target trains on no clicks; the lists that it is shown and validated on are
    those of the initial log.

    Examples
    --------
    >>> method_log({"methods": {"labeled": {"target": "grades"}}}, "labeled")
    'initial'
    """
    return config["methods"][method].get("log", "initial")


def final_round(config: Mapping[str, Any], setting: str, method: str) -> int:
    """Return the round, from 0, whose ranker is evaluated; a target is known in round 0.

    Examples
    --------
    >>> config = {
    ...     "settings": {"dynamic": {"rounds": 4}},
    ...     "methods": {"dla": {"estimator": "dla"}, "labeled": {"target": "grades"}},
    ... }
    >>> final_round(config, "dynamic", "dla"), final_round(config, "dynamic", "labeled")
    (3, 0)
    """
    if "target" in config["methods"][method]:
        return 0
    return config["settings"][setting]["rounds"] - 1


def policy_queries(config: Mapping[str, Any], policy: str) -> dict[str, Any]:
    """Return the mode and the pool of the queries that train a policy, its own mode first.

    Examples
    --------
    >>> config = {
    ...     "policy_queries": {"mode": "disjoint", "pool": 0.3},
    ...     "policies": {"weak": {}, "spoilt": {"policy_queries": "shared"}},
    ... }
    >>> policy_queries(config, "weak")["mode"], policy_queries(config, "spoilt")["mode"]
    ('disjoint', 'shared')
    """
    own = config["policies"][policy].get("policy_queries")
    return {**config["policy_queries"], **({"mode": own} if own else {})}


def list_size(config: Mapping[str, Any], policy: str) -> int:
    """Return the candidates of a query under a policy.

    Examples
    --------
    >>> config = {"list_size": 10, "policies": {"weak": {}, "short": {"list_size": 5}}}
    >>> list_size(config, "weak"), list_size(config, "short")
    (10, 5)
    """
    return config["policies"][policy].get("list_size", config["list_size"])


def headline_metric(config: Mapping[str, Any]) -> str:
    """Return the metric of the tests: nDCG@10, or nDCG at the largest cutoff without a 10.

    Examples
    --------
    >>> headline_metric({"evaluation": {"cutoffs": [1, 3, 5]}})
    'nDCG@5'
    """
    cutoffs = config["evaluation"]["cutoffs"]
    return f"nDCG@{HEADLINE_CUTOFF if HEADLINE_CUTOFF in cutoffs else max(cutoffs)}"


def metric_names(config: Mapping[str, Any]) -> list[str]:
    """Return the canonical names of the metrics, in the order of the table's columns.

    Examples
    --------
    >>> metric_names({"evaluation": {"cutoffs": [1, 10]}})
    ['nDCG@1', 'nDCG@10', 'ERR@1', 'ERR@10']
    """
    cutoffs = config["evaluation"]["cutoffs"]
    return [f"{metric}@{cutoff}" for metric in METRICS for cutoff in cutoffs]


def estimators(config: Mapping[str, Any], *, joint: bool) -> list[str]:
    """Return the estimators whose kind trains its own ranker, or the others.

    Examples
    --------
    >>> config = {"estimators": {"dla": {"kind": "dla"}, "pairs": {"kind": "paird"}}}
    >>> estimators(config, joint=True), estimators(config, joint=False)
    (['pairs'], ['dla'])
    """
    entries = config["estimators"].items()
    return [name for name, entry in entries if (entry.get("kind") in JOINT) == joint]

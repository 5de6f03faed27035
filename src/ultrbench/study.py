"""What follows from a checked configuration, for the workflow and the stages alike.

It stands apart from the checks, so that editing one of them re-runs no stage.
"""

from collections.abc import Mapping
from typing import Any

from ultrbench.evaluation.interfaces import INTERFACES

METRICS = ("nDCG", "ERR")
STOPPING_CUTOFF = 10
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
    """Return the metric of the tests: that of the interface, at a cutoff of the study.

    Where the metric's own cutoff is not among the study's, it is the largest of these.

    Examples
    --------
    >>> headline_metric({"interface": "feed", "evaluation": {"cutoffs": [1, 3, 5]}})
    'RBP(p=.8)@5'
    >>> headline_metric({"interface": "exhaustive", "evaluation": {"cutoffs": [1, 10]}})
    'AP'
    """
    metric, at, own = INTERFACES[config["interface"]].partition("@")
    cutoffs = config["evaluation"]["cutoffs"]
    return metric + at + (own if not at or int(own) in cutoffs else str(max(cutoffs)))


def stopping_cutoff(config: Mapping[str, Any]) -> int:
    """Return the ranks that count when nDCG stops the boosting, whatever the headline metric.

    Examples
    --------
    >>> stopping_cutoff({"evaluation": {"cutoffs": [1, 3, 5]}})
    5
    """
    cutoffs = config["evaluation"]["cutoffs"]
    return STOPPING_CUTOFF if STOPPING_CUTOFF in cutoffs else max(cutoffs)


def metric_names(config: Mapping[str, Any]) -> list[str]:
    """Return the canonical names of the tested metrics, in the order of the table's columns.

    The headline metric is the first where it is no nDCG or ERR at a cutoff of the study.

    Examples
    --------
    >>> metric_names({"interface": "result_page", "evaluation": {"cutoffs": [1, 10]}})
    ['nDCG@1', 'nDCG@10', 'ERR@1', 'ERR@10']
    >>> metric_names({"interface": "single_answer", "evaluation": {"cutoffs": [10]}})
    ['RR@10', 'nDCG@10', 'ERR@10']
    """
    cutoffs = config["evaluation"]["cutoffs"]
    names = [f"{metric}@{cutoff}" for metric in METRICS for cutoff in cutoffs]
    headline = headline_metric(config)
    return names if headline in names else [headline, *names]


def measured_metrics(config: Mapping[str, Any]) -> list[str]:
    """Return the tested metrics and the further ones of the table `metrics`.

    Examples
    --------
    >>> evaluation = {"cutoffs": [10], "metrics": ["AP", "ERR@10"]}
    >>> measured_metrics({"interface": "result_page", "evaluation": evaluation})
    ['nDCG@10', 'ERR@10', 'AP']
    """
    return list(dict.fromkeys([*metric_names(config), *config["evaluation"]["metrics"]]))


def described_metrics(config: Mapping[str, Any]) -> list[str]:
    """Return the columns of the table `metrics`: those measured, nDCG and ERR at one cutoff only.

    Examples
    --------
    >>> evaluation = {"cutoffs": [1, 10], "metrics": ["AP"]}
    >>> described_metrics({"interface": "single_answer", "evaluation": evaluation})
    ['RR@10', 'nDCG@10', 'ERR@10', 'AP']
    """
    once = [f"{metric}@{stopping_cutoff(config)}" for metric in METRICS]
    names = [headline_metric(config), *once, *config["evaluation"]["metrics"]]
    return list(dict.fromkeys(names))


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

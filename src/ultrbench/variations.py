"""Definitions that sweeps and tuning derive from those of a study: a named entry a point.

What is derived runs through the same rules as what is written out, so that a point of a sweep is
a setting or a policy like any other, and a configuration an estimator like any other.
"""

from collections.abc import Iterable, Mapping
from itertools import product
from typing import Any, NamedTuple

from ultrbench.errors import UserError
from ultrbench.study import BASELINES, list_size, policy_queries

TUNING = "tuning"


class Point(NamedTuple):
    """One point of a sweep: what else it runs with, its value, and the entries that make it."""

    panel: str
    value: str
    policy: str
    setting: str


def value_name(value: Any) -> str:
    """Return what a value is called on an axis: itself, or the kind of a mapping.

    Examples
    --------
    >>> value_name(0.5), value_name("shared"), value_name({"kind": "ubm"})
    ('0.5', 'shared', 'ubm')
    """
    return str(value.get("kind", "") if isinstance(value, Mapping) else value).lower()


def _entries(config: Mapping[str, Any], sweep: str) -> dict[str, tuple[str, dict[str, Any]]]:
    """The name and content of the entry of each value; the base stands for its own value."""
    about = config["sweeps"][sweep]
    base = config[about["section"]][about["base"]]
    has = base
    if about["section"] == "policies":
        queries = policy_queries(config, about["base"])
        size = list_size(config, about["base"])
        has = {**base, "policy_queries": queries["mode"], "list_size": size}
    entries = {}
    for value in about["values"]:
        name = value_name(value)
        if name in entries or not name:
            raise UserError(
                f"sweeps.{sweep}.values: {'two values are' if name else 'a value is'} called"
                f" {name or 'nothing'}, as mappings go by their kind; name each kind once."
            )
        if has.get(about["key"]) == value:
            entries[name] = (about["base"], base)
        else:
            entries[name] = (f"{sweep}-{name.replace('.', '_')}", {**base, about["key"]: value})
    return entries


def sweep_points(config: Mapping[str, Any], sweep: str) -> list[Point]:
    """Return the points of a sweep, by what else they run with, then in the order of the values.

    Parameters
    ----------
    config : mapping
        A checked configuration.
    sweep : str
        Name under ``sweeps``. A sweep of settings runs under each policy of the study, a sweep of
        policies in each setting of the study.

    Returns
    -------
    list of Point
        A value that the base has already is the base itself, which sweeps share.

    Examples
    --------
    >>> config = {
    ...     "study": {"policies": ["weak"]},
    ...     "settings": {"static": {"eta": 1.0}},
    ...     "sweeps": {"eta": {"section": "settings", "base": "static", "key": "eta",
    ...                        "values": [0.5, 1]}},
    ... }
    >>> for point in sweep_points(config, "eta"):
    ...     print(point.value, point.policy, point.setting)
    0.5 weak eta-0_5
    1 weak static
    """
    names = {value: name for value, (name, _) in _entries(config, sweep).items()}
    if config["sweeps"][sweep]["section"] == "settings":
        return [
            Point(policy, value, policy, name)
            for policy in config["study"]["policies"]
            for value, name in names.items()
        ]
    return [
        Point(setting, value, name, setting)
        for setting in config["study"]["settings"]
        for value, name in names.items()
    ]


def configurations(config: Mapping[str, Any]) -> dict[str, dict[str, dict[str, Any]]]:
    """Return the configurations that tuning compares: by method, name and changed parameters.

    Parameters
    ----------
    config : mapping
        A checked configuration with ``tuning``.

    Returns
    -------
    dict
        The full grid of each method, its last parameter varying fastest.

    Examples
    --------
    >>> configurations({"tuning": {"grids": {"dla": {"trees": [50, 150], "leaves": [15]}}}})
    {'dla': {'dla-1': {'trees': 50, 'leaves': 15}, 'dla-2': {'trees': 150, 'leaves': 15}}}
    """
    return {
        method: {
            f"{method}-{number}": dict(zip(grid, values, strict=True))
            for number, values in enumerate(product(*grid.values()), start=1)
        }
        for method, grid in config["tuning"]["grids"].items()
    }


def derive(config: Mapping[str, Any]) -> dict[str, Any]:
    """Add the entries of sweeps and of tuning to a configuration; the result is to be checked too.

    Parameters
    ----------
    config : mapping
        A checked configuration.

    Returns
    -------
    dict
        With ``tuning``, the study becomes that of the configurations: the setting ``tuning`` on
        the seeds of the tuning.

    Raises
    ------
    UserError
        When a name is not defined or taken, methods have different numbers of configurations, or
        a table uses a seed of the tuning.

    Examples
    --------
    >>> derive({"settings": {}, "sweeps": {}})
    {'settings': {}, 'sweeps': {}}
    """
    config = dict(config)
    for sweep, about in config.get("sweeps", {}).items():
        _wanted(config, f"sweeps.{sweep}.base", about["section"], [about["base"]])
        points = _entries(config, sweep).values()
        added = {name: entry for name, entry in points if name != about["base"]}
        config = _with(config, f"sweeps.{sweep}", about["section"], added)
    return _tuning_study(config) if TUNING in config else config


def _tuning_study(config: dict[str, Any]) -> dict[str, Any]:
    tuning, study = config[TUNING], config["study"]
    _wanted(config, "tuning.setting", "settings", [tuning["setting"]])
    _wanted(config, "tuning.grids", "methods", tuning["grids"])
    if used := sorted(set(tuning["seeds"]) & set(study["seeds"])):
        raise UserError(
            f"tuning.seeds: {', '.join(map(str, used))} also in study.seeds, from which the tables"
            " are made; what is tuned on a table's clicks flatters it. Take other seeds."
        )
    grids = configurations(config)
    if len({len(found) for found in grids.values()}) > 1:
        counts = ", ".join(f"{method} {len(found)}" for method, found in grids.items())
        raise UserError(
            "tuning.grids: the same number of configurations for every method is wanted, got"
            f" {counts}."
        )
    methods, estimators = {}, {}
    for method, found in grids.items():
        base = config["methods"][method]
        if "estimator" not in base:
            raise UserError(f"tuning.grids.{method}: it has no estimator, so nothing to tune.")
        for name, changes in found.items():
            estimators[name] = {**config["estimators"][base["estimator"]], **changes}
            methods[name] = {**base, "estimator": name}
    listed = [study["reference"], *methods]
    setting = {**config["settings"][tuning["setting"]], "methods": listed}
    config = _with(config, "tuning.grids", "estimators", estimators)
    config = _with(config, "tuning.grids", "methods", methods)
    config = _with(config, "tuning", "settings", {TUNING: setting})
    return {**config, "study": {**study, "settings": [TUNING], "seeds": tuning["seeds"]}}


def _wanted(config: Mapping[str, Any], where: str, section: str, names: Iterable[str]) -> None:
    for name in names:
        if name not in config[section]:
            raise UserError(f"{where}: no {name} is defined under {section}.")


def _with(
    config: dict[str, Any], where: str, section: str, added: Mapping[str, Any]
) -> dict[str, Any]:
    if taken := sorted((set(added) & set(config[section])) | (set(added) & set(BASELINES))):
        raise UserError(
            f"{where}: it makes entries of its own in {section}, and {', '.join(taken)} is defined"
            " there already; give that another name."
        )
    return {**config, section: {**config[section], **added}}

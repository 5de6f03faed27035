"""The configuration of a study, checked and filled with its defaults.

Snakemake's own ``validate`` fills no nested default without its parent, accepts duplicate keys and
answers with the whole schema, so the checks and their wording are ours.
"""

from collections.abc import Iterable, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

from ultrbench.configuration_problems import NAMED, branch, contradictions, schema_problems
from ultrbench.errors import UserError
from ultrbench.yaml_files import duplicate_keys, endless_aliases


def read_config(
    config: Mapping[str, Any],
    schema: Mapping[str, Any],
    registry: Mapping[str, Any] | None = None,
    files: Iterable[str | Path] = (),
) -> dict[str, Any]:
    """Check a configuration and fill its defaults.

    Parameters
    ----------
    config : mapping
        What Snakemake merged from the config files and the command line.
    schema : mapping
        The content of ``workflow/schemas/config.schema.yaml``.
    registry : mapping, optional
        The data sets by name; without it the names of data sets are not looked up.
    files : iterable of path-like
        The config files, read again for keys that stand in them twice and endless aliases.

    Returns
    -------
    dict
        A new configuration with every default filled in, whole numbers as ``int`` and other
        numbers as ``float``. Reading it again gives the same.

    Raises
    ------
    UserError
        All mistakes at once, one sentence each. Definitions that the study does not use may lack
        keys, and are checked otherwise.

    Examples
    --------
    >>> schema = {"properties": {"list_size": {"type": "integer", "default": 10}}}
    >>> read_config({}, schema)
    {'list_size': 10}
    >>> read_config({"list_size": "ten"}, schema)
    Traceback (most recent call last):
        ...
    ultrbench.errors.UserError: The configuration has 1 problem:
    - list_size: a whole number is wanted, got the text 'ten'.
    """
    for sentence in filter(None, map(endless_aliases, files)):
        raise UserError(sentence)
    problems = list(schema_problems(config, schema))
    sound = _filled(schema, _without(config, [problem.path for problem in problems]))
    problems += contradictions(sound, schema, registry)
    used = _used(sound)
    sentences = [sentence for file in files for sentence in duplicate_keys(file)]
    sentences += [
        problem.sentence
        for problem in problems
        if not (problem.missing and problem.path[0] in NAMED and problem.path[1:])
        or problem.path[:2] in used
    ]
    if sentences:
        sentences = list(dict.fromkeys(" ".join(text.split("\n")) for text in sentences))
        count = f"{len(sentences)} problem{'s' if len(sentences) > 1 else ''}"
        raise UserError("\n- ".join([f"The configuration has {count}:", *sentences]))
    return sound


def _without(config: Any, paths: Iterable[tuple]) -> dict[str, Any]:
    """Copy a configuration without its mistakes, so that the rest can be checked further.

    A list goes as a whole; of a definition the name stays.
    """
    config = deepcopy(config) if isinstance(config, Mapping) else {}
    for path in paths:
        holder = config
        for depth, key in enumerate(path, start=1):
            if depth < len(path) and isinstance(holder.get(key), Mapping):
                holder = holder[key]
            elif depth == len(path) == 2 and path[0] in NAMED and key in holder:
                holder[key] = {}
            else:
                holder.pop(key, None)
                break
    return config


def _filled(schema: Mapping[str, Any], value: Any) -> Any:
    """Fill the defaults of a value that the schema allows, and settle its numeric types."""
    if "oneOf" in schema and "type" not in schema:
        chosen = branch(schema, value)
        return {} if chosen is None else _filled(schema["oneOf"][chosen], value)
    if "enum" in schema or not schema:
        return value
    kind = schema.get("type", "object")
    if kind == "object":
        known, other = schema.get("properties", {}), schema.get("additionalProperties", {})
        filled = {
            key: _filled(part, value.get(key, part.get("default")))
            for key, part in known.items()
            if key in value or "default" in part
        }
        return filled | {key: _filled(other, value[key]) for key in value if key not in known}
    if kind == "array":
        return [_filled(schema["items"], item) for item in value]
    return {"integer": int, "number": float, "string": str, "boolean": bool}[kind](value)


def _used(config: Mapping[str, Any]) -> set[tuple[str, str]]:
    """The (section, name) of the definitions that the study uses."""

    def named(section: str, names: Iterable[str], key: str) -> list:
        entries = config.get(section, {})
        return [entries[name][key] for name in names if key in entries.get(name, {})]

    study = config.get("study", {})
    settings = study.get("settings", [])
    methods = [name for names in named("settings", settings, "methods") for name in names]
    estimators = named("methods", methods, "estimator")
    if "clicks" in config.get("training", {}).get("validation", []):
        estimators.append(config["training"]["validation_theta"])
    rankers = named("methods", methods, "ranker")
    lists = [study.get("policies", []), settings, methods, estimators, rankers]
    return {(section, name) for section, names in zip(NAMED, lists, strict=True) for name in names}

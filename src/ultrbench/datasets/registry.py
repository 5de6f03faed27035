"""The registry of data sets: a mapping from names to entries, checked before anything uses it."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ultrbench.datasets.split import SPLITS
from ultrbench.errors import UserError
from ultrbench.yaml_files import misread_number, parse_yaml, refuse_endless_aliases

NAME = re.compile("[a-z0-9][a-z0-9-]{0,63}")


def load_registry(path: str | Path, schema: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Read and check a registry file.

    Parameters
    ----------
    path : path-like
        YAML file, a mapping from data set names to entries.
    schema : mapping
        The content of ``workflow/schemas/datasets.schema.yaml``.

    Returns
    -------
    dict
        Entries by name; in entries of kind ``letor``, ``path`` is a list and ``files`` is there.

    Raises
    ------
    UserError
        One sentence a mistake: which key, what was given, what is allowed.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "datasets.yaml"
    >>> _ = path.write_text("mine: {kind: letor, ymax: 2, features: 46, path: mine.zip}")
    >>> load_registry(path, schema={"$defs": {"letor": {}}})["mine"]["path"]
    ['mine.zip']
    """
    import yaml

    if not isinstance(path, str | Path):
        raise UserError(f"registry: the path of a YAML file is wanted, got {path!r:.60}.")
    path = Path(path)
    try:
        refuse_endless_aliases(path)
        sentences = list(_slips(yaml.compose(path.read_bytes(), yaml.SafeLoader)))
        registry = parse_yaml(path.read_bytes(), str(path))
    except (OSError, ValueError) as error:  # a path may hold what no path can
        said = getattr(error, "strerror", None) or error
        raise UserError(
            f"The registry {path} cannot be read: {said}. See the key registry."
        ) from None
    except yaml.YAMLError as error:
        raise UserError(f"{path} is not a YAML file: {error}") from None

    sentences = sentences or list(_faults(registry, schema))
    if sentences:
        raise UserError("\n".join(f"{path}: {sentence}" for sentence in sentences))
    return registry


def _faults(registry: Any, schema: Mapping[str, Any]) -> Iterator[str]:
    """Yield a sentence a mistake; fill the defaults of sound entries."""
    from jsonschema import Draft202012Validator

    if not isinstance(registry, dict) or not registry:
        yield "a mapping from data set names to entries is wanted, and this is none."
        return
    for name, entry in registry.items():
        kind = entry.get("kind") if isinstance(entry, dict) else None
        if not isinstance(name, str) or not NAME.fullmatch(name):
            yield (
                f"{name!r} is no name for a data set, as it becomes a folder; use lower-case "
                "letters, digits and hyphens, at most 64, a letter or digit first."
            )
        elif kind not in ("synthetic", "letor"):
            yield f"{name}.kind: got {kind!r}; wanted: synthetic or letor."
        else:
            own = {"$defs": schema["$defs"], "$ref": f"#/$defs/{kind}"}
            faults = [_sentence(name, e) for e in Draft202012Validator(own).iter_errors(entry)]
            yield from faults
            if kind == "letor" and not faults:
                yield from _complete(name, entry)


def _complete(name: str, entry: dict[str, Any]) -> Iterator[str]:
    """Fill the defaults of a letor entry; yield what the schema cannot say about it."""
    if isinstance(entry["path"], str):
        entry["path"] = [entry["path"]]
    entry.setdefault("files", {split: f"{split}.txt" for split in SPLITS})
    for split, pattern in entry["files"].items():
        if "{fold}" in pattern and "fold" not in entry:
            yield f"{name}.files.{split}: {pattern} needs the key fold; add it to {name}."


def _slips(node: Any) -> Iterator[str]:
    """Yield a sentence for every key that stands twice: YAML would keep the last one silently.

    And for every number that it reads as another.
    """
    if node is None or node.id == "scalar":
        yield from misread_number(node) if node else ()
        return
    seen: set[str] = set()
    for child in node.value:
        if node.id == "sequence":
            yield from _slips(child)
            continue
        key, value = child
        name = str(key.value)
        if name in seen:
            yield f"the key {name} in line {key.start_mark.line + 1} stands there twice."
        seen.add(name)
        yield from _slips(value)


def _sentence(name: str, error: Any) -> str:
    where = ".".join([name, *map(str, error.absolute_path)])
    value, schema = error.instance, error.schema
    if error.validator == "additionalProperties":
        known = schema["properties"]
        unknown = ", ".join(str(key) for key in value if key not in known)
        return f"{where}: there is no key {unknown} here; the keys are {', '.join(known)}."
    if error.validator == "required":
        key = next(key for key in schema["required"] if error.message.startswith(repr(key)))
        return f"{where}: the key {key} is missing ({schema['properties'][key]['description']})."
    return f"{where}: got {value!r:.60}; wanted: {schema['description']}."

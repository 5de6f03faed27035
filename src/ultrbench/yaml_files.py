"""YAML files, read strictly: a key that stands twice is a mistake, not an update."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ultrbench.errors import UserError

if TYPE_CHECKING:
    import yaml

MOST_VALUES = 100_000


def read_yaml(path: str | Path) -> Any:
    """Read a YAML file, refusing what is not YAML, endless aliases and keys that stand there twice.

    Raises
    ------
    UserError
        With file and line.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "a.yaml"
    >>> _ = path.write_text("seeds: [1, 2]")
    >>> read_yaml(path)
    {'seeds': [1, 2]}
    """
    refuse_endless_aliases(path)
    if sentences := duplicate_keys(path):
        raise UserError("\n".join(sentences))
    return parse_yaml(Path(path).read_bytes(), str(path))


def parse_yaml(text: str | bytes, where: str) -> Any:
    """Return what YAML stands for.

    Raises
    ------
    UserError
        Where it is not YAML, or a value not of its kind, such as a 30th of February.

    Examples
    --------
    >>> parse_yaml("[1, 0.5]", "--set")
    [1, 0.5]
    """
    import yaml

    try:
        return yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except Exception as error:  # of scalars also ValueError, KeyError and AttributeError
        raise UserError(_not_yaml(where, error)) from None


def _not_yaml(where: str, error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    line = f":{mark.line + 1}" if mark else ""
    said = getattr(error, "problem", None) or error
    return f"{where}{line}: this is not YAML: {said}."


def refuse_endless_aliases(path: str | Path) -> None:
    """Refuse a YAML file whose aliases stand for themselves or for very many values.

    Whoever prints or merges such a document does not come to an end. Of a file that is not YAML
    `duplicate_keys` tells.

    Raises
    ------
    UserError
        With file, and line where one value is to blame.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "a.yaml"
    >>> _ = path.write_text("seeds: &all [1, *all]")
    >>> refuse_endless_aliases(path)
    Traceback (most recent call last):
        ...
    ultrbench.errors.UserError: ...a.yaml:1: the value that begins here contains itself by an
    alias; write it out.
    """
    import yaml

    sizes: dict[int, int | None] = {}

    def size(node: yaml.Node) -> int:
        if id(node) in sizes:
            known = sizes[id(node)]
            if known is None:
                line = node.start_mark.line + 1
                raise UserError(
                    f"{path}:{line}: the value that begins here contains itself by an alias;"
                    " write it out."
                )
            return known
        sizes[id(node)] = None
        parts = node.value if isinstance(node, yaml.CollectionNode) else []
        if isinstance(node, yaml.MappingNode):
            parts = [part for pair in parts for part in pair]
        sizes[id(node)] = total = 1 + sum(size(part) for part in parts)
        return total

    try:
        root = yaml.compose(Path(path).read_bytes(), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        values = size(root) if root else 0
    except RecursionError:
        raise UserError(
            f"{path}: lists and mappings are nested too deep; is this the right file?"
        ) from None
    except (OSError, yaml.YAMLError):
        return
    if values > max(MOST_VALUES, len(sizes)):
        raise UserError(
            f"{path}: its aliases stand for {values:,} values; write out what you mean."
        )


def duplicate_keys(path: str | Path) -> list[str]:
    """Return a sentence for each key that stands twice in a mapping of a YAML file.

    YAML readers keep the last of them without a word. Numbers that `misread_number` finds have
    a sentence too. A file that is not YAML gives the one sentence that says where.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "a.yaml"
    >>> _ = path.write_text("eta: 1\\neps: 0\\neta: 2")
    >>> [sentence.replace(str(path), "a.yaml") for sentence in duplicate_keys(path)]
    ['a.yaml:3: the key eta stands twice, first in line 1; keep one of them.']
    """
    try:
        return misreadings(Path(path).read_bytes(), str(path))
    except OSError as error:
        return [f"{path} cannot be read: {error.strerror}."]


def misreadings(text: str | bytes, where: str) -> list[str]:
    """Return what `duplicate_keys` does, of a text.

    Examples
    --------
    >>> misreadings("[1, 010]", "--set")
    ['--set:1: YAML takes 010 for 8; write the number plainly, or a text in quotes.']
    """
    import yaml

    try:
        root = yaml.compose(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (yaml.YAMLError, UnicodeError) as error:
        return [_not_yaml(where, error)]

    sentences = []
    nodes, seen = [root], set()
    while nodes:
        node = nodes.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            nodes += reversed(node.value)
        elif isinstance(node, yaml.ScalarNode):
            sentences += [f"{where}:{node.start_mark.line + 1}: {s}" for s in misread_number(node)]
        elif isinstance(node, yaml.MappingNode):
            first: dict[str, int] = {}
            for key, _ in node.value:
                name, line = str(key.value), key.start_mark.line + 1
                if name in first:
                    sentences.append(
                        f"{where}:{line}: the key {name} stands twice, first in line {first[name]};"
                        " keep one of them."
                    )
                first.setdefault(name, line)
            nodes += [value for _, value in reversed(node.value)]
    return sentences


def misread_number(node: "yaml.ScalarNode") -> list[str]:
    """Return the sentence on a number that YAML takes for another than it looks, if it does.

    Examples
    --------
    >>> import yaml
    >>> misread_number(yaml.compose("010"))
    ['YAML takes 010 for 8; write the number plainly, or a text in quotes.']
    >>> misread_number(yaml.compose("0.10"))
    []
    """
    number = node.tag in ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")
    if not number or node.style or not re.match(r"[+-]?(0[0-9_]|[0-9_]+:)", node.value):
        return []
    taken = parse_yaml(node.value, node.value)
    if node.value.lstrip("+-").replace(".", "").isdigit() and float(node.value) == taken:
        return []
    return [f"YAML takes {node.value} for {taken}; write the number plainly, or a text in quotes."]

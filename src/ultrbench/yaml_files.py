"""YAML files, read strictly: a key that stands twice is a mistake, not an update."""

from pathlib import Path
from typing import Any

from ultrbench.errors import UserError

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
    import yaml

    sentences = [sentence for sentence in [endless_aliases(path)] if sentence]
    if sentences := sentences or duplicate_keys(path):
        raise UserError("\n".join(sentences))
    return yaml.load(Path(path).read_bytes(), getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def endless_aliases(path: str | Path) -> str | None:
    """Say of a YAML file that its aliases stand for themselves or for very many values.

    Whoever prints or merges such a document does not come to an end. Of a file that is not YAML
    `duplicate_keys` tells.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "a.yaml"
    >>> _ = path.write_text("seeds: &all [1, *all]")
    >>> print(str(endless_aliases(path)).replace(str(path), "a.yaml"))
    a.yaml:1: the value that begins here contains itself by an alias; write it out.
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
    except UserError as error:
        return str(error)
    except RecursionError:
        return f"{path}: lists and mappings are nested too deep; is this the right file?"
    except (OSError, yaml.YAMLError):
        return None
    if values > max(MOST_VALUES, len(sizes)):
        return f"{path}: its aliases stand for {values:,} values; write out what you mean."
    return None


def duplicate_keys(path: str | Path) -> list[str]:
    """Return a sentence for each key that stands twice in a mapping of a YAML file.

    YAML readers keep the last of them without a word. A file that is not YAML gives the one
    sentence that says where.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "a.yaml"
    >>> _ = path.write_text("eta: 1\\neps: 0\\neta: 2")
    >>> [sentence.replace(str(path), "a.yaml") for sentence in duplicate_keys(path)]
    ['a.yaml:3: the key eta stands twice, first in line 1; keep one of them.']
    """
    import yaml

    try:
        root = yaml.compose(Path(path).read_bytes(), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except OSError as error:
        return [f"{path} cannot be read: {error.strerror}."]
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        return [f"{path}{line}: this is not YAML: {getattr(error, 'problem', None) or error}."]

    sentences = []
    nodes, seen = [root], set()
    while nodes:
        node = nodes.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            nodes += reversed(node.value)
        elif isinstance(node, yaml.MappingNode):
            first: dict[str, int] = {}
            for key, _ in node.value:
                name, line = str(key.value), key.start_mark.line + 1
                if name in first:
                    sentences.append(
                        f"{path}:{line}: the key {name} stands twice, first in line {first[name]}; "
                        "keep one of them."
                    )
                first.setdefault(name, line)
            nodes += [value for _, value in reversed(node.value)]
    return sentences

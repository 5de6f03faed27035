"""The key tables of config/README.md, written from the schema.

``python tests/unit/key_tables.py`` renews them in place; a test compares them.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from ultrbench.configuration_problems import allowed
from ultrbench.files import write_text
from ultrbench.yaml_files import read_yaml

ROOT = Path(__file__).parents[2]
SCHEMA = ROOT / "workflow/schemas/config.schema.yaml"
README = ROOT / "config/README.md"
BLOCK = re.compile(r"(<!-- keys: (.+?) -->\n).*?(<!-- end -->)", re.DOTALL)


def objects(schema: dict, name: str = "top level") -> Iterator[tuple[str, dict]]:
    """Yield each mapping that has keys, under the name that its README block bears."""
    if "properties" in schema:
        yield name, schema
        for key, part in schema["properties"].items():
            yield from objects(part, key)
    elif "oneOf" in schema:
        for option in schema["oneOf"]:
            kind = option["properties"].get("kind", {})
            kinds = ["own"] if "examples" in kind else kind.get("enum", option["required"][:1])
            yield f"{name}, {' '.join(kinds)}", option
    elif isinstance(schema.get("additionalProperties"), dict):
        yield from objects(schema["additionalProperties"], f"{name}.<name>")


def inline(value: object) -> str:
    """Return a default as YAML in one line."""
    if isinstance(value, list):
        return f"[{', '.join(map(str, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {part}' for key, part in value.items())}}}"
    return str(value).lower() if isinstance(value, bool) else str(value)


def table(schema: dict) -> str:
    """Return the Markdown table of the keys of one mapping."""
    lines = ["| key | allowed | default | meaning |", "|---|---|---|---|"]
    for key, part in schema["properties"].items():
        default = "required" if key in schema.get("required", []) else "-"
        if "default" in part:
            value = part["default"]
            default = "see below" if value == {} else f"`{inline(value)}`"
        lines.append(f"| `{key}` | {allowed(part)} | {default} | {part['description']} |")
    return "\n".join([schema["description"], "", *lines, ""])


def tables() -> dict[str, str]:
    """Return the tables of all mappings by block name."""
    return {name: table(schema) for name, schema in objects(read_yaml(SCHEMA))}


if __name__ == "__main__":
    current = tables()
    renewed = BLOCK.sub(lambda m: m[1] + current[m[2]] + m[3], README.read_text(encoding="utf-8"))
    write_text(README, renewed)

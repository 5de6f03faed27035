"""Code blocks of the documents, and the files that they are for."""

import re
from pathlib import Path
from typing import NamedTuple

import yaml

from .conftest import REPOSITORY, merge

BLOCK = re.compile(r"(?P<before>[^\n]*)\n\n```(?P<language>\w+)\n(?P<text>.*?)```", re.DOTALL)


class Block(NamedTuple):
    """A code block, with the file that the line before it names last."""

    language: str
    text: str
    file: str | None


def blocks(document: str, *languages: str) -> list[Block]:
    """Return the code blocks of a document in some languages.

    A block is for the file that the line before it ends with, as in "... in `mine.yaml`:".
    """
    found = []
    for match in BLOCK.finditer((REPOSITORY / document).read_text(encoding="utf-8")):
        named = re.search(r"`([\w./-]+\.\w+)`:$", match["before"])
        found.append(Block(match["language"], match["text"], named and named[1]))
    return [block for block in found if block.language in languages]


def write_files(document: str, folder: Path) -> None:
    """Put the files of a document into a folder: mappings are merged, all else is appended."""
    for block in blocks(document, "yaml", "python"):
        if block.file is None:
            continue
        file = folder / block.file
        before = file.read_text() if file.exists() else ""
        if block.language == "yaml":
            both = merge(yaml.safe_load(before) or {}, yaml.safe_load(block.text))
            file.write_text(yaml.safe_dump(both))
        else:
            file.write_text(f"{before}\n\n{block.text}")

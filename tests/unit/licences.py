"""Write the licences of all locked packages: ``python tests/unit/licences.py``."""

import re
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/licences.md"
# Packages of the lock that this platform does not install, by their projects' own files.
ELSEWHERE = {"colorama": "BSD-3-Clause", "pyreadline3": "BSD-3-Clause"}
HEAD = """# Licences of dependencies

ultrbench is under Apache-2.0 and ships none of these packages; `requirements.lock` installs them.
`python tests/unit/licences.py` writes this table from the lock and what the installed packages say.

| package | version | licence |
|---|---|---|
"""


def licence(name: str) -> str:
    """What a package says of its licence: expression, classifiers, or first line of the text."""
    try:
        about = metadata.metadata(name)
    except metadata.PackageNotFoundError:
        return ELSEWHERE[name]
    classifiers = [
        found.rpartition(" :: ")[2]
        for found in about.get_all("Classifier") or []
        if found.startswith("License :: ") and found != "License :: OSI Approved"
    ]
    texts = [about["License"] or ""]
    texts += [file.read_text() for file in metadata.files(name) or [] if "LICENSE" in file.name]
    lines = [text.strip().partition("\n")[0] for text in texts]
    found = about["License-Expression"] or ", ".join(classifiers) or next(filter(None, lines), "")
    if not found:
        raise LookupError(f"{name} says nothing of its licence: look it up, and add it here")
    return found


def page() -> str:
    """The page, from ``requirements.lock``."""
    lock = (ROOT / "requirements.lock").read_text()
    locked = re.findall(r"^([\w.-]+)(?:\[[\w,-]+\])?==([\w.]+)", lock, flags=re.MULTILINE)
    return HEAD + "".join(f"| {name} | {version} | {licence(name)} |\n" for name, version in locked)


if __name__ == "__main__":
    PAGE.write_text(page())

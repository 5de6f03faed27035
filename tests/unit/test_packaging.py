"""The files that packaging needs say the same thing."""

import re
import tomllib
from pathlib import Path

import yaml

import ultrbench

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
LOCK = (ROOT / "requirements.lock").read_text()
LOCKED = dict(re.findall(r"^([\w.-]+)==([\w.]+)", LOCK, flags=re.MULTILINE))


def names(requirements: list[str]) -> set[str]:
    return {re.match(r"[\w-]+", requirement)[0] for requirement in requirements}


def test_every_requirement_is_locked() -> None:
    extras = [r for group in PROJECT["optional-dependencies"].values() for r in group]
    assert names(PROJECT["dependencies"] + extras) <= set(LOCKED)


def test_every_locked_version_has_a_hash_and_none_an_address() -> None:
    blocks = re.split(r"\n(?=[\w.-]+==)", LOCK)
    assert len(blocks) >= len(LOCKED) > 50
    assert all("--hash=sha256:" in block for block in blocks)
    assert "://" not in LOCK


def test_the_conda_way_takes_its_versions_from_the_lock() -> None:
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    *conda, pip = environment["dependencies"]
    assert names(conda) == {"python", "pip"}
    assert pip == {"pip": ["--require-hashes", "-r requirements.lock"]}


def test_the_citation_names_this_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == PROJECT["version"] == ultrbench.__version__
    assert citation["license"] == PROJECT["license"] == "Apache-2.0"
    assert "Apache License" in (ROOT / "LICENSE").read_text()

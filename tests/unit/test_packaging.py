"""The files that packaging needs say the same thing."""

import re
import tomllib
from importlib import metadata
from pathlib import Path

import yaml
from packaging.requirements import Requirement

import ultrbench

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
LOCK = (ROOT / "requirements.lock").read_text()
PINNED = r"^([\w.-]+)(?:\[[\w,-]+\])?==([\w.]+)"
LOCKED = dict(re.findall(PINNED, LOCK, flags=re.MULTILINE))


def names(requirements: list[str]) -> set[str]:
    return {re.match(r"[\w-]+", requirement)[0] for requirement in requirements}


def test_every_requirement_is_locked() -> None:
    extras = [r for group in PROJECT["optional-dependencies"].values() for r in group]
    assert names(PROJECT["dependencies"] + extras) <= set(LOCKED)


def test_every_locked_version_has_a_hash_and_none_an_address() -> None:
    blocks = re.split(r"\n(?=[\w.-]+(?:\[[\w,-]+\])?==)", LOCK)
    assert len(blocks) >= len(LOCKED) > 50
    assert all("--hash=sha256:" in block for block in blocks)
    assert "://" not in LOCK


def test_the_lock_pins_the_extras_that_its_packages_ask_for() -> None:
    # To pip coverage[toml] is not the pinned coverage: it takes a newer one, and lacks its hashes.
    pinned = re.findall(r"^([\w.-]+\[[\w,-]+\])==", LOCK, flags=re.MULTILINE)
    asked = [
        f"{requirement.name}[{','.join(sorted(requirement.extras))}]"
        for package in metadata.distributions()
        if package.name in LOCKED
        for requirement in map(Requirement, package.requires or [])
        if requirement.extras
        and (requirement.marker is None or requirement.marker.evaluate({"extra": ""}))
    ]
    assert asked and set(asked) <= set(pinned)


def test_the_conda_way_takes_its_versions_from_the_lock() -> None:
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    *conda, pip = environment["dependencies"]
    assert names(conda) == {"python", "pip"}
    assert pip == {"pip": ["--require-hashes", "-r requirements.lock"]}


def test_the_plugin_for_slurm_lacks_nothing_that_no_lock_has() -> None:
    plugin = (ROOT / "requirements-slurm.txt").read_text()
    assert "://" not in plugin
    own = dict(re.findall(r"^([\w.-]+)==([\w.]+)", plugin, flags=re.MULTILINE))
    assert set(own) == {
        "snakemake-executor-plugin-slurm",
        "snakemake-executor-plugin-slurm-jobstep",
    }
    assert not set(own) & set(LOCKED)
    assert plugin.count("--hash=sha256:") >= len(own)


def test_the_container_runs_the_commands_of_the_continuous_integration() -> None:
    recipe = (ROOT / "Dockerfile").read_text()
    script = (ROOT / ".ci/run").read_text()
    assert re.search(r"^CMD (.+)$", recipe, re.MULTILINE)[1] == '["bash", ".ci/run"]'
    jobs = [
        yaml.safe_load((ROOT / ".gitlab-ci.yml").read_text())["ci"]["script"][0],
        yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())["jobs"]["ci"]["steps"][-1][
            "run"
        ],
    ]
    assert jobs == ["bash .ci/run"] * 2
    # What the script would install is there already, from the lock and by the Makefile's own way.
    packages = re.search(r"--no-install-recommends ([a-z -]+)\)", script)[1].split()
    assert set(packages) <= set(re.search(r"--no-install-recommends (.+) \\", recipe)[1].split())
    target = re.search(r"^RUN make (\S+)$", recipe, re.MULTILINE)[1]
    assert f"\n{target}: requirements.lock" in (ROOT / "Makefile").read_text()
    # The Python of the recipe is that of the workflow's container and of the integration.
    image = re.search(r"^FROM (\S+)$", recipe, re.MULTILINE)[1]
    assert f'container: "docker://{image}"' in (ROOT / "Snakefile").read_text()
    assert image == "python:3.11-slim"


CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text())


def test_the_citation_names_this_version() -> None:
    assert CITATION["version"] == PROJECT["version"] == ultrbench.__version__
    assert CITATION["license"] == PROJECT["license"] == "Apache-2.0"
    assert "Apache License" in (ROOT / "LICENSE").read_text()


def test_the_changelog_ends_with_this_version() -> None:
    assert re.fullmatch(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)", PROJECT["version"])
    headings = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)
    released = [heading for heading in headings if heading != "Unreleased"]
    assert headings.index("Unreleased") == 0 if "Unreleased" in headings else released
    if released:
        date = CITATION["date-released"]
        assert released[0] == f"{PROJECT['version']} ({date})"
        numbers = [tuple(map(int, heading.split(" ")[0].split("."))) for heading in released]
        assert numbers == sorted(numbers, reverse=True)
    else:
        assert PROJECT["version"] == "0.1.0", "a version was raised without a release"


def test_the_workflow_catalogue_is_told_what_the_rules_say() -> None:
    usage = yaml.safe_load((ROOT / ".snakemake-workflow-catalog.yml").read_text())["usage"]
    deployment = usage["software-stack-deployment"]
    rules = "".join(file.read_text() for file in (ROOT / "workflow/rules").glob("*.smk"))
    assert deployment["conda"] is deployment["apptainer+conda"] is ("conda:" in rules)
    assert deployment["report"] is ("report(" in rules)
    assert (ROOT / "config/README.md").is_file() and (ROOT / "config/config.yaml").is_file()


def test_every_locked_package_has_a_licence_in_the_list() -> None:
    page = (ROOT / "docs/licences.md").read_text()
    rows = re.findall(r"^\| ([\w.-]+) \| ([\w.]+) \| (\S.*) \|$", page, flags=re.MULTILINE)
    locked = re.findall(PINNED, LOCK, flags=re.MULTILINE)
    assert [(name, version) for name, version, _ in rows[1:]] == locked

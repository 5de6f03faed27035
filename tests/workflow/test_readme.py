"""Every command of README.md and the other documents, as far as it goes without running a study."""

import argparse
import re
import runpy
import shlex
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest
import yaml

from ultrbench.__main__ import _parser
from ultrbench.evaluation.__main__ import add_arguments

from .conftest import REPOSITORY, Study, copy_study
from .documents import blocks, write_files

FOLDERS = ("", "docs", "config")
DOCUMENTS = [
    str(file.relative_to(REPOSITORY))
    for folder in FOLDERS
    for file in sorted((REPOSITORY / folder).glob("*.md"))
]
# Archives that a user puts down; what is fetched needs none.
ARCHIVES = ("mslr-web10k-slice.zip", "MSLR-WEB30K.zip", "ltrc_yahoo.tgz")
# A study of its own size takes 40 s to plan; its first stage reads the same configuration.
PLANNED = {"config/paper.yaml": ["data"]}
ONE_SEED = "one-seed.yaml"


def commands(document: str) -> list[list[str]]:
    """The shell commands of a document, as words; continued lines and pipes are one each."""
    found = []
    for block in blocks(document, "sh"):
        lines = re.sub(r"(\\|\|)\n\s*", lambda m: m[1].strip("\\") + " ", block.text)
        found += [words for line in lines.splitlines() if (words := shlex.split(line, True))]
    return found


COMMANDS = [(document, words) for document in DOCUMENTS for words in commands(document)]


def program(words: list[str]) -> str:
    """The program of a command, whether it comes from .venv or not."""
    return Path(words[0]).name


def snakemake_commands() -> dict[str, argparse.Namespace]:
    """The parsed arguments of the local snakemake commands, by the whole command."""
    from snakemake.cli import parse_args

    return {
        shlex.join(words): parse_args(words[1:])[1]
        for _, words in COMMANDS
        if program(words) == "snakemake" and not {"--profile", "--executor"} & set(words)
    }


def test_the_documents_have_commands_and_none_is_unknown() -> None:
    assert {"README.md", "docs/targets.md", "docs/command-line.md"} <= {d for d, _ in COMMANDS}
    known = {"snakemake", "make", "python", "source", "conda", "pip", "uv", "printf"}
    assert {program(words) for _, words in COMMANDS} == known, "cover new commands in this test"


@pytest.fixture(scope="module")
def newcomer(tmp_path_factory: pytest.TempPathFactory) -> Study:
    """A copy of the repository with the files that the first page tells to write."""
    study = copy_study(tmp_path_factory.mktemp("newcomer"))
    write_files("README.md", study.folder)
    (study.folder / ONE_SEED).write_text("study: {seeds: [1]}\n")
    (study.folder / "downloads").mkdir()
    for name in ARCHIVES:
        (study.folder / "downloads" / name).touch()
    return study


def test_snakemake_plans_every_command(newcomer: Study) -> None:
    joined = defaultdict(lambda: defaultdict(list))
    for options in snakemake_commands().values():
        file = " ".join(map(str, options.configfile or []))
        if options.report is None:  # a run must have ended: see test_runs.py
            together = joined[file]
            together["targets"] += PLANNED.get(file) or sorted(options.targets) or ["all"]
            together["--forcerun"] += options.forcerun or []
            together["--config"] += options.config or []
    assert {"", "mine.yaml", *PLANNED} <= set(joined)
    # With a configuration of their own, which a command gives.
    alone = {"sweeps", "tuning"}
    joined[""]["targets"] += set(targets_in_tables("README.md", "docs/targets.md")) - alone
    # What the commands read below results/ the workflow writes: runs as a folder, qrels as a file.
    read = {word for _, words in COMMANDS for word in words if word.startswith("results/")}
    joined[""]["targets"] += {re.sub(r"/[^/]+\.run$", "", word) for word in read - {"results"}}
    for file, together in joined.items():
        targets = dict.fromkeys(together.pop("targets"))
        flags = [word for flag, values in together.items() if values for word in (flag, *values)]
        files = [name for name in (file, ONE_SEED) if name]
        plan = ["snakemake", *targets, "-n", "--cores", "1", "--quiet", "host", *flags]
        done = subprocess.run(
            [sys.executable, "-m", *plan, "--configfile", *files],
            cwd=newcomer.folder,
            env=newcomer.environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        assert done.returncode == 0, (file, done.stdout[-2000:])
        assert "This was a dry-run" in done.stdout


def targets_in_tables(*documents: str) -> list[str]:
    """The names in the first column of the tables of targets."""
    text = "\n".join((REPOSITORY / document).read_text() for document in documents)
    parts = re.findall(r"^\| target \|.*\n\|[-|]+\n((?:\|.*\n)+)", text, re.MULTILINE)
    return [name for part in parts for name in re.findall(r"^\| `(\w+)` ", part, re.MULTILINE)]


def test_the_tables_of_targets_and_the_picture_show_rules() -> None:
    names = targets_in_tables("README.md", "docs/targets.md")
    text = "".join(file.read_text() for file in (REPOSITORY / "workflow/rules").glob("*.smk"))
    rules = set(re.findall(r"^rule (\w+):", text, re.MULTILINE))
    assert len(names) == len(set(names)) > 12 and set(names) <= rules
    picture = runpy.run_path(str(REPOSITORY / "docs/figures/workflow.py"))
    assert {name for name, *_ in picture["BOXES"]} <= set(names)
    drawn = (REPOSITORY / "docs/figures/workflow.svg").read_text(encoding="utf-8")
    assert drawn == picture["draw"](), "run `python docs/figures/workflow.py`"


def test_make_knows_its_targets() -> None:
    text = "\n".join((REPOSITORY / document).read_text() for document in DOCUMENTS)
    targets = set(re.findall(r"`make ([a-z-]+)`", text))
    targets |= {words[1] for _, words in COMMANDS if program(words) == "make"}
    assert targets >= {"reproduce", "check", "progress", "test"}
    subprocess.run(
        ["make", "--dry-run", *sorted(targets)], cwd=REPOSITORY, check=True, capture_output=True
    )


def test_python_commands_fit_their_programs(newcomer: Study) -> None:
    parser, evaluation = _parser(), argparse.ArgumentParser()
    add_arguments(evaluation)
    for document, words in COMMANDS:
        if program(words) == "python" and words[1:3] == ["-m", "ultrbench"]:
            parser.parse_args(words[3:])
        elif program(words) == "python" and words[1] == "-m":
            assert words[2] == "ultrbench.evaluation"
            evaluation.parse_args(words[3:])
        elif program(words) == "python":
            written = {block.file for block in blocks(document, "python")}
            assert words[1] in written or (REPOSITORY / words[1]).is_file(), words


def test_other_commands_name_files_that_exist() -> None:
    own = {"source", "conda", "pip", "uv"}
    for document, words in COMMANDS:
        cluster = {"--profile", "--executor"} & set(words)
        if program(words) not in own and not cluster:
            continue
        for word in words[1:]:
            if re.search(r"^[\w./-]+\.(yml|txt|toml|lock|md)$", word):
                assert (REPOSITORY / word).is_file(), (document, words)
        if "--profile" in words:
            profile = REPOSITORY / words[words.index("--profile") + 1] / "config.yaml"
            assert yaml.safe_load(profile.read_text())["executor"] == "slurm"
        if "-e" in words:
            assert (REPOSITORY / words[words.index("-e") + 1] / "pyproject.toml").is_file()
        if "activate" in words:
            environment = yaml.safe_load((REPOSITORY / "environment.yml").read_text())
            assert words[words.index("activate") + 1] == environment["name"]
    assert "BIN = .venv/bin" in (REPOSITORY / "Makefile").read_text()


def anchors(document: Path) -> set[str]:
    """The anchors of a document's headings, as the common forges make them."""
    titles = re.findall(r"^#+ (.+)$", document.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_link_leads_somewhere(document: str) -> None:
    text = (REPOSITORY / document).read_text(encoding="utf-8")
    prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    for link in re.findall(r"(?:\]\(|src=\")([^)\s\"]+)[)\"]", prose):
        if re.match(r"https?://", link):
            continue
        path, _, anchor = link.partition("#")
        file = (REPOSITORY / document).parent / path if path else REPOSITORY / document
        assert file.is_file(), (document, link)
        assert not anchor or anchor in anchors(file), (document, link)


def test_the_first_page_lists_every_document() -> None:
    text = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    index = text.split("## Documents\n")[1]
    listed = re.findall(r"^\| \[(\S+)\]\((\S+)\) \| .+ \|$", index, re.MULTILINE)
    assert all(name == target for name, target in listed)
    wanted = set(DOCUMENTS) - {"README.md", "CHANGELOG.md"}
    assert sorted(name for name, _ in listed) == sorted(wanted)

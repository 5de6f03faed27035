"""What every rule of the workflow must state."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RULE = re.compile(r"^(?:use )?rule (\w+)(?: as (\w+) with)?:\n((?:[ \t]+.*\n|\n)+)", re.MULTILINE)
BLOCKS = [m for file in sorted((ROOT / "workflow/rules").glob("*.smk"))
          for m in RULE.finditer(file.read_text())]  # fmt: skip
OWN = {m[1]: m[3] for m in BLOCKS if not m[2] and "script:" in m[3]}


def test_the_rules_are_found() -> None:
    assert len(OWN) > 20
    # A rule that runs no script is a target, or takes what it lacks from the rule it varies.
    assert {m[1] for m in BLOCKS if m[2]} <= set(OWN)


@pytest.mark.parametrize("rule", OWN)
def test_a_rule_states_what_it_needs(rule: str) -> None:
    block = OWN[rule]
    assert re.search(r"^    threads: \d+$", block, re.MULTILINE)
    assert re.search(r"^    resources:\n        mem_mb=\d+", block, re.MULTILINE)
    assert "    log:\n" in block


def test_the_slurm_profile_groups_every_rule_that_runs() -> None:
    local = re.search(r"localrules:\n((?:    .*\n)+)", (ROOT / "Snakefile").read_text())[1]
    groups = (ROOT / "profiles/slurm/config.yaml").read_text()
    grouped = re.findall(r"^  - (\w+)=(?:logs|methods|evaluation|report)$", groups, re.MULTILINE)
    assert set(grouped) <= set(OWN) | {m[2] for m in BLOCKS}
    # Targets that are not part of `all` are submitted job by job.
    apart = {"ledger", "sweeps", "tuning", "report", "expected"}
    files = [f for f in (ROOT / "workflow/rules").glob("*.smk") if f.stem not in apart]
    wanted = {m[2] or m[1] for f in files for m in RULE.finditer(f.read_text())
              if m[2] or "script:" in m[3]}  # fmt: skip
    assert wanted - set(grouped) == {"fetch_dataset", "export_qrels", "export_runs"}
    assert "fetch_dataset" in local

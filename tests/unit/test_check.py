"""The comparison of a run with expected results: what differs, by how much, and why."""

import json
from pathlib import Path

import pandas as pd
import pytest

from ultrbench.errors import UserError
from ultrbench.reporting.check import SPREAD, causes, differences
from ultrbench.stages.expected import (
    check,
    fingerprint,
    main,
    noted_fingerprints,
    write_expected,
)

REPOSITORY = Path(__file__).parents[2]
METHODS = ("naive", "dla")


def provenance(**change):
    config = {
        "study": {"datasets": ["mine"], "policies": ["weak"], "settings": ["static"], "seeds": [1]},
        "interface": "result_page",
        "evaluation": {"cutoffs": [10]},
        "downloads": "downloads",
    }
    return {
        "commit": "abc",
        "python": "3.11.7",
        "machine": "x86_64",
        "packages": {"lightgbm": "4.7.0", "numpy": "2.4.6"},
        "datasets": {"mine": {"sha256": {"a.zip": "00"}, "ymax": 4}},
        "config": config,
    } | change


def comparison(method, mean):
    return {
        "candidates": "full", "validation": "grades", "method": method, "reference": "naive",
        "metric": "nDCG@10", "mean": mean, "significant": method == "dla", "p": 0.01, "low": 0.1,
        "high": 0.3, "replicates": 5, "difference": 0.2 if method == "dla" else 0.0,
    }  # fmt: skip


def make_run(folder: Path, *, dla=0.8, theta=0.1, verdict="holds", **change) -> Path:
    """A finished run of one place and two methods, with five replicates 0.01 apart."""
    place = folder / "evaluation/mine/weak/static"
    place.mkdir(parents=True)
    means = dict(zip(METHODS, (0.6, dla), strict=True))
    pd.DataFrame([comparison(*item) for item in means.items()]).to_csv(
        place / "comparisons.csv", index=False
    )
    rounds = [
        ("full", "grades", method, round_, seed, mean + 0.01 * (seed - 3) - 0.3 * (1 - round_))
        for method, mean in means.items()
        for round_ in (0, 1)
        for seed in range(1, 6)
    ]
    names = ["candidates", "validation", "method", "round", "seed", "nDCG@10"]
    pd.DataFrame(rounds, columns=names).to_csv(place / "rounds.csv", index=False)
    (folder / "tables/mine").mkdir(parents=True)
    pd.DataFrame(
        {"policy": "weak", "setting": "static", "method": ["dla"], "error": theta,
         "error_se": 0.02, "signed": -theta, "signed_se": 0.02}
    ).to_csv(folder / "tables/mine/propensity_error.csv", index=False)  # fmt: skip
    pd.DataFrame(
        {"claim": "a", "dataset": "mine", "policy": "weak", "setting": "static",
         "candidates": "full", "validation": "grades", "method": ["dla"], "against": "naive",
         "effect": 0.2, "low": 0.1, "high": 0.3, "verdict": verdict}
    ).to_csv(folder / "claims.csv", index=False)  # fmt: skip
    (folder / "provenance.json").write_text(json.dumps(provenance(**change)))
    return folder


@pytest.fixture
def expected(tmp_path: Path) -> Path:
    write_expected(make_run(tmp_path / "first"), tmp_path / "expected", "")
    return tmp_path / "expected"


def test_the_same_run_agrees_and_says_how_it_was_compared(expected, tmp_path):
    agrees, text = check(make_run(tmp_path / "run"), expected)
    assert agrees
    # Two means and two marks; error and signed error; effect and verdict.
    assert "8 numbers and words compared, equal to the three decimals" in text


def test_the_error_of_a_mean_comes_from_the_last_round(expected):
    table = pd.read_csv(expected / "main.csv")
    assert table["mean_se"].tolist() == pytest.approx([0.01 * (2.5 / 5) ** 0.5] * 2, rel=1e-5)


def test_the_same_versions_must_give_the_printed_digits(expected, tmp_path):
    agrees, text = check(make_run(tmp_path / "run", dla=0.8008), expected)
    assert not agrees
    assert "1 differ:" in text
    row = "mine, weak, static, full, grades, dla, nDCG@10: mean is 0.8008, expected 0.8000"
    assert f"{row} (tolerance 0.0005)" in text
    assert "a processor that rounds differently, or files of an older run" in text
    assert check(make_run(tmp_path / "close", dla=0.80049), expected)[0]


def test_other_versions_may_differ_by_the_spread_over_replicates(expected, tmp_path):
    other = provenance()["packages"] | {"lightgbm": "4.6.0"}
    allowed = SPREAD * 2**0.5 * 0.01 * (2.5 / 5) ** 0.5
    inside = make_run(tmp_path / "inside", dla=0.8 + 0.98 * allowed, packages=other)
    agrees, text = check(inside, expected)
    assert agrees
    assert "Although this run has another lightgbm: 4.6.0, expected 4.7.0." in text
    agrees, text = check(
        make_run(tmp_path / "outside", dla=0.8 + 1.02 * allowed, packages=other), expected
    )
    assert not agrees
    assert text.index("1 differ:") < text.index("another lightgbm: 4.6.0, expected 4.7.0")
    assert "`make reproduce` installs the expected versions" in text


def test_a_verdict_may_turn_over_only_with_other_versions(expected, tmp_path):
    agrees, text = check(make_run(tmp_path / "same", verdict="inconclusive"), expected)
    assert not agrees
    assert "verdict is inconclusive, expected holds" in text
    other = make_run(tmp_path / "other", verdict="inconclusive", machine="arm64")
    assert check(other, expected)[0]


def test_what_only_one_of_the_runs_has_is_said(expected):
    table = pd.read_csv(expected / "propensity_error.csv")
    more = pd.concat([table, table.assign(method="upe")])
    [one] = differences(table, more, "propensity_error", same=True)[1]
    assert one.sentence == "mine, weak, static, upe: it was not expected"
    [one] = differences(more, table, "propensity_error", same=True)[1]
    assert one.sentence == "mine, weak, static, upe: the run lacks it"


@pytest.mark.parametrize("side", [0, 1])
def test_a_row_that_stands_twice_differs(expected, side):
    table = pd.read_csv(expected / "propensity_error.csv")
    sides = [table, table]
    sides[side] = pd.concat([table, table.tail(1)])
    assert differences(table, table, "propensity_error", same=True)[1] == []
    [first, *_] = differences(*sides, "propensity_error", same=True)[1]
    assert first.sentence.endswith(": it stands in propensity_error twice")


def test_a_number_that_is_missing_on_one_side_differs(expected):
    table = pd.read_csv(expected / "propensity_error.csv")
    gone = table.assign(error=float("nan"))
    assert len(differences(table, gone, "propensity_error", same=False)[1]) == 1
    assert differences(gone, gone, "propensity_error", same=False)[1] == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"config": provenance()["config"] | {"list_size": 5}},
         "another configuration: list_size is 5, expected not set"),
        ({"config": provenance()["config"] | {"study": {"seeds": [7]}}},
         "other seeds [7], expected [1]"),
        ({"datasets": {"mine": {"sha256": {"a.zip": "01"}, "ymax": 4}}},
         "other data: sha256 of mine differ"),
        ({"datasets": {"mine": provenance()["datasets"]["mine"] | {"features_sha256": {}}}},
         "other data: features_sha256 of mine differ"),
        ({"machine": "arm64"}, "another platform, which rounds differently: arm64"),
        ({"python": "3.12.0"}, "another Python: 3.12, expected 3.11"),
    ],
)  # fmt: skip
def test_each_cause_is_named(change, words):
    assert any(cause.startswith(words) for cause in causes(provenance(), provenance(**change)))


def test_where_downloads_lie_is_no_cause():
    config = provenance()["config"] | {"downloads": "elsewhere"}
    assert causes(provenance(), provenance(config=config, python="3.11.9", commit="def")) == []


def test_other_code_is_the_cause_when_nothing_else_differs(expected, tmp_path):
    _, text = check(make_run(tmp_path / "run", theta=0.5, commit="def+changes"), expected)
    assert "2 differ:" in text
    assert "Likely cause: other code, def+changes, expected abc." in text


def test_a_run_that_is_not_finished_is_a_sentence(expected, tmp_path, capsys):
    with pytest.raises(UserError, match=r"provenance.json is missing: `snakemake --cores all`"):
        check(tmp_path, expected)
    run = make_run(tmp_path / "run")
    assert main([str(run)]) == 2
    assert "`snakemake expected` makes it" in capsys.readouterr().err
    assert main([str(run), str(expected)]) == 0
    assert "All agree." in capsys.readouterr().out


def test_the_line_for_the_changelog_names_old_and_new(expected, tmp_path):
    first = write_expected(make_run(tmp_path / "one"), tmp_path / "e1", "")
    assert first.startswith(f"- Expected results: none -> {fingerprint(tmp_path / 'e1')} (")
    line = first.replace("???", "the first.")
    second = write_expected(make_run(tmp_path / "two", dla=0.9), tmp_path / "e2", line)
    old, new = fingerprint(tmp_path / "e1"), fingerprint(tmp_path / "e2")
    assert f"{old} -> {new} (mean nDCG@10 0.7500)" in second
    # A line whose cause was not written yet explains nothing; lines may be broken.
    assert noted_fingerprints(second + "\n" + line) == [old]
    explained = second.replace("; cause: ???", ";\n  cause: another default.")
    assert noted_fingerprints(explained + "\n" + line) == [new, old]


def test_the_changelog_explains_the_expected_results_of_the_repository():
    folder = REPOSITORY / "results/expected"
    if not (folder / "main.csv").exists():
        pytest.skip("no expected results yet: `snakemake expected` writes them")
    noted = noted_fingerprints((REPOSITORY / "CHANGELOG.md").read_text(encoding="utf-8"))
    assert fingerprint(folder) == noted[0], "add the line that `snakemake expected` printed"


@pytest.mark.parametrize("side", ["expected", "run"])
def test_damaged_files_of_either_side_are_a_sentence(expected, tmp_path, capsys, side):
    run = make_run(tmp_path / "run")
    of_check = ("main.csv", "propensity_error.csv", "claims.csv", "provenance.json")
    for path in sorted({"expected": expected, "run": run}[side].rglob("*")):
        if not path.is_file() or (side == "expected" and path.name not in of_check):
            continue
        whole = path.read_bytes()
        cut = [whole[: len(whole) // 2]] + [whole[:-1]] * (path.suffix == ".csv")
        for content in (b"", *cut, b"<html>\n", b"[1]\n", b"\xe9\n"):
            path.write_bytes(content)
            assert main([str(run), str(expected)]) == 2, (path, content)
            assert path.name in capsys.readouterr().err
        path.unlink()
        path.mkdir()
        assert main([str(run), str(expected)]) == 2
        path.rmdir()
        path.write_bytes(whole)
    assert main([str(run), str(expected)]) == 0

"""The expected results of the default study, and the check of a run against them.

``python -m ultrbench.stages.expected`` compares ``results/`` with ``results/expected/``.
"""

import argparse
import hashlib
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from ultrbench import study
from ultrbench.errors import UserError
from ultrbench.files import read_json, read_table, reading, replacing, write_json
from ultrbench.reporting.check import TABLES, causes, differences
from ultrbench.reporting.tables import mark
from ultrbench.stages.evaluation import last_rounds
from ultrbench.terminal import leave

SHOWN = 10
MARKED = dict.fromkeys(("difference", "p", "low", "high", "replicates"), float)
MARKED |= {"significant": bool}
NOTED = {"config", "datasets", "packages", "python", "machine", "commit"}
# Student's t of five replicates would give less: an interval is at least this many errors wide.
_INTERVAL = 2 * 1.96


def digest(results: Path) -> dict[str, pd.DataFrame]:
    """Return what of a run is compared, by the names of `ultrbench.reporting.check.TABLES`.

    Parameters
    ----------
    results : pathlib.Path
        Folder of a finished run; its ``provenance.json`` says what ran.

    Raises
    ------
    UserError
        When the run is not finished.
    """
    config = _noted(results)["config"]
    places = [
        (dataset, policy, setting)
        for dataset in config["study"]["datasets"]
        for policy in config["study"]["policies"]
        for setting in config["study"]["settings"]
    ]
    main = pd.concat([_main(results, place) for place in places], ignore_index=True)
    errors = [
        _table(path, _columns("propensity_error", without="dataset")).assign(dataset=dataset)
        for dataset in config["study"]["datasets"]
        if (path := results / "tables" / dataset / "propensity_error.csv").exists()
    ]
    bounds = {"high": float, "low": float}
    claims = _table(results / "claims.csv", _columns("claims", without="effect_se") | bounds)
    claims["effect_se"] = (claims["high"] - claims["low"]) / _INTERVAL
    tables = {
        "main": main,
        "propensity_error": pd.concat(errors, ignore_index=True) if errors else main.iloc[:0],
        "claims": claims,
    }
    return {name: table.reindex(columns=[*_columns(name)]) for name, table in tables.items()}


def _columns(name: str, without: str = "") -> dict[str, type]:
    about = TABLES[name]
    columns: dict[str, type] = dict.fromkeys(about.keys, object)
    columns |= dict.fromkeys((c for pair in about.numbers.items() for c in pair), float)
    columns |= dict.fromkeys(about.words, object)
    return {column: kind for column, kind in columns.items() if column != without}


def _main(results: Path, place: tuple[str, str, str]) -> pd.DataFrame:
    folder = results.joinpath("evaluation", *place)
    keys = ["candidates", "validation", "method"]
    named: dict[str, type] = dict.fromkeys(keys, object)
    numbers = _table(folder / "comparisons.csv", named | {"metric": object} | MARKED)
    metrics: dict[str, type] = dict.fromkeys(numbers["metric"], float)
    rounds = _table(folder / "rounds.csv", named | {"round": int} | metrics)
    errors = last_rounds(rounds).groupby(keys)[list(numbers["metric"].unique())].sem().reset_index()
    errors = errors.melt(keys, var_name="metric", value_name="mean_se")
    numbers = numbers.merge(errors, "left", [*keys, "metric"])
    numbers["mark"] = [mark(row) for row in numbers.to_dict("records")]
    return numbers.assign(**dict(zip(("dataset", "policy", "setting"), place, strict=True)))


def _table(path: Path, columns: Mapping[str, type]) -> pd.DataFrame:
    try:
        frame = read_table(path, columns)
    except FileNotFoundError:
        raise UserError(_missing(path)) from None
    texts = frame.select_dtypes(exclude="number").columns
    return frame.astype(dict.fromkeys(texts, object)).fillna(dict.fromkeys(texts, ""))


def _noted(folder: Path) -> Any:
    path = folder / "provenance.json"
    try:
        with reading(path, "what a study notes of itself"):
            noted = read_json(path)
            if lacking := NOTED - noted.keys():
                raise ValueError(f"it lacks {', '.join(sorted(lacking))}")
    except FileNotFoundError:
        raise UserError(_missing(path)) from None
    return noted


def _missing(path: Path) -> str:
    made = "snakemake expected" if path.parent.name == "expected" else "snakemake --cores all"
    return f"{path} is missing: `{made}` makes it"


def fingerprint(expected: Path) -> str:
    """Return twelve hexadecimal digits that stand for the expected tables.

    Parameters
    ----------
    expected : pathlib.Path
        Folder from `write_expected`.
    """
    both = hashlib.sha256()
    for name in TABLES:
        both.update((expected / f"{name}.csv").read_bytes())
    return both.hexdigest()[:12]


def noted_fingerprints(changelog: str) -> list[str]:
    """Return the fingerprints of expected results that a changelog explains, newest first.

    Examples
    --------
    >>> noted_fingerprints("- Expected results: none -> 0123456789ab (nDCG@10 0.8); cause: new.")
    ['0123456789ab']
    """
    line = r"Expected\s+results:\s+\w+\s+->\s+([0-9a-f]{12})\s+\([^)]*\);\s+cause:\s+\w"
    return re.findall(line, changelog)


def write_expected(results: Path, out: Path, changelog: str) -> str:
    """Write the expected results of a study from a run of it.

    Parameters
    ----------
    results : pathlib.Path
        Folder of a finished run.
    out : pathlib.Path
        Folder for ``main.csv``, ``propensity_error.csv``, ``claims.csv``, six digits a number, and
        ``provenance.json``.
    changelog : str
        Text of ``CHANGELOG.md``.

    Returns
    -------
    str
        The line that the changelog needs.
    """
    about = _noted(results)
    tables = digest(results)
    for name, table in tables.items():
        with replacing(out / f"{name}.csv") as half:
            table.to_csv(half, index=False, float_format="%.6g", lineterminator="\n")
    write_json(out / "provenance.json", about)
    metric = study.headline_metric(about["config"])
    mean = tables["main"].loc[tables["main"]["metric"] == metric, "mean"].mean()
    old = next(iter(noted_fingerprints(changelog)), "none")
    return f"- Expected results: {old} -> {fingerprint(out)} (mean {metric} {mean:.4f}); cause: ???"


def check(results: Path, expected: Path) -> tuple[bool, str]:
    """Compare a run with the expected results.

    Parameters
    ----------
    results, expected : pathlib.Path
        Folder of a finished run, and folder from `write_expected`.

    Returns
    -------
    agrees : bool
        Whether everything is within its tolerance.
    text : str
        What was compared, what differs, the likely cause and what to do.

    Raises
    ------
    UserError
        When one of the folders lacks a file.
    """
    made = {folder: _noted(folder) for folder in (expected, results)}
    why = causes(made[expected], made[results])
    found = digest(results)
    compared, off = 0, []
    for name in TABLES:
        count, own = differences(
            _table(expected / f"{name}.csv", _columns(name)), found[name], name, same=not why
        )
        compared += count
        off += own
    tolerance = (
        "three standard errors of the difference of two runs, from the spread over replicates"
        if why
        else "equal to the three decimals that tables print"
    )
    lines = [f"{results} against {expected}: {compared:,} numbers and words compared, {tolerance}."]
    if not off:
        lines.append("All agree.")
        lines += [f"Although this run has {cause}." for cause in why]
        return True, "\n".join(lines)
    lines.append(f"{len(off):,} differ:")
    lines += [f"  {difference.sentence}" for difference in off[:SHOWN]]
    lines += [f"  and {len(off) - SHOWN:,} more"] if len(off) > SHOWN else []
    lines += _diagnosis(made[expected], made[results], why)
    return False, "\n".join(lines)


def _diagnosis(
    expected: Mapping[str, Any], found: Mapping[str, Any], why: Sequence[str]
) -> list[str]:
    commits = [str(run["commit"]) for run in (expected, found)]
    if why:
        lines = ["Likely cause:", *(f"  {cause}" for cause in why[:SHOWN])]
        if any("configuration" in cause or "seeds" in cause for cause in why):
            return [*lines, "The expected results are those of config/config.yaml as it came."]
        return [*lines, "`make reproduce` installs the expected versions."]
    if commits[0] != commits[1]:
        return [
            f"Likely cause: other code, {commits[1]}, expected {commits[0]}. Where the change is "
            "meant, `snakemake expected` and a line in CHANGELOG.md note it."
        ]
    return [
        "Versions, configuration, data and code are the expected ones. Likely cause: a processor "
        "that rounds differently, or files of an older run; `snakemake -n` says what is out of "
        "date."
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print how a run compares with the expected results; return 0 where it agrees, else 1."""
    parser = argparse.ArgumentParser(
        prog="python -m ultrbench.stages.expected",
        description="Compare a run with the expected results.",
    )
    parser.add_argument("results", nargs="?", default="results", type=Path)
    parser.add_argument("expected", nargs="?", type=Path, help="default: expected/ in the results")
    options = parser.parse_args(arguments)
    try:
        agrees, text = check(options.results, options.expected or options.results / "expected")
    except (UserError, OSError) as error:
        print(f"ultrbench: {error}", file=sys.stderr)
        return 2
    print(text)
    return 0 if agrees else 1


if __name__ == "__main__":
    leave(main)

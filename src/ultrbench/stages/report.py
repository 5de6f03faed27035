"""Stage `report`: the results of a study as one HTML page."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from ultrbench.files import read_json, write_text
from ultrbench.reporting import page
from ultrbench.reporting.names import display_name
from ultrbench.stages.runtime import Runtime, read_runtimes
from ultrbench.study import list_size

Place = tuple[str, str, str, str, str]


def write_report(
    out: Path,
    template: Path,
    *,
    results: Mapping[Place, tuple[Path, Path]],
    claims: Mapping[str, Any],
    verdicts: Path,
    sections: Sequence[tuple[str, str, Sequence[Path]]],
    figures: Sequence[Path],
    captions: Mapping[str, Path],
    provenance: Path,
    benchmarks: Path,
    headline: str,
    labels: Mapping[str, str],
) -> None:
    """Write the page; same files, same bytes.

    Parameters
    ----------
    out, template : pathlib.Path
        ``.html`` to write, and what it is made from.
    results : mapping of (str, str, str, str, str) to (pathlib.Path, pathlib.Path)
        Results tables as ``.csv`` and ``.md``, by data set, policy, setting, candidates and
        validation; the first of a data set, policy and setting is shown unfolded.
    claims : mapping
        From `ultrbench.reporting.claims.load_claims`.
    verdicts : pathlib.Path
        ``claims.csv``.
    sections : sequence of (str, str, sequence of pathlib.Path)
        Identifier and title of each section of other tables, with its Markdown files.
    figures : sequence of pathlib.Path
        As ``.svg`` or ``.png``.
    captions : mapping of str to pathlib.Path
        The caption of each kind of figure, plain text.
    provenance : pathlib.Path
        ``provenance.json``.
    benchmarks : pathlib.Path
        Folder of Snakemake's benchmark files, by stage.
    headline, labels
        As in `ultrbench.stages.paper.write_tables`.
    """
    about = read_json(provenance)
    config = about["config"]
    numbers = {place: _numbers(table) for place, (table, _) in results.items()}
    frame = pd.read_csv(verdicts, keep_default_na=False, na_values={
        name: [""] for name in ("effect", "low", "high", "p")
    })  # fmt: skip
    synthetic = all(data["entry"]["kind"] == "synthetic" for data in about["datasets"].values())
    judged = frame.drop_duplicates(["claim", "dataset"])["claim_verdict"].value_counts().to_dict()
    first: dict[str, pd.DataFrame] = {}
    for place, table in numbers.items():
        first.setdefault(_place_name(place, config), table.assign(policy=place[1]))
    paragraph, lines = page.answer(first, headline, judged, synthetic)
    text = page.render(
        template,
        title=", ".join(about["datasets"]),
        run=_run(about, config, labels),
        answer=paragraph,
        places=lines,
        headline=headline,
        tables=_results(results, numbers, config, headline),
        figures=[_drawing(figure, captions, len(about["datasets"]) > 1) for figure in figures],
        claims=page.claim_views(claims, frame, labels),
        illustration=synthetic,
        sections=[(id, title, _shown(files)) for id, title, files in sections],
        runtime=_runtime(benchmarks, labels),
        provenance=_provenance(about),
    )
    write_text(out, text)


def _numbers(table: Path) -> pd.DataFrame:
    """The tested numbers of a results table; columns that are not tested have no reference."""
    numbers = pd.read_csv(table)
    numbers = numbers[numbers["reference"].notna()]
    counts = ("queries", "replicates", "wins", "ties", "losses")
    return numbers.astype(dict.fromkeys(counts, int) | {"significant": bool})


def _place_name(place: Place, config: Mapping[str, Any]) -> str:
    dataset, policy, setting, *_ = place
    name = f"{policy} policy, {setting} setting"
    return f"{dataset}, {name}" if len(config["study"]["datasets"]) > 1 else name


def _maker(about: Mapping[str, Any]) -> str:
    version = about["packages"].get("ultrbench", "(not installed)")
    return f"ultrbench {version}, " + (
        f"commit {about['commit']}" if about["commit"] else "not a checkout"
    )


def _run(
    about: Mapping[str, Any], config: Mapping[str, Any], labels: Mapping[str, str]
) -> list[tuple[str, str]]:
    study = config["study"]
    facts = []
    for name, data in about["datasets"].items():
        sizes = [f"{split} {part['queries']:,}" for split, part in data["splits"].items()]
        facts.append(("Data set", f"{name} ({data['entry']['kind']}), queries: {', '.join(sizes)}"))
    sizes = [f"{name} ({list_size(config, name)} documents)" for name in study["policies"]]
    facts.append(("Logging policies", ", ".join(sizes)))
    for name in study["settings"]:
        setting = config["settings"][name]
        if "click_log" in setting:
            how = f"the click log in {setting['click_log']}"
        else:
            how = (
                f"{setting['sessions']:,} simulated sessions a round, {setting['rounds']} "
                f"{'round' if setting['rounds'] == 1 else 'rounds'}, "
                f"click model {setting['click_model']['kind']}"
            )
        facts.append((f"Setting {name}", how))
    facts.append(("Replicates", f"seeds {', '.join(map(str, study['seeds']))}"))
    facts.append(("Compared with", display_name(study["reference"], labels)))
    facts.append(("Made by", _maker(about)))
    return facts


def _results(
    results: Mapping[Place, tuple[Path, Path]],
    numbers: Mapping[Place, pd.DataFrame],
    config: Mapping[str, Any],
    headline: str,
) -> list[dict[str, Any]]:
    shown: dict[str, list] = {}
    for place, (_, markdown) in results.items():
        table = numbers[place]
        [(caption, view)] = page.read_tables(markdown.read_text(encoding="utf-8"))
        name, (candidates, validation) = _place_name(place, config), place[3:]
        stopped = (
            "trained to the end" if validation == "fixed" else f"stopped early by {validation}"
        )
        shown.setdefault(name, []).append(
            {
                "title": f"{name}, {candidates} candidates, {stopped}",
                "view": page.with_tips(view, table),
                "comparison": page.comparison_table(table, headline),
                "caption": caption,
            }
        )
    return [{"title": name, "tables": tables} for name, tables in shown.items()]


def _drawing(figure: Path, captions: Mapping[str, Path], many: bool) -> dict[str, Any]:
    kind, _, setting = figure.stem.partition(".")
    caption = " ".join(captions[kind].read_text(encoding="utf-8").split())
    title = kind.replace("_", " ").capitalize()
    title += f", {setting} setting" if setting else ""
    title += f", {figure.parent.name}" if many else ""
    points = re.search(rb'<svg [^>]*?\bwidth="([\d.]+)pt"', figure.read_bytes()[:2000], re.DOTALL)
    return {
        "wide": points is None or float(points[1]) > 300,  # more than a column of a paper
        "title": title,
        "caption": caption,
        "alt": f"{title}: {caption}",
        "uri": page.data_uri(figure),
    }


def _title(file: Path) -> str:
    """What a file is called in words: its name, after the data set."""
    name = file.stem.replace("_", " ").replace(".", ", ")
    return f"{file.parent.name}: {name}"


def _shown(files: Sequence[Path]) -> list[dict[str, Any]]:
    return [
        {
            "title": _title(file) if part == 1 else caption.partition(":")[0],
            "caption": caption,
            "view": view,
            "folded": len(files) > 3 or part > 1,
        }
        for file in files
        for part, (caption, view) in enumerate(
            page.read_tables(file.read_text(encoding="utf-8")), start=1
        )
    ]


def _runtime(benchmarks: Path, labels: Mapping[str, str]) -> dict[str, Any]:
    runtimes = read_runtimes(benchmarks)
    stages: dict[str, list[Runtime]] = {}
    for row in runtimes:
        stages.setdefault(row.stage, []).append(row)
    rows = [
        [
            stage,
            str(sum(part.jobs for part in parts)),
            f"{sum(part.seconds for part in parts):,.0f}",
            f"{sum(part.cpu_seconds for part in parts):,.0f}",
            f"{max(part.peak_mb for part in parts):,.0f}",
        ]
        for stage, parts in stages.items()
    ]
    names = {
        "propensity": lambda what: f"estimator {what}",
        "ranking": lambda what: f"ranker of {display_name(what, labels)}",
    }
    dearest = sorted(
        (row for row in runtimes if row.stage in names), key=lambda row: -row.cpu_seconds
    )
    return {
        "stages": page.plain_table(
            "stage", ["jobs", "seconds", "CPU seconds", "most memory of a job, MB"], rows
        ),
        "costs": page.plain_table(
            "what",
            ["CPU seconds"],
            [[names[row.stage](row.what), f"{row.cpu_seconds:,.1f}"] for row in dearest],
        ),
    }


def _provenance(about: Mapping[str, Any]) -> dict[str, Any]:
    rows = []
    checksums = []
    for name, data in about["datasets"].items():
        rows += [
            [
                f"{name}, {split}",
                f"{part['queries']:,}",
                f"{part['documents']:,}",
                f"{part['queries_without_relevant']:,}",
                f"{part['values_beyond_float32']:,}",
            ]
            for split, part in data["splits"].items()
        ]
        checksums += sorted(data["sha256"].items())
    config = about["config"]
    seeds = ", ".join(map(str, config["study"]["seeds"]))
    fate = {"zero": "count as 0", "drop": "are left out"}[
        config["evaluation"]["queries_without_relevant"]
    ]
    return {
        "facts": [
            ("Made by", _maker(about)),
            ("Python", f"{about['python']} on {about['machine']}"),
            ("LightGBM", about["packages"]["lightgbm"]),
            ("Snakemake", about["packages"]["snakemake"]),
            ("Seeds", seeds),
            ("Test queries without a relevant candidate", fate),
        ],
        "data": page.plain_table(
            "split",
            ["queries", "documents", "queries without relevant", "values beyond float32"],
            rows,
        ),
        "checksums": checksums,
        "packages": page.plain_table(
            "package", ["version"], [list(item) for item in about["packages"].items()]
        ),
        "config": yaml.safe_dump(config, sort_keys=False, allow_unicode=True),
    }

"""Stage `claims`: the verdicts of a study on what papers claim."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ultrbench.evaluation.compare import compare_methods
from ultrbench.files import read_json, replacing, write_text
from ultrbench.propensity.error import theta_error
from ultrbench.propensity.estimate import is_converged, read_by_position
from ultrbench.reporting.claims import (
    ALONE,
    FEW_QUERIES,
    NOT_RUN,
    THETA_MEASURES,
    Part,
    claims_markdown,
    overall,
    seed_statistics,
    verdict,
)
from ultrbench.reporting.tables import MIN_REPLICATES
from ultrbench.simulation.truth import is_by_position, read_truth
from ultrbench.stages.evaluation import KEYS, TESTS_SEED

NUMBERS = ("effect", "low", "high", "p", "effect_size", "mde", "queries", "replicates")
NO_TRUTH = "no truth: examination is not known, or no function of position alone"

Place = tuple[str, str, str]
Theta = tuple[str, str, str, str]
ThetaFiles = tuple[Path, Path, Path]


def judge_claims(
    claims: Mapping[str, Any],
    parts: Sequence[Part],
    datasets: Mapping[str, Path],
    per_query: Mapping[Place, Path],
    thetas: Mapping[Theta, Sequence[ThetaFiles]],
    reports: Mapping[Theta, Sequence[Path]],
    table: Path,
    page: Path,
    *,
    resamples: int,
    bootstraps: int,
    labels: Mapping[str, str],
) -> None:
    """Judge every claim by the results of a study.

    Parameters
    ----------
    claims : mapping
        From `ultrbench.reporting.claims.load_claims`.
    parts : sequence of Part
        Their comparisons, from `ultrbench.reporting.claims.claim_parts`.
    datasets : mapping of str to pathlib.Path
        Reports of the prepared data sets, by name.
    per_query : mapping of (str, str, str) to pathlib.Path
        From the stage `evaluation`, by data set, policy and setting.
    thetas : mapping of (str, str, str, str) to sequence of (Path, Path, Path)
        Table, report and truth of the propensities of each seed, by data set, policy, setting and
        method.
    reports : mapping of (str, str, str, str) to sequence of pathlib.Path
        Reports of the propensities that the rankers were weighted by, by the same keys; a method
        without propensities has none.
    table : pathlib.Path
        ``.csv`` to write: a row a part, with its attributes and kind, measure, margin, effect,
        low, high, p, effect_size, mde, queries, replicates, verdict, claim_verdict (of the claim on
        the data set), illustration and note.
    page : pathlib.Path
        ``.md`` to write.
    resamples, bootstraps
        As in `ultrbench.evaluation.compare.compare_methods`.
    labels : mapping of str to str
        Labels of methods.
    """
    made = [part for part in parts if not part.absent]
    measured = _metric_effects(claims, made, per_query, reports, resamples, bootstraps)
    measured |= _theta_effects(claims, made, thetas)
    illustrations = {name: _is_illustration(path) for name, path in datasets.items()}
    rows = []
    for part in parts:
        claim = claims[part.claim]
        found = dict.fromkeys(NUMBERS, np.nan) | measured.get(part, {})
        note = f"the study lacks {part.absent}" if part.absent else found.pop("note", "")
        word = NOT_RUN
        if not np.isnan(found["replicates"]):
            word = verdict(
                claim["kind"], found["low"], found["high"], claim["margin"], found["replicates"]
            )
        rows.append(
            part._asdict()
            | {key: claim[key] for key in ("kind", "measure", "margin")}
            | found
            | {"verdict": word, "illustration": illustrations[part.dataset], "note": note}
        )
    columns = [f for f in Part._fields if f != "absent"]
    columns += ["kind", "measure", "margin", *NUMBERS, "verdict", "claim_verdict"]
    columns += ["illustration", "note"]
    frame = pd.DataFrame(rows, columns=columns).astype(
        {"queries": "Int64", "replicates": "Int64", "claim_verdict": object}
    )
    for _, own in frame.groupby(["claim", "dataset"], sort=False):
        word = overall(zip(own["validation"], own["verdict"], strict=True))
        frame.loc[own.index, "claim_verdict"] = word
    with replacing(table) as half:
        frame.to_csv(half, index=False, lineterminator="\n")
    write_text(page, claims_markdown(claims, frame, labels))


def _metric_effects(
    claims: Mapping[str, Any],
    parts: Sequence[Part],
    per_query: Mapping[Place, Path],
    reports: Mapping[Theta, Sequence[Path]],
    resamples: int,
    bootstraps: int,
) -> dict[Part, dict[str, Any]]:
    """Compare rankers; those that stand against the same one in the same place share a test."""
    groups: dict[tuple, list[Part]] = {}
    for part in parts:
        measure = claims[part.claim]["measure"]
        if measure not in THETA_MEASURES:
            groups.setdefault((*part[1:6], part.against, measure), []).append(part)
    frames = {place: pd.read_parquet(path) for place, path in per_query.items()}
    effects = {}
    for (*place, candidates, validation, against, measure), own in groups.items():
        frame = frames[tuple(place)]
        methods = {against, *(part.method for part in own)}
        here = (frame[KEYS] == [candidates, validation]).all(axis=1)
        numbers = compare_methods(
            frame[here & frame["method"].isin(methods)],
            against,
            [measure],
            measure,
            resamples=resamples,
            bootstraps=bootstraps,
            seed=TESTS_SEED,
        ).set_index("method")
        for part in own:
            row = numbers.rename(columns={"difference": "effect"}).loc[part.method]
            unsettled = [
                sentence
                for method in (part.method, part.against)
                for sentence in _unsettled(method, reports.get((*part[1:4], method), ()))
            ]
            effects[part] = {key: row[key] for key in NUMBERS} | {
                "note": _remark(row["replicates"], unsettled)
            }
    return effects


def _theta_effects(
    claims: Mapping[str, Any],
    parts: Sequence[Part],
    thetas: Mapping[Theta, Sequence[ThetaFiles]],
) -> dict[Part, dict[str, Any]]:
    effects: dict[Part, dict[str, Any]] = {}
    for part in parts:
        kind, measure = (claims[part.claim][key] for key in ("kind", "measure"))
        if measure not in THETA_MEASURES:
            continue
        sides = [thetas[(*part[1:4], method)] for method in (part.method, part.against) if method]
        if not all(is_by_position([truth]) for side in sides for *_, truth in side):
            effects[part] = {"note": NO_TRUTH}
            continue
        values = [np.array([_error(files, measure) for files in side]) for side in sides]
        if kind in ALONE:
            effect = values[0]
        else:
            effect = values[0] - values[1] if kind == "larger" else values[1] - values[0]
        unsettled = [
            sentence
            for method, side in zip((part.method, part.against), sides, strict=False)
            for sentence in _unsettled(method, [report for _, report, _ in side])
        ]
        if np.isnan(effect).any():
            unsettled.append("a propensity is missing or not above 0")
        effects[part] = seed_statistics(effect) | {"note": _remark(len(effect), unsettled)}
    return effects


def _error(files: ThetaFiles, measure: str) -> float:
    table, _, truth = files
    relative = read_by_position(table, "relative")
    shown = len(relative)
    # Clicks would weight an error that no claim is about.
    errors = theta_error(relative, np.asarray(read_truth([truth]))[:shown], np.zeros(shown))
    value = errors.signed if measure == "signed_theta_error" else errors.error
    return value if np.isfinite(value) else np.nan


def _unsettled(method: str, reports: Sequence[Path]) -> list[str]:
    count = sum(not is_converged(report) for report in reports)
    return [f"{count} of {len(reports)} estimates of {method} did not converge"] if count else []


def _remark(replicates: int, remarks: list[str]) -> str:
    few = ["fewer than five replicates"] if replicates < MIN_REPLICATES else []
    return "; ".join(few + remarks)


def _is_illustration(report: Path) -> bool:
    about = read_json(report)
    return about["entry"]["kind"] == "synthetic" or about["splits"]["test"]["queries"] < FEW_QUERIES

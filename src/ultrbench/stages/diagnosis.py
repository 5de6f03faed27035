"""What the propensities of a study are worth: errors against the truth, and what logs can tell."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ultrbench.files import read_json, replacing, write_json, write_text
from ultrbench.own_code import own_file
from ultrbench.propensity.error import ThetaError, theta_error
from ultrbench.propensity.estimate import read_by_position
from ultrbench.propensity.identifiability import identifiability
from ultrbench.reporting.figures import iterations_figure, save_figure
from ultrbench.reporting.listing import Listing, listing_latex, listing_markdown
from ultrbench.reporting.names import display_name
from ultrbench.simulation.log import read_rounds
from ultrbench.simulation.truth import is_by_position, read_truth

ERRORS = ThetaError._fields
NO_TRUTH = "no truth to compare with: examination is not a function of position alone"
UNKNOWN = "no truth to compare with: a click log of one's own without truth.csv"
NO_THETA = "gives no propensity by position"
WORKS = ("yes", "assumption", "no")  # from best to worst
STAND_IN = "click rates"


@dataclass(frozen=True)
class EstimateFiles:
    """An estimate of a replicate with the folders of the logging rounds that it was made from."""

    policy: str
    setting: str
    method: str
    seed: int
    table: Path
    report: Path
    rounds: Sequence[Path]


@dataclass(frozen=True)
class LogFiles:
    """A click log of a replicate: whose lists it shows, and the folders of its rounds."""

    policy: str
    setting: str
    track: str
    seed: int
    rounds: Sequence[Path]


def error_frame(estimates: Sequence[EstimateFiles]) -> pd.DataFrame:
    """Return the error of each estimate after each iteration.

    Parameters
    ----------
    estimates : sequence of EstimateFiles
        Of a data set.

    Returns
    -------
    pandas.DataFrame
        Columns policy, setting, method, seed, iteration, error, by_clicks, signed (see
        `ultrbench.propensity.error.ThetaError`), converged, identified, last and note. It is
        identified where the estimate says so and the log shows what the estimator takes (works:
        ``yes`` in `ultrbench.propensity.identifiability.identifiability`). A closed form has one
        row, of iteration 0. Without a truth or a propensity errors are NaN, and the note says why.
    """
    logs: dict[tuple, dict[str, Any]] = {}
    rows: list[dict[str, Any]] = []
    for estimate in estimates:
        key = tuple(estimate.rounds)
        if key not in logs:
            logs[key] = identifiability(read_rounds(estimate.rounds, "train"))
        report = read_json(estimate.report)
        relative = read_by_position(estimate.table, "relative")
        truths = [folder / "truth.csv" for folder in estimate.rounds]
        truth = read_truth(truths)
        about = {
            "policy": estimate.policy,
            "setting": estimate.setting,
            "method": estimate.method,
            "seed": estimate.seed,
            "converged": report["converged"],
            "identified": report["identified"] and _can_work(report, logs[key]),
        }
        note = ""
        if np.isnan(relative).all():
            note = NO_THETA
        elif truth is None:
            note = UNKNOWN
        elif not is_by_position(truths):
            note = NO_TRUTH
        if note or truth is None:
            none = dict.fromkeys(ERRORS, np.nan)
            rows.append(about | none | {"iteration": len(report["trace"]), "note": note})
            continue
        clicks = np.array(logs[key]["clicks_by_position"])
        traced = report["trace"] or [relative]
        for number, step in enumerate(traced, start=1 if report["trace"] else 0):
            shown = len(step)
            error = theta_error(np.asarray(step), truth[:shown], clicks[:shown])
            rows.append(about | error._asdict() | {"iteration": number, "note": ""})
    frame = pd.DataFrame(rows)
    ends = frame.groupby(["policy", "setting", "method", "seed"])["iteration"].transform("max")
    return frame.assign(last=frame["iteration"] == ends)


def _can_work(report: Mapping[str, Any], log: Mapping[str, Any]) -> bool:
    """Whether a log shows all that an estimator takes to tell position from relevance.

    What an estimator of one's own takes only its own word, `identified`, can say.
    """
    if own_file(report["kind"]):
        return True
    name = report["kind"]
    if name == "harvest":
        name += f", {report['pairs']}"
    works = {row["estimator"]: row["works"] for row in log["estimators"]}
    return works.get(name) == "yes"


def error_table(frame: pd.DataFrame) -> pd.DataFrame:
    """Return means over replicates of the last errors, with their standard errors.

    Parameters
    ----------
    frame : pandas.DataFrame
        From `error_frame`.

    Returns
    -------
    pandas.DataFrame
        A row a (policy, setting, method): error, error_se, by_clicks, by_clicks_se, signed,
        signed_se, converged and identified (shares of the replicates), iterations (mean),
        replicates and note. Standard errors of a single replicate are NaN.

    Examples
    --------
    >>> row = {"policy": "weak", "setting": "static", "method": "dla", "iteration": 3,
    ...        "by_clicks": 0.1, "signed": 0.0, "converged": True, "identified": True,
    ...        "last": True, "note": ""}
    >>> frame = pd.DataFrame([row | {"seed": 1, "error": 0.1}, row | {"seed": 2, "error": 0.3}])
    >>> table = error_table(frame)
    >>> table[["error", "error_se"]].round(3).values.tolist()  # sd .2/sqrt(2), over sqrt(2)
    [[0.2, 0.1]]
    """
    rows = []
    last = frame[frame["last"]]
    for key, part in last.groupby(["policy", "setting", "method"], sort=False):
        row: dict[str, Any] = dict(zip(("policy", "setting", "method"), key, strict=True))
        for name in ERRORS:
            row[name] = part[name].mean(skipna=False)
            row[f"{name}_se"] = part[name].std(ddof=1, skipna=False) / np.sqrt(len(part))
        row |= {
            "converged": part["converged"].mean(),
            "identified": part["identified"].mean(),
            "iterations": part["iteration"].mean(),
            "replicates": len(part),
            "note": next(filter(None, part["note"]), ""),
        }
        rows.append(row)
    return pd.DataFrame(rows)


def _with_error(value: float, error: float) -> str:
    if np.isnan(value):
        return "-"
    return f"{value:.3f}" if np.isnan(error) else f"{value:.3f} ± {error:.3f}"


def _share(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:.0%}".replace("%", " %")


def _iterations(value: float) -> str:
    if np.isnan(value):
        return "-"
    return f"{value:.0f}" if value else "closed form"


def write_propensity_errors(
    estimates: Sequence[EstimateFiles],
    stem: Path,
    figure: Sequence[Path],
    *,
    order: Sequence[str],
    labels: Mapping[str, str],
    dataset: str,
) -> None:
    """Write the errors of all propensities of a data set as table and, by iteration, as figure.

    Parameters
    ----------
    estimates : sequence of EstimateFiles
        In the order of the rows.
    stem : pathlib.Path
        Where to write ``.csv``, ``.md`` and ``.tex``, without the ending.
    figure : sequence of pathlib.Path
        ``.pdf``, ``.png`` and ``.svg`` to write.
    order, labels : sequence of str, mapping of str to str
        All methods of the study, and their labels.
    dataset : str
        Its name, for the caption.
    """
    frame = error_frame(estimates)
    write_error_table(error_table(frame), stem, labels=labels, dataset=dataset)
    drawn = iterations_figure(frame[frame["error"].notna()], order, labels)
    save_figure(drawn, *figure)


def write_error_table(
    table: pd.DataFrame, stem: Path, *, labels: Mapping[str, str], dataset: str
) -> None:
    """Write the errors of propensities as ``.csv``, ``.md`` and ``.tex``.

    Parameters
    ----------
    table : pandas.DataFrame
        As `error_table` returns it; converged, identified and iterations are NaN where nobody
        knows them.
    stem, labels, dataset
        As in `write_propensity_errors`.
    """
    with replacing(stem.with_suffix(".csv")) as half:
        names = [display_name(method, labels) for method in table["method"]]
        labelled = table.copy()
        labelled.insert(3, "label", names)
        labelled.to_csv(half, index=False, lineterminator="\n")
    notes = list(dict.fromkeys(filter(None, table["note"])))
    blocks = []
    for (policy, setting), part in table.groupby(["policy", "setting"], sort=False):
        rows = []
        for row in part.to_dict("records"):
            label = display_name(row["method"], labels)
            mark = f" [{notes.index(row['note']) + 1}]" if row["note"] else ""
            rows.append(
                [
                    label + mark,
                    *(_with_error(row[name], row[f"{name}_se"]) for name in ERRORS),
                    _share(row["converged"]),
                    _share(row["identified"]),
                    _iterations(row["iterations"]),
                ]
            )
        blocks.append((f"{policy}, {setting}", rows))
    head = ["Method", "error", "by clicks", "signed", "converged", "identified", "iterations"]
    replicates = int(table["replicates"].max())
    caption = (
        f"Error of the propensities on data set {dataset}: mean over positions k = 2..N of"
        " |log(theta_k / theta_1) - log(true ratio)|, the same weighted by the clicks of each"
        " position, and the mean with its sign, below 0 where theta_k is too small (examination of"
        f" the top is overestimated). Mean over {replicates} replicate"
        f"{'s ± its standard error' if replicates > 1 else ''}. Converged: share of the replicates"
        " whose iteration settled; identified: share whose log shows all that the estimator takes"
        " to tell position from relevance, which makes no biased estimator right; iterations:"
        " mean, trees for a joint estimator."
        + "".join(f" [{n}] {note}." for n, note in enumerate(notes, start=1))
    )
    listing = Listing(head, blocks)
    write_text(stem.with_suffix(".md"), listing_markdown(listing, caption))
    write_text(stem.with_suffix(".tex"), listing_latex(listing, caption, f"tab:{stem.name}"))


def report_log(log: LogFiles) -> dict[str, Any]:
    """Return what a log can tell of propensities, as `identifiability` does.

    The weights of ``effective_clicks`` are inverse true propensities, or, on a log without a
    truth, inverse click rates by position: ``weights`` says which. Click rates of a good policy
    fall faster than propensities, so these understate the effective sample.
    """
    click_log = read_rounds(log.rounds, "train")
    relative = read_truth([folder / "truth.csv" for folder in log.rounds])
    weights = "truth"
    if relative is None:
        weights = STAND_IN
        impressions = (click_log.sessions[:, None] * click_log.shown).sum(axis=0)
        clicks = click_log.clicks.sum(axis=0)
        # One click where there is none: such a position adds nothing to the sums.
        relative = np.maximum(clicks, 1) / np.maximum(impressions, 1)
    return identifiability(click_log, relative) | {"weights": weights}


def _connected(groups: Sequence[Any]) -> str:
    return "yes" if len(groups) == 1 else f"no, {len(groups)} groups"


def _worst(verdicts: Sequence[Mapping[str, str]]) -> tuple[str, str]:
    """The verdict of the replicate where an estimator fares worst, with its reason."""
    row = max(verdicts, key=lambda verdict: WORKS.index(verdict["works"]))
    return row["works"], row["why"]


def write_identifiability(logs: Sequence[LogFiles], report: Path, stem: Path) -> None:
    """Write what every click log of a data set can tell of propensities.

    Parameters
    ----------
    logs : sequence of LogFiles
        Logs by replicate.
    report : pathlib.Path
        ``.json`` to write: a row a log and replicate, see `report_log`.
    stem : pathlib.Path
        Where to write, without the ending: ``.csv``, a row a log and estimator, means over
        replicates and the worst verdict of any; ``.md``, the same to read.
    """
    reports = [
        {
            "policy": log.policy,
            "setting": log.setting,
            "log": log.track,
            "rounds": len(log.rounds),
            "seed": log.seed,
        }
        | report_log(log)
        for log in logs
    ]
    write_json(report, reports)
    keys = ("policy", "setting", "log", "rounds")
    groups: dict[tuple, list[dict[str, Any]]] = {}
    for one in reports:
        groups.setdefault(tuple(one[key] for key in keys), []).append(one)

    numbers, blocks, reasons = [], [], []
    for key, replicates in groups.items():
        overlaps = [
            [share for share in one["score_overlap"] if share is not None] for one in replicates
        ]
        facts = {
            "sessions": np.mean([one["sessions"] for one in replicates]),
            "randomized_sessions": np.mean([one["randomized_sessions"] for one in replicates]),
            "share_moved": np.mean([one["share_moved"] for one in replicates]),
            "groups": max(len(one["groups"]) for one in replicates),
            "clicked_groups": max(len(one["clicked_groups"]) for one in replicates),
            "least_score_overlap": np.mean([min(o) for o in overlaps]) if all(overlaps) else np.nan,
            "effective_share": np.mean(
                [one["effective_share"] or np.nan for one in replicates]
            ),
            "weights": replicates[0]["weights"],
        }  # fmt: skip
        names = [row["estimator"] for row in replicates[0]["estimators"]]
        verdicts = {
            name: _worst([one["estimators"][place] for one in replicates])
            for place, name in enumerate(names)
        }
        about = dict(zip(keys, key, strict=True)) | {"replicates": len(replicates)}
        for name, (works, why) in verdicts.items():
            numbers.append(about | facts | {"estimator": name, "works": works, "why": why})
        title = _title(*key)
        blocks.append(
            [
                title,
                f"{facts['sessions']:,.0f}",
                f"{facts['share_moved']:.0%}".replace("%", " %"),
                _connected(range(facts["groups"])),
                _number(facts["least_score_overlap"]),
                _number(facts["effective_share"])
                + ("*" if facts["weights"] == STAND_IN else ""),
            ]
        )  # fmt: skip
        reasons.append((title, [[name, works, why] for name, (works, why) in verdicts.items()]))
    with replacing(stem.with_suffix(".csv")) as half:
        pd.DataFrame(numbers).to_csv(half, index=False, lineterminator="\n")
    head = ["Log", "sessions", "moved", "connected", "least overlap", "effective share"]
    facts_caption = (
        "What the click logs can tell of propensities, means over replicates. moved: share of"
        " documents that were seen at two positions or more; connected: whether chains of such"
        " documents lead from every position to every other; least overlap: of the policy scores"
        " of two neighbouring positions, 1 where they show the same scores; effective share:"
        " effective sample size of the clicks under inverse propensity weights, by their number"
        " (* weighted by click rates for want of a truth, which understates it)."
    )
    reasons_caption = (
        "Which estimators can work on each log: yes; assumption, where the log cannot show whether"
        " what it takes holds; or no. The worst verdict of any replicate. It is about the log:"
        " propensity_error says which estimates settled, and how far off they are."
    )
    write_text(
        stem.with_suffix(".md"),
        listing_markdown(Listing(head, [("", blocks)]), facts_caption)
        + "\n"
        + listing_markdown(Listing(["Estimator", "works", "why"], reasons), reasons_caption),
    )


def _title(policy: str, setting: str, track: str, rounds: int) -> str:
    more = f", {rounds} rounds" if rounds > 1 else ""
    return f"{policy}, {setting}: {track}{more}"


def _number(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:.2f}"

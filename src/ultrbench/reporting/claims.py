"""Claims of papers as data, and the verdicts of a study on them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ultrbench.configuration_problems import schema_problems
from ultrbench.errors import UserError
from ultrbench.reporting.names import display_name
from ultrbench.reporting.tables import MIN_REPLICATES, MISSING, escape_markdown, interval
from ultrbench.study import BASELINES, WITHOUT_THETA, metric_names
from ultrbench.yaml_files import read_yaml

if TYPE_CHECKING:
    import pandas as pd

HOLDS, FAILS, OPEN = "holds", "does not hold", "inconclusive"
NOT_RUN, DEPENDS = "not run", "depends on validation"
THETA_MEASURES = ("theta_error", "signed_theta_error")
ALONE = ("too_small", "unbiased")
SIGNED = (*ALONE, "larger")
ROUNDING = 1e-9  # replicates that differ by less, relatively, are equal: there is no test then
FEW_QUERIES = 500  # below, differences of .01 nDCG go unseen

RULES = {
    "better": "the interval of the advantage lies above {margin}",
    "at_least_as_good": "the interval of the advantage lies above -{margin}",
    "larger": "the interval of the difference lies above {margin}",
    "too_small": "the interval of the signed error lies below -{margin}",
    "unbiased": "the interval of the signed error lies between -{margin} and {margin}",
}
HEAD = "| where | compared | effect | 95 % interval | p | MDE | d | verdict | remark |"
PREFACE = """\
A claim is made of comparisons, each in one place. A comparison *holds* where its 95 % interval
lies beyond the margin that was fixed before any result (for "at least as good": above minus the
margin), *does not hold* where the interval lies wholly on the other side, and is *inconclusive*
otherwise or with fewer than five replicates. A claim does not hold where one of its comparisons
does not; else it is *not run* where the study lacks one of them, inconclusive where one is, and
holds where all do. It *depends on validation* where rankers stopped by grades and by clicks give
different verdicts.

The advantage is that of the first method over the other: in nDCG or ERR, or by how much its theta
error is smaller. Intervals: crossed bootstrap of queries and replicates for metrics, Student's t
over replicates for errors of theta. p is two-sided, for an effect of 0 and not of the margin:
Fisher randomisation for metrics, conditional on the trained rankers; t for errors of theta. The
minimum detectable effect (MDE) is what test and interval show with 80 % power; d is Cohen's.
Intervals are not corrected for the number of comparisons: a claim that needs all of them needs no
correction to hold, but one of many may fail by chance. An *illustration* comes from generated data,
or from fewer than {few} test queries.
"""


class Part(NamedTuple):
    """One comparison of a claim in one place.

    `candidates` and `validation` are empty for errors of theta, `against` for a method alone;
    `absent` says what the study lacks for it.
    """

    claim: str
    dataset: str
    policy: str
    setting: str
    candidates: str
    validation: str
    method: str
    against: str
    absent: str


def load_claims(path: str | Path, schema: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Read and check a file of claims.

    Parameters
    ----------
    path : path-like
        YAML file, a mapping from names to claims.
    schema : mapping
        The content of ``workflow/schemas/claims.schema.yaml``.

    Returns
    -------
    dict
        Claims by name, in the order of the file.

    Raises
    ------
    UserError
        All mistakes at once, one sentence each.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "claims.yaml"
    >>> _ = path.write_text("a: {kind: better, measure: nDCG@10, methods: [upe], against: [dla]}")
    >>> list(load_claims(path, {}))
    ['a']
    """
    claims = read_yaml(path)
    sentences = [problem.sentence for problem in schema_problems(claims, schema)]
    if not sentences:
        sentences = [s for name, claim in claims.items() for s in _contradictions(name, claim)]
    if sentences:
        raise UserError("\n".join(f"{path}: {sentence}" for sentence in sentences))
    return claims


def _contradictions(name: str, claim: Mapping[str, Any]) -> Iterator[str]:
    """Yield what the schema cannot say: what a key allows by the value of another."""
    kind, measure, against = claim["kind"], claim["measure"], claim.get("against", [])
    if measure not in THETA_MEASURES and not _is_metric(measure):
        yield (
            f"{name}.measure: a metric such as nDCG@10 or ERR@5, theta_error or"
            f" signed_theta_error is wanted, got {measure}."
        )
    elif (kind in SIGNED) != (measure == "signed_theta_error"):
        wanted = "signed_theta_error" if kind in SIGNED else "a metric or theta_error"
        yield f"{name}.measure: {wanted} is wanted for the kind {kind}, got {measure}."
    if kind in ALONE and against:
        yield f"{name}.against: without effect, as {kind} compares with the truth; leave it out."
    if kind not in ALONE and not against:
        yield f"{name}.against is missing: a list is wanted for the kind {kind}."
    for method in claim["methods"]:
        if method in against:
            yield f"{name}.against: {method} is compared with itself; name it once."
    for key in ("candidates", "validation"):
        if measure in THETA_MEASURES and key in claim.get("where", {}):
            yield (
                f"{name}.where.{key}: without effect, as propensities are estimated before any"
                " ranker is trained; leave it out."
            )


def _is_metric(name: str) -> bool:
    from ultrbench.evaluation.metrics import parse_metric

    try:
        return parse_metric(name).name == name
    except UserError:
        return False


def claim_parts(claims: Mapping[str, Any], config: Mapping[str, Any]) -> list[Part]:
    """Return every comparison that the claims make on the data sets of a study.

    Parameters
    ----------
    claims : mapping
        From `load_claims`.
    config : mapping
        The checked configuration.

    Returns
    -------
    list of Part
        By claim, then data set; those that the study cannot make say why.

    Examples
    --------
    >>> claim = {"measure": "theta_error", "methods": ["upe"], "against": ["dla"],
    ...          "where": {"policies": ["weak"], "settings": ["static"]}}
    >>> config = {
    ...     "interface": "result_page",
    ...     "study": {"datasets": ["mine"], "policies": ["weak"], "settings": ["static"]},
    ...     "settings": {"static": {"methods": ["dla"]}},
    ...     "methods": {"dla": {"estimator": "dla"}, "upe": {"estimator": "upe"}},
    ...     "estimators": {"dla": {"kind": "dla"}, "upe": {"kind": "upe"}},
    ...     "evaluation": {"candidates": ["full"], "cutoffs": [10]},
    ...     "training": {"validation": ["grades"]}, "policy_queries": {"mode": "disjoint"}}
    >>> [part.absent for part in claim_parts({"a": claim}, config)]
    ['method upe in setting static']
    """
    parts = []
    for name, claim in claims.items():
        where, of_theta = claim["where"], claim["measure"] in THETA_MEASURES
        kinds = where.get("candidates", config["evaluation"]["candidates"])
        validations = where.get("validation", config["training"]["validation"])
        for dataset, policy, setting, candidates, validation, method, against in product(
            config["study"]["datasets"],
            where["policies"],
            where["settings"],
            [""] if of_theta else kinds,
            [""] if of_theta else validations,
            claim["methods"],
            claim.get("against", [""]),
        ):
            part = Part(name, dataset, policy, setting, candidates, validation, method, against, "")
            absent = "; ".join(_absences(part, claim, config))
            parts.append(part._replace(absent=absent))
    return parts


def _absences(part: Part, claim: Mapping[str, Any], config: Mapping[str, Any]) -> Iterator[str]:
    study, methods = config["study"], config["methods"]
    mode = claim["where"].get("policy_queries")
    if mode not in (None, config["policy_queries"]["mode"]):
        yield f"policy_queries.mode {mode}"
    if part.policy not in study["policies"]:
        yield f"policy {part.policy}"
    if part.setting not in study["settings"]:
        yield f"setting {part.setting}"
    of_theta = claim["measure"] in THETA_MEASURES
    run = list(config["settings"].get(part.setting, {}).get("methods", []))
    run += [] if of_theta else BASELINES
    for method in filter(None, (part.method, part.against)):
        if method not in methods and method not in BASELINES:
            yield f"method {method}, which no configuration defines"
        elif part.setting in study["settings"] and method not in run:
            yield f"method {method} in setting {part.setting}"
        elif of_theta:
            estimator = methods.get(method, {}).get("estimator")
            kind = config["estimators"][estimator]["kind"] if estimator else None
            if kind is None or kind in WITHOUT_THETA:
                yield f"propensities of {method}, which gives none"
    if of_theta:
        return
    if claim["measure"] not in metric_names(config):
        yield f"metric {claim['measure']} among those it tests"
    if part.candidates not in config["evaluation"]["candidates"]:
        yield f"{part.candidates} candidates"
    if part.validation not in config["training"]["validation"]:
        yield f"validation by {part.validation}"


def seed_statistics(values: Sequence[float] | np.ndarray) -> dict[str, float]:
    """Return the mean of a value over replicates with its 95 % t interval.

    Parameters
    ----------
    values : sequence of float
        One a replicate.

    Returns
    -------
    dict of str to float
        effect (the mean), low, high, p (two-sided, of a mean of 0), effect_size (Cohen's d), mde
        (at 80 % power) and replicates. All but the last are NaN where a value is; with one
        replicate only the mean is known. p and effect_size are NaN where replicates are equal.

    Examples
    --------
    >>> {key: round(value, 3) for key, value in seed_statistics([0.1, 0.2, 0.3]).items()}
    ... # doctest: +NORMALIZE_WHITESPACE
    {'effect': 0.2, 'low': -0.048, 'high': 0.448, 'p': 0.074, 'effect_size': 2.0, 'mde': 0.31,
     'replicates': 3}
    """
    from scipy.special import stdtr, stdtrit

    array = np.asarray(values, dtype=np.float64)
    count = len(array)
    mean, spread = array.mean(), array.std(ddof=1) if count > 1 else np.nan
    if spread <= ROUNDING * abs(mean):
        spread = 0.0
    error, freedom = spread / np.sqrt(count), count - 1
    with np.errstate(divide="ignore", invalid="ignore"):
        size = np.where(spread == 0, np.nan, mean / spread)
        statistic = size * np.sqrt(count)
    half = stdtrit(freedom, 0.975) * error
    return {
        "effect": float(mean),
        "low": float(mean - half),
        "high": float(mean + half),
        "p": float(2 * stdtr(freedom, -np.abs(statistic))),
        "effect_size": float(size),
        "mde": float((stdtrit(freedom, 0.975) + stdtrit(freedom, 0.8)) * error),
        "replicates": count,
    }


def verdict(kind: str, low: float, high: float, margin: float, replicates: int) -> str:
    """Return the verdict on one comparison.

    Parameters
    ----------
    kind : str
        Kind of the claim.
    low, high : float
        95 % interval of the effect.
    margin : float
        At least 0.
    replicates : int
        With fewer than five, nothing can be said of other click logs.

    Returns
    -------
    {"holds", "does not hold", "inconclusive"}

    Examples
    --------
    >>> verdict("better", 0.006, 0.01, 0.005, 5), verdict("better", 0.001, 0.01, 0.005, 5)
    ('holds', 'inconclusive')
    >>> verdict("at_least_as_good", -0.004, 0.01, 0.005, 5)
    'holds'
    >>> verdict("unbiased", 0.06, 0.09, 0.05, 5)
    'does not hold'
    """
    if replicates < MIN_REPLICATES or np.isnan(low) or np.isnan(high):
        return OPEN
    if kind == "unbiased":
        holds, fails = -margin < low and high < margin, high < -margin or low > margin
    elif kind == "too_small":
        holds, fails = high < -margin, low > -margin
    else:
        bar = -margin if kind == "at_least_as_good" else margin
        holds, fails = low > bar, high < bar
    return HOLDS if holds else FAILS if fails else OPEN


def overall(verdicts: Iterable[tuple[str, str]]) -> str:
    """Return the verdict on a claim from those on its comparisons.

    Parameters
    ----------
    verdicts : iterable of (str, str)
        Validation and verdict of each comparison.

    Returns
    -------
    {"holds", "does not hold", "inconclusive", "not run", "depends on validation"}

    Examples
    --------
    >>> overall([("grades", "holds"), ("clicks", "holds")])
    'holds'
    >>> overall([("grades", "holds"), ("grades", "inconclusive"), ("clicks", "holds")])
    'depends on validation'
    """
    by_validation: dict[str, set[str]] = {}
    for validation, word in verdicts:
        by_validation.setdefault(validation, set()).add(word)
    found = {
        next(word for word in (FAILS, NOT_RUN, OPEN, HOLDS) if word in words)
        for words in by_validation.values()
    }
    if len(found) == 1:
        return found.pop()
    return NOT_RUN if NOT_RUN in found else DEPENDS


def claims_markdown(
    claims: Mapping[str, Any], table: "pd.DataFrame", labels: Mapping[str, str]
) -> str:
    """Return the page of the verdicts.

    Parameters
    ----------
    claims : mapping
        From `load_claims`.
    table : pandas.DataFrame
        Rows of ``claims.csv``, see `ultrbench.stages.claims.judge_claims`.
    labels : mapping of str to str
        Labels of methods.

    Examples
    --------
    >>> import pandas as pd
    >>> row = dict.fromkeys(Part._fields, "x") | {
    ...     "effect": 0.1, "low": 0.0, "high": 0.2, "p": 0.5, "mde": 0.1, "effect_size": 1.0,
    ...     "verdict": "holds", "claim_verdict": "holds", "illustration": True, "note": ""}
    >>> claim = {"statement": "X wins.", "source": "A paper", "kind": "better",
    ...          "measure": "nDCG@10", "margin": 0.005}
    >>> page = claims_markdown({"x": claim}, pd.DataFrame([row]), {})
    >>> "| [x](#x) | x | holds (illustration) | 1 of 1 hold |" in page
    True
    """
    lines = ["# Claims", "", PREFACE.format(few=FEW_QUERIES)]
    lines += ["| claim | data set | verdict | comparisons |", "|---|---|---|---|"]
    for (name, dataset), rows in table.groupby(["claim", "dataset"], sort=False):
        first = rows.iloc[0]
        word = _worded(first["claim_verdict"], first["illustration"])
        held = f"{(rows['verdict'] == HOLDS).sum()} of {len(rows)} hold"
        if lacking := (rows["verdict"] == NOT_RUN).sum():
            held += f", {lacking} not run"
        if unsettled := rows["note"].str.contains("did not converge").sum():
            held += f"; estimates of {unsettled} did not converge"
        lines.append(f"| [{name}](#{name}) | {escape_markdown(dataset)} | {word} | {held} |")
    for name, rows in table.groupby("claim", sort=False):
        claim = claims[name]
        rule = RULES[claim["kind"]].format(margin=claim["margin"])
        lines += ["", f"## {name}", "", escape_markdown(claim["statement"]), ""]
        lines += [f"Source: {escape_markdown(claim['source'])}.", ""]
        lines += [f"A comparison of {claim['measure'].replace('_', ' ')} holds where {rule}.", ""]
        run = rows[rows["verdict"] != NOT_RUN]
        if len(run):
            lines += [HEAD, "|---|---|---|---|---|---|---|---|---|"]
            lines += [_line(row, labels) for row in run.to_dict("records")] + [""]
        for note, lacking in rows[rows["verdict"] == NOT_RUN].groupby("note", sort=False):
            lines.append(f"- Not run ({len(lacking)} of {len(rows)}): {escape_markdown(note)}.")
    return "\n".join(lines) + "\n"


def _worded(word: str, illustration: bool) -> str:
    return f"{word} (illustration)" if illustration and word != NOT_RUN else word


def _line(row: Mapping[str, Any], labels: Mapping[str, str]) -> str:
    keys = ("dataset", "policy", "setting", "candidates", "validation")
    where = ", ".join(row[key] for key in keys if row[key])
    names = [display_name(row[key], labels) for key in ("method", "against") if row[key]]
    cells = [
        where,
        ", ".join(names),
        _number(row["effect"], "+.4f"),
        interval(row["low"], row["high"]),
        _number(row["p"], ".3g"),
        _number(row["mde"], ".4f"),
        _number(row["effect_size"], "+.2f"),
        _worded(row["verdict"], row["illustration"]),
        row["note"],
    ]
    return f"| {' | '.join(escape_markdown(cell) for cell in cells)} |"


def _number(value: float, form: str) -> str:
    return MISSING if np.isnan(value) else format(value, form)

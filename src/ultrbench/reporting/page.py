"""The report of a study as one HTML page that needs no other file and no network."""

import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ultrbench.reporting.claims import DEPENDS, FAILS, FEW_QUERIES, HOLDS, NOT_RUN, OPEN, RULES
from ultrbench.reporting.names import display_name
from ultrbench.reporting.tables import (
    BETTER,
    COMPARISON_COLUMNS,
    CONTROL,
    FLAG,
    LEARNED,
    MIN_REPLICATES,
    MISSING,
    WORSE,
    Cell,
    ResultsTable,
    comparison_cells,
    interval,
    mark,
)
from ultrbench.study import BASELINES

if TYPE_CHECKING:
    import pandas as pd

TEMPLATE = Path(__file__).parent / "templates" / "report.html"
_KINDS = {".svg": "image/svg+xml", ".png": "image/png"}


def render(path: Path, **context: Any) -> str:
    """Return the page of a template; all text is escaped.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "a.html"
    >>> _ = path.write_text("<p>{{ x }}</p>")
    >>> render(path, x="1 < 2")
    '<p>1 &lt; 2</p>'
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(path.parent),
        autoescape=True,
        trim_blocks=True,
        undefined=StrictUndefined,
    )
    return environment.get_template(path.name).render(better=BETTER, **context)


def data_uri(picture: Path) -> str:
    """Return a picture as an address that holds it.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "a.svg"
    >>> _ = path.write_text("<svg/>")
    >>> data_uri(path)
    'data:image/svg+xml;base64,PHN2Zy8+'
    """
    return f"data:{_KINDS[picture.suffix]};base64,{b64encode(picture.read_bytes()).decode()}"


def read_tables(text: str) -> list[tuple[str, ResultsTable]]:
    r"""Return caption and layout of the tables in a Markdown file of this package.

    Parameters
    ----------
    text : str
        As `ultrbench.reporting.tables.table_markdown` writes it, once or more.

    Examples
    --------
    >>> text = "Tiny.\n\n| A | x |\n|:--|:--|\n| *B* | |\n| a\\_b | **1** |"
    >>> [(caption, table)] = read_tables(text)
    >>> caption, table.corner, table.metrics, table.blocks
    ('Tiny.', 'A', ('x',), (('B', (('a_b', (Cell(text='1', bold=True, mark='', tip=''),)),)),))
    """
    found = []
    caption: list[str] = []
    lines = [*text.splitlines(), ""]
    place = 0
    while place < len(lines):
        line = lines[place]
        if not line.startswith("|"):
            caption += [_plain(line)] if line.strip() else []
            place += 1
            continue
        end = next(n for n in range(place, len(lines)) if not lines[n].startswith("|"))
        head, _, *rows = [_cells(row) for row in lines[place:end]]
        found.append((" ".join(caption), _layout(head, rows)))
        caption, place = [], end
    return found


def _layout(head: Sequence[str], rows: Sequence[Sequence[str]]) -> ResultsTable:
    blocks: list[tuple[str, list]] = []
    for first, *others in rows:
        if re.fullmatch(r"\*.*\*", first) and not any(others):
            blocks.append((_plain(first[1:-1]), []))
            continue
        if not blocks:
            blocks.append(("", []))
        blocks[-1][1].append((_plain(first), tuple(_cell(text) for text in others)))
    corner, *names = map(_plain, head)
    return ResultsTable(
        tuple(names), tuple((name, tuple(rows)) for name, rows in blocks), None, corner
    )


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip())[1:-1]]


def _cell(text: str) -> Cell:
    arrow = text[-1:] if text[-1:] in (BETTER, WORSE) else ""
    text = text.removesuffix(arrow)
    bold = re.fullmatch(r"\*\*(.*)\*\*", text)
    return Cell(_plain(bold[1] if bold else text), bool(bold), arrow)


def _plain(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)


def with_tips(table: ResultsTable, numbers: "pd.DataFrame") -> ResultsTable:
    """Return a results table whose cells tell their n and p.

    Parameters
    ----------
    table : ResultsTable
        From `read_tables`.
    numbers : pandas.DataFrame
        The tested numbers of its csv; cells of other columns tell nothing.
    """
    tips = {(row["label"], row["metric"]): _tip(row) for row in numbers.to_dict("records")}
    blocks = tuple(
        (
            block,
            tuple(
                (
                    label,
                    tuple(
                        replace(cell, tip=tips.get((label.removesuffix(f" {FLAG}"), metric), ""))
                        for metric, cell in zip(table.metrics, cells, strict=True)
                    ),
                )
                for label, cells in rows
            ),
        )
        for block, rows in table.blocks
    )
    return replace(table, blocks=blocks)


def _tip(row: Mapping[str, Any]) -> str:
    lines = [f"{row['label']}, {row['metric']}: {row['mean']:.4f}"]
    lines.append(f"n = {row['queries']:,} queries, {row['replicates']} replicates")
    if row["method"] == row["reference"]:
        return "\n".join([*lines, "the reference"])
    between = interval(row["low"], row["high"])
    lines.append(f"difference {row['difference']:+.4f}, 95 % interval {between}")
    if not isnan(row["p"]):
        corrected = "" if isnan(row["p_holm"]) else f", Holm {row['p_holm']:.3g}"
        lines.append(f"p = {row['p']:.3g}{corrected}")
    return "\n".join(lines)


def comparison_table(numbers: "pd.DataFrame", metric: str) -> ResultsTable:
    """Lay out the comparisons by one metric, the best method first.

    Parameters
    ----------
    numbers : pandas.DataFrame
        The csv of a results table.
    metric : str
        Canonical name.
    """
    own = numbers[numbers["metric"] == metric].sort_values("mean", ascending=False, kind="stable")
    rows = []
    for row in own.to_dict("records"):
        label, *cells = comparison_cells(row, {row["method"]: row["label"]})
        cells.append(f"{row['queries']:,}, {row['replicates']}")
        rows.append((label, tuple(map(Cell, cells))))
    columns = (metric, *COMPARISON_COLUMNS, "n: queries, replicates")
    return ResultsTable(columns, (("", tuple(rows)),), own)


def plain_table(corner: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> ResultsTable:
    """Lay out rows of text as a table of one block, the first text of each its head.

    Examples
    --------
    >>> plain_table("a", ["b"], [["1", "2"]]).blocks[0][1]
    (('1', (Cell(text='2', bold=False, mark='', tip=''),)),)
    """
    body = tuple((label, tuple(map(Cell, cells))) for label, *cells in rows)
    return ResultsTable(tuple(columns), (("", body),), None, corner)


def claim_views(
    claims: Mapping[str, Any], frame: "pd.DataFrame", labels: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Return what the page shows of each claim and data set.

    Parameters
    ----------
    claims : mapping
        From `ultrbench.reporting.claims.load_claims`.
    frame : pandas.DataFrame
        Rows of ``claims.csv``, see `ultrbench.stages.claims.judge_claims`; texts are never NaN.
    labels : mapping of str to str
        Labels of methods.
    """
    views = []
    datasets = frame["dataset"].unique()
    for (name, dataset), rows in frame.groupby(["claim", "dataset"], sort=False):
        claim = claims[name]
        run = rows[rows["verdict"] != NOT_RUN]
        lacking = rows.loc[rows["verdict"] == NOT_RUN, "note"].value_counts(sort=False)
        views.append(
            {
                "name": name,
                "dataset": dataset if len(datasets) > 1 else "",
                "statement": claim["statement"].strip(),
                "source": claim["source"].strip(),
                "measure": claim["measure"].replace("_", " "),
                "rule": RULES[claim["kind"]].format(margin=claim["margin"]),
                "verdict": rows["claim_verdict"].iloc[0],
                "held": f"{(rows['verdict'] == HOLDS).sum()} of {len(rows)} comparisons hold",
                "view": _claim_table(run, labels) if len(run) else None,
                "notes": [
                    f"Not run ({count} of {len(rows)}): {note}." for note, count in lacking.items()
                ],
            }
        )
    return views


def _claim_table(rows: "pd.DataFrame", labels: Mapping[str, str]) -> ResultsTable:
    body = []
    for row in rows.to_dict("records"):
        where = [row[key] for key in ("policy", "setting", "candidates", "validation") if row[key]]
        names = [display_name(row[key], labels) for key in ("method", "against") if row[key]]
        body.append(
            [
                ", ".join(where),
                " against ".join(names),
                row["verdict"],
                MISSING if isnan(row["effect"]) else f"{row['effect']:+.4f}",
                interval(row["low"], row["high"]),
                MISSING if isnan(row["p"]) else f"{row['p']:.3g}",
                row["note"],
            ]
        )
    columns = ["compared", "verdict", "effect", "95 % interval", "p", "remark"]
    return plain_table("where", columns, body)


def answer(
    places: Mapping[str, "pd.DataFrame"],
    metric: str,
    verdicts: Mapping[str, int],
    synthetic: bool,
) -> tuple[str, list[str]]:
    """Say in plain words what came out.

    Parameters
    ----------
    places : mapping of str to pandas.DataFrame
        The csv of the first results table of each place, with its ``policy``, by what the place is
        called.
    metric : str
        The headline metric.
    verdicts : mapping of str to int
        How many claims have which verdict.
    synthetic : bool
        Whether all data are generated.

    Returns
    -------
    paragraph : str
        On the whole study.
    lines : list of str
        On each place.
    """
    rivals, lines = [], []
    for place, numbers in places.items():
        own = numbers[numbers["metric"] == metric].to_dict("records")
        [reference] = [row for row in own if row["method"] == row["reference"]]
        learned = [r for r in own if r["group"] == LEARNED and r is not reference]
        rivals += [(place, row) for row in learned]
        lines.append(_place_line(place, own, reference, learned))
    few = any(row["replicates"] < MIN_REPLICATES for _, row in rivals)
    parts = []
    if rivals:
        arrows = [mark(row) for _, row in rivals]
        against = rivals[0][1]["reference"]
        parts.append(
            f"Does it help to correct clicks for position? Of {len(rivals)} comparisons with "
            f"{display_name(against)} in {metric} on true grades, {arrows.count(BETTER)} came out "
            f"better, {arrows.count(WORSE)} worse and {arrows.count('')} undecided"
            + (" (fewer than five replicates decide nothing)." if few else ".")
        )
        known = [(p, row) for p, row in rivals if not isnan(row["difference"])]
        best = max(known, key=lambda item: item[1]["difference"])
        worst = min(known, key=lambda item: item[1]["difference"])
        ends = f"{_change(*best)}, the least from {_change(*worst)}."
        parts.append(
            f"The best came from {ends}"
            if best[1]["difference"] > 0
            else f"None came out above it: the most came from {ends}"
        )
        policies = dict.fromkeys(row["policy"] for _, row in rivals)
        if len(policies) > 1:
            by_policy = []
            for policy in policies:
                own_arrows = [mark(row) for _, row in rivals if row["policy"] == policy]
                by_policy.append(
                    f"under the {policy} logging policy {own_arrows.count(BETTER)} of "
                    f"{len(own_arrows)} better and {own_arrows.count(WORSE)} worse"
                )
            parts.insert(1, f"By policy: {'; '.join(by_policy)}.")
    if verdicts:
        words = (HOLDS, FAILS, OPEN, DEPENDS, NOT_RUN)
        counts = [f"{word} {count}" for word in words if (count := verdicts.get(word))]
        parts.append(f"Verdicts on claims from papers: {', '.join(counts)}.")
    if not all(row.get("settled", True) for _, row in rivals):
        parts.append(f"{FLAG} learned from propensities that had not settled.")
    fewest = min((row["queries"] for _, row in rivals), default=FEW_QUERIES)
    if fewest < FEW_QUERIES and not synthetic:
        parts.append(f"On {fewest:.0f} test queries, all this is an illustration, no evidence.")
    if synthetic:
        parts.append("The data are synthetic: all this is an illustration, no evidence.")
    return " ".join(parts), lines


def _named(row: Mapping[str, Any]) -> str:
    return row["label"] if row.get("settled", True) else f"{row['label']} {FLAG}"


def _change(place: str, row: Mapping[str, Any]) -> str:
    return (
        f"{_named(row)} ({place}: {row['reference_mean']:.3f} to {row['mean']:.3f}, "
        f"{row['difference']:+.3f})"
    )


def _place_line(place: str, own: list, reference: Mapping, learned: list) -> str:
    parts = [f"{place}: {reference['label']} {reference['mean']:.3f}"]
    for arrow, word in ((BETTER, "better"), (WORSE, "worse"), ("", "undecided")):
        of = sorted((r for r in learned if mark(r) == arrow), key=lambda r: -r["mean"])
        if of:
            parts.append(f"{word}: " + ", ".join(f"{_named(r)} {r['mean']:.3f}" for r in of))
    # An A/A row differs from the reference by chance.
    others = [
        row for row in own if row["group"] not in (LEARNED, CONTROL) or row["method"] in BASELINES
    ]
    if others:
        best = max(others, key=lambda row: row["mean"])
        parts.append(f"best skyline or baseline: {best['label']} {best['mean']:.3f}")
    return "; ".join(parts) + "."

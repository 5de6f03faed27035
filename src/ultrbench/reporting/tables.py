"""The results table of a paper: methods by metrics, with its caption, as csv, md and tex."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from math import isnan
from typing import TYPE_CHECKING

from ultrbench.reporting.names import display_name

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = (
    "method",
    "reference",
    "metric",
    "mean",
    "reference_mean",
    "difference",
    "p",
    "p_holm",
    "p_max_t",
    "p_bh",
    "low",
    "high",
    "mde",
    "wins",
    "ties",
    "losses",
    "effect_size",
    "queries",
    "replicates",
    "resamples",
    "significant",
)
COMPARISON_COLUMNS = (
    "difference",
    "95 % interval",
    "p",
    "p, Holm",
    "p, max-T",
    "MDE",
    "wins/ties/losses",
)
LEARNED = "Learned from clicks"  # the block whose best is bold
CONTROL = "Baselines and control"
LEVEL = 0.05
MIN_REPLICATES = 5
BETTER, WORSE, MISSING, FLAG = "↑", "↓", "n/a", "†"


@dataclass(frozen=True)
class Cell:
    """One number of a table: its text, whether it is the best of its column, its mark, its tip."""

    text: str
    bold: bool = False
    mark: str = ""
    tip: str = ""


@dataclass(frozen=True)
class ResultsTable:
    """Blocks of rows, ready to be written.

    Attributes
    ----------
    metrics : tuple of str
        The columns, canonical metric names such as ``nDCG@10``.
    blocks : tuple
        ``(block name, rows)``, a row being ``(label, cells)`` with one cell a metric.
    numbers : pandas.DataFrame
        Every number behind the table, one row a method and metric, in the table's order.
    corner : str
        What the rows are.
    """

    metrics: tuple[str, ...]
    blocks: tuple[tuple[str, tuple[tuple[str, tuple[Cell, ...]], ...]], ...]
    numbers: "pd.DataFrame"
    corner: str = "Method"


def results_table(
    comparisons: "pd.DataFrame",
    metrics: Sequence[str],
    groups: Mapping[str, Sequence[str]],
    learned: str,
    labels: Mapping[str, str] | None = None,
) -> ResultsTable:
    """Lay out the comparisons of one table.

    Parameters
    ----------
    comparisons : pandas.DataFrame
        One row a method and metric with the columns `COLUMNS`; the reference is among the
        methods, with difference 0 and no p.
    metrics : sequence of str
        The columns of the table, in order.
    groups : mapping of str to sequence of str
        The blocks of the table: the name of each and its methods, in order.
    learned : str
        The block of the methods learned from clicks: the best of it is bold in each column (all
        that share its three decimals). Skylines and baselines stand in other blocks and never
        take the bold.
    labels : mapping of str to str, optional
        Labels of methods, see :func:`ultrbench.reporting.names.display_name`.

    Returns
    -------
    ResultsTable
        A cell is marked better or worse than the reference where :func:`mark` says so.

    Raises
    ------
    ValueError
        If the frame lacks a column, or its methods are not those of `groups`, each once.

    Examples
    --------
    >>> import pandas as pd
    >>> row = dict.fromkeys(COLUMNS, 0) | {"reference": "naive", "metric": "nDCG@10"}
    >>> frame = pd.DataFrame([row | {"method": "naive", "mean": 0.7},
    ...                       row | {"method": "labeled", "mean": 0.8}])
    >>> groups = {"Clicks": ["naive"], "Skylines": ["labeled"]}
    >>> table = results_table(frame, ["nDCG@10"], groups, learned="Clicks")
    >>> print(table_markdown(table, "Tiny."))
    Tiny.
    <BLANKLINE>
    | Method | nDCG@10 |
    |:--|:--|
    | *Clicks* | |
    | Naive clicks | **0.700** |
    | *Skylines* | |
    | Labeled (grades) | 0.800 |
    <BLANKLINE>
    """
    if missing := [column for column in COLUMNS if column not in comparisons]:
        raise ValueError(f"the comparisons lack the columns {', '.join(missing)}")
    methods = [method for members in groups.values() for method in members]
    wanted = [(method, metric) for method in methods for metric in metrics]
    kept = comparisons[comparisons["metric"].isin(list(metrics))]
    found = list(zip(kept["method"], kept["metric"], strict=True))
    if odd := sorted(set(found) ^ set(wanted)):
        raise ValueError(f"rows that are missing from the comparisons or from the blocks: {odd}")
    if len(found) != len(wanted) or len(set(wanted)) != len(wanted):
        raise ValueError("a method stands twice in the comparisons or in the blocks")
    if learned not in groups:
        raise ValueError(f"the block {learned!r} is not among the blocks {list(groups)}")

    numbers = kept.set_index(["method", "metric"]).loc[wanted].reset_index()
    rows = {(row["method"], row["metric"]): row for row in numbers.to_dict("records")}
    best = {}
    for metric in metrics:
        known = [
            m for m in (rows[name, metric]["mean"] for name in groups[learned]) if not isnan(m)
        ]
        best[metric] = number(max(known)) if known else None

    def cell(method: str, metric: str, block: str) -> Cell:
        row = rows[method, metric]
        text = number(row["mean"])
        bold = block == learned and text == best[metric]
        return Cell(text, bold, mark(row))

    blocks = tuple(
        (
            block,
            tuple(
                (
                    display_name(method, labels),
                    tuple(cell(method, metric, block) for metric in metrics),
                )
                for method in members
            ),
        )
        for block, members in groups.items()
        if members
    )
    block_of = {method: block for block, members in groups.items() for method in members}
    numbers = numbers[list(COLUMNS)]
    numbers.insert(0, "group", numbers["method"].map(block_of))
    numbers.insert(2, "label", numbers["method"].map(lambda method: display_name(method, labels)))
    return ResultsTable(tuple(metrics), blocks, numbers)


def add_group(
    table: ResultsTable,
    group: str,
    values: "pd.DataFrame",
    replicates: "pd.Series",
    short: Mapping[str, str],
) -> ResultsTable:
    """Return the table with a further group of columns, which are not tested and have no marks.

    Parameters
    ----------
    table : ResultsTable
        From `results_table`.
    group : str
        Name of the group; a column is named ``{group}: {short name}``.
    values : pandas.DataFrame
        Index method, one column a measure; methods that it lacks are ``n/a``.
    replicates : pandas.Series
        Index method, what the values are means over.
    short : mapping of str to str
        The columns of `values` in order, and their names in the head.

    Examples
    --------
    >>> import pandas as pd
    >>> row = dict.fromkeys(COLUMNS, 0) | {"method": "naive", "metric": "RR"}
    >>> table = results_table(pd.DataFrame([row]), ["RR"], {"Clicks": ["naive"]}, "Clicks")
    >>> spread = pd.DataFrame({"Coverage": [0.5]}, index=["naive"])
    >>> wide = add_group(table, "Shown", spread, pd.Series({"naive": 5}), {"Coverage": "Cov."})
    >>> wide.metrics
    ('RR', 'Shown: Cov.')
    >>> print(table_csv(wide).splitlines()[2])
    Clicks,naive,Naive clicks,,Coverage,0.5,,,,,,,,,,,,,,,5,,
    """
    import pandas as pd

    methods = table.numbers.drop_duplicates("method")[["group", "method", "label"]]
    means = values.reindex(methods["method"])[list(short)]
    label_of = dict(zip(methods["label"], means.to_numpy(), strict=True))
    blocks = tuple(
        (
            block,
            tuple(
                (label, cells + tuple(Cell(number(value)) for value in label_of[label]))
                for label, cells in rows
            ),
        )
        for block, rows in table.blocks
    )
    more = methods.merge(
        means.melt(var_name="metric", value_name="mean", ignore_index=False).reset_index(),
        on="method",
    )
    more["replicates"] = more["method"].map(replicates)
    whole = ("wins", "ties", "losses", "queries", "replicates", "resamples")
    numbers = pd.concat([table.numbers, more[more["mean"].notna()]], ignore_index=True)
    numbers = numbers.astype(dict.fromkeys(whole, "Int64"))
    columns = tuple(f"{group}: {name}" for name in short.values())
    return ResultsTable(table.metrics + columns, blocks, numbers, table.corner)


def flag_rows(table: ResultsTable, labels: Collection[str]) -> ResultsTable:
    """Return the table with `FLAG` at the labels of some rows, and `settled` among its numbers.

    Examples
    --------
    >>> import pandas as pd
    >>> numbers = pd.DataFrame({"label": ["UPE"]})
    >>> table = ResultsTable(("RR",), (("Clicks", (("UPE", (Cell("0.700"),)),)),), numbers)
    >>> flagged = flag_rows(table, ["UPE"])
    >>> flagged.blocks[0][1][0][0], flagged.numbers["settled"].tolist()
    ('UPE †', [False])
    """
    blocks = tuple(
        (
            block,
            tuple((f"{name} {FLAG}" if name in labels else name, cells) for name, cells in rows),
        )
        for block, rows in table.blocks
    )
    settled = ~table.numbers["label"].isin(labels)
    return replace(table, blocks=blocks, numbers=table.numbers.assign(settled=settled))


def number(value: float) -> str:
    """Return a number with three decimals, ``n/a`` for NaN.

    Examples
    --------
    >>> number(0.8115), number(1.0), number(float("nan"))
    ('0.811', '1.000', 'n/a')
    """
    return MISSING if isnan(value) else f"{value:.3f}"


def interval(low: float, high: float) -> str:
    """Return the interval of a difference, ``n/a`` for NaN.

    Examples
    --------
    >>> interval(-0.01, 0.25), interval(float("nan"), float("nan"))
    ('-0.0100 to +0.2500', 'n/a')
    """
    return MISSING if isnan(low) else f"{low:+.4f} to {high:+.4f}"


def mark(row: Mapping) -> str:
    """Return the significance mark of a comparison.

    Parameters
    ----------
    row : mapping
        One row of the comparisons, by column.

    Returns
    -------
    str
        ``↑`` better or ``↓`` worse than the reference, else nothing. A mark needs all that the
        caption promises: the frame's own verdict, p <= .05, a 95 % interval without 0 and at
        least five replicates.

    Examples
    --------
    >>> row = {"significant": True, "p": 0.01, "low": 0.1, "high": 0.3, "replicates": 5}
    >>> mark(row | {"difference": 0.2}), mark(row | {"difference": 0.2, "replicates": 4})
    ('↑', '')
    """
    holds = (
        row["significant"]
        and row["p"] <= LEVEL
        and (row["low"] > 0 or row["high"] < 0)
        and row["replicates"] >= MIN_REPLICATES
    )
    if not holds:
        return ""
    return BETTER if row["difference"] > 0 else WORSE


def comparison_cells(row: Mapping, labels: Mapping[str, str] | None = None) -> list[str]:
    """Return a comparison as text: the label, the mean, and what `COMPARISON_COLUMNS` name.

    Parameters
    ----------
    row : mapping
        One row of the comparisons, by column.
    labels : mapping of str to str, optional
        Labels of methods.

    Examples
    --------
    >>> comparison_cells({"method": "naive", "reference": "naive", "mean": 0.7})[:3]
    ['Naive clicks', '0.7000', 'the reference']
    """
    cells = [display_name(row["method"], labels), f"{row['mean']:.4f}"]
    if row["method"] == row["reference"]:
        return [*cells, "the reference", *[""] * (len(COMPARISON_COLUMNS) - 1)]
    corrected = ["" if isnan(row[name]) else f"{row[name]:.3g}" for name in ("p_holm", "p_max_t")]
    return [
        *cells,
        f"{row['difference']:+.4f}",
        interval(row["low"], row["high"]),
        f"{row['p']:.3g}",
        *corrected,
        MISSING if isnan(row["mde"]) else f"{row['mde']:.4f}",
        f"{row['wins']}/{row['ties']}/{row['losses']}",
    ]


def table_csv(table: ResultsTable) -> str:
    r"""Return every number of the table as csv, one row a method and metric.

    Examples
    --------
    >>> import pandas as pd
    >>> table_csv(ResultsTable((), (), pd.DataFrame({"method": ["dla"], "mean": [0.5]})))
    'method,mean\ndla,0.5\n'
    """
    return table.numbers.to_csv(index=False, lineterminator="\n")


def table_markdown(table: ResultsTable, caption: str) -> str:
    r"""Return the table in Markdown, the caption above it; `caption` is plain text.

    Examples
    --------
    See :func:`results_table`; a bar in a name stays inside its cell:

    >>> escape_markdown("a|b")
    'a\\|b'
    """

    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cells) + " |"

    def text(cell: Cell) -> str:
        return (f"**{cell.text}**" if cell.bold else cell.text) + cell.mark

    lines = [escape_markdown(caption), ""]
    lines.append(line([table.corner, *map(escape_markdown, table.metrics)]))
    lines.append("|:--" * (1 + len(table.metrics)) + "|")
    for block, rows in table.blocks:
        lines.append(f"| *{escape_markdown(block)}* |" + " |" * len(table.metrics))
        lines += [line([escape_markdown(label), *map(text, cells)]) for label, cells in rows]
    return "\n".join(lines) + "\n"


def table_latex(table: ResultsTable, caption: str, label: str) -> str:
    r"""Return the table as a float that needs the package booktabs and nothing else.

    Parameters
    ----------
    table : ResultsTable
        What to write.
    caption : str
        Plain text; it is escaped here.
    label : str
        The key for ``\ref``, put in as it is.

    Returns
    -------
    str
        A ``table*``, so that it spans both columns of a paper; numbers are left-aligned, which
        keeps their points in line beside the marks.

    Examples
    --------
    >>> cells = (Cell("0.700", bold=True, mark="↑"),)
    >>> table = ResultsTable(("nDCG@10",), (("Clicks", (("R&D", cells),)),), None)
    >>> print(table_latex(table, "Tiny.", "tab:tiny"))
    \begin{table*}
    \centering
    \caption{Tiny.}
    \label{tab:tiny}
    \footnotesize
    \setlength{\tabcolsep}{3pt}
    \begin{tabular}{@{}ll@{}}
    \toprule
     & \multicolumn{1}{c}{nDCG} \\
    \cmidrule(l){2-2}
    Method & @10 \\
    \midrule
    \multicolumn{2}{@{}l}{\emph{Clicks}} \\
    R\&D & \textbf{0.700}$^{\uparrow}$ \\
    \bottomrule
    \end{tabular}
    \end{table*}
    <BLANKLINE>
    """

    def text(cell: Cell) -> str:
        shown = escape_latex(cell.text)
        shown = f"\\textbf{{{shown}}}" if cell.bold else shown
        return shown + {"": "", BETTER: r"$^{\uparrow}$", WORSE: r"$^{\downarrow}$"}[cell.mark]

    width = 1 + len(table.metrics)
    split = [_head(metric) for metric in table.metrics]
    names = [name for name, _ in split]
    heads, rules, column = [], [], 2
    for name, members in groupby(names):
        span = len(list(members))
        heads.append(f"\\multicolumn{{{span}}}{{c}}{{{escape_latex(name)}}}")
        last = column + span - 1
        rules.append(f"\\cmidrule({'l' if last == width else 'lr'}){{{column}-{last}}}")
        column = last + 1
    cutoffs = [escape_latex(column) for _, column in split]
    body = []
    for block, rows in table.blocks:
        body.append(r"\midrule")
        body.append(f"\\multicolumn{{{width}}}{{@{{}}l}}{{\\emph{{{escape_latex(block)}}}}} \\\\")
        body += [
            " & ".join([escape_latex(label), *map(text, cells)]) + r" \\" for label, cells in rows
        ]
    lines = [
        r"\begin{table*}",
        r"\centering",
        f"\\caption{{{escape_latex(caption)}}}",
        f"\\label{{{label}}}",
        r"\footnotesize",
        r"\setlength{\tabcolsep}{3pt}",
        f"\\begin{{tabular}}{{@{{}}{'l' * width}@{{}}}}",
        r"\toprule",
        " & ".join(["", *heads]) + r" \\",
        "".join(rules),
        " & ".join([escape_latex(table.corner), *cutoffs]) + r" \\",
        *body,
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table*}",
    ]
    return "\n".join(lines) + "\n"


def _head(name: str) -> tuple[str, str]:
    """Return the two lines of a column's head: ``nDCG``, ``@10``, or ``Group``, ``Name``."""
    group, colon, column = name.partition(": ")
    if colon:
        return group, column
    kind, at, cutoff = name.partition("@")
    return kind, at + cutoff


def escape_markdown(text: str) -> str:
    r"""Return plain text as Markdown that shows it and keeps to one table cell.

    Examples
    --------
    >>> print(escape_markdown("my_method | *"))
    my\_method \| \*
    """
    return "".join(f"\\{c}" if c in "\\`*_|<>[]" else c for c in " ".join(text.split()))


_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    # A bracket or star at the start of a row would be an argument of the line break before it.
    "[": "{[}",
    "*": "{*}",
    "∞": r"$\infty$",
    "≤": r"$\le$",
    "≥": r"$\ge$",
    FLAG: r"$\dagger$",
    BETTER: r"$\uparrow$",
    WORSE: r"$\downarrow$",
} | {c: f"\\{c}" for c in "&%$#_{}"}


def escape_latex(text: str) -> str:
    r"""Return plain text as LaTeX that shows it.

    Examples
    --------
    >>> print(escape_latex("50 % of my_method ≥ 0"))
    50 \% of my\_method $\ge$ 0
    """
    return "".join(_LATEX.get(c, c) for c in " ".join(text.split()))

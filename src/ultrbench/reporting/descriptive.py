"""Tables of numbers that are not tested: no reference, no marks."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ultrbench.files import write_text
from ultrbench.reporting.names import display_name
from ultrbench.reporting.tables import (
    Cell,
    ResultsTable,
    number,
    table_csv,
    table_latex,
    table_markdown,
)

if TYPE_CHECKING:
    import pandas as pd


def descriptive_table(
    shown: "pd.DataFrame",
    groups: Mapping[str, Sequence[str]],
    numbers: "pd.DataFrame",
    *,
    corner: str = "Method",
    labels: Mapping[str, str] | None = None,
) -> ResultsTable:
    """Lay out a frame as a table without marks.

    Parameters
    ----------
    shown : pandas.DataFrame
        The cells, by row (index, each name once) and column; text is kept, whole numbers get
        separators, other numbers three decimals.
    groups : mapping of str to sequence of str
        The blocks of rows, in order. Rows that `shown` lacks are left out.
    numbers : pandas.DataFrame
        What the csv holds.
    corner : str
        What the rows are.
    labels : mapping of str to str, optional
        Labels of methods.

    Returns
    -------
    ResultsTable

    Examples
    --------
    >>> import pandas as pd
    >>> shown = pd.DataFrame({"AP": [0.25], "queries": [1200]}, index=["naive"])
    >>> print(table_markdown(descriptive_table(shown, {"Clicks": ["naive"]}, shown), "Tiny."))
    Tiny.
    <BLANKLINE>
    | Method | AP | queries |
    |:--|:--|:--|
    | *Clicks* | | |
    | Naive clicks | 0.250 | 1,200 |
    <BLANKLINE>
    """
    rows = {name: dict(zip(shown.columns, row, strict=True)) for name, *row in shown.itertuples()}
    blocks = tuple(
        (
            block,
            tuple(
                (
                    display_name(name, labels),
                    tuple(Cell(_text(value)) for value in rows[name].values()),
                )
                for name in members
                if name in rows
            ),
        )
        for block, members in groups.items()
        if any(name in rows for name in members)
    )
    return ResultsTable(tuple(shown.columns), blocks, numbers, corner)


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    return number(value) if isinstance(value, float) else f"{value:,}"


def write_table(stem: Path, table: ResultsTable, caption: str) -> None:
    """Write a table as ``.csv``, ``.md`` and ``.tex``; the label is ``tab:`` and the stem's name.

    Parameters
    ----------
    stem : pathlib.Path
        Where, without the ending.
    table : ResultsTable
        What.
    caption : str
        Plain text.

    Examples
    --------
    >>> import tempfile
    >>> import pandas as pd
    >>> stem = Path(tempfile.mkdtemp()) / "weak.static"
    >>> write_table(stem, ResultsTable((), (), pd.DataFrame({"a": [1]})), "Tiny.")
    >>> sorted(file.name for file in stem.parent.iterdir())
    ['weak.static.csv', 'weak.static.md', 'weak.static.tex']
    """
    for ending, text in (
        (".csv", table_csv(table)),
        (".md", table_markdown(table, caption)),
        (".tex", table_latex(table, caption, f"tab:{stem.name}")),
    ):
        write_text(stem.with_name(stem.name + ending), text)

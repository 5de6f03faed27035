"""Plain tables: columns of text, rows in blocks, as Markdown and as LaTeX with booktabs."""

from collections.abc import Sequence
from dataclasses import dataclass

from ultrbench.reporting.tables import escape_latex, escape_markdown


@dataclass(frozen=True)
class Listing:
    """A table of text.

    Attributes
    ----------
    head : sequence of str
        Titles of the columns.
    blocks : sequence
        ``(title, rows)``, a row being a text a column; a block without a title has ``""``.
    """

    head: Sequence[str]
    blocks: Sequence[tuple[str, Sequence[Sequence[str]]]]


def listing_markdown(listing: Listing, caption: str) -> str:
    """Return a listing in Markdown, the caption above it; all texts are plain.

    Examples
    --------
    >>> print(listing_markdown(Listing(["Method", "error"], [("weak", [["DLA", "0.1"]])]), "Tiny."))
    Tiny.
    <BLANKLINE>
    | Method | error |
    |:--|:--|
    | *weak* | |
    | DLA | 0.1 |
    <BLANKLINE>
    """
    lines = [escape_markdown(caption), ""]
    lines.append("| " + " | ".join(map(escape_markdown, listing.head)) + " |")
    lines.append("|:--" * len(listing.head) + "|")
    for title, rows in listing.blocks:
        if title:
            lines.append(f"| *{escape_markdown(title)}* |" + " |" * (len(listing.head) - 1))
        lines += ["| " + " | ".join(map(escape_markdown, row)) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def listing_latex(listing: Listing, caption: str, label: str) -> str:
    r"""Return a listing as a float over both columns of a page, which needs booktabs alone.

    Examples
    --------
    >>> listing = Listing(["Method", "error"], [("", [["R&D", "0.1"]])])
    >>> print(listing_latex(listing, "Tiny.", "tab:tiny"))
    \begin{table*}
    \centering
    \caption{Tiny.}
    \label{tab:tiny}
    \footnotesize
    \setlength{\tabcolsep}{3pt}
    \begin{tabular}{@{}ll@{}}
    \toprule
    Method & error \\
    \midrule
    R\&D & 0.1 \\
    \bottomrule
    \end{tabular}
    \end{table*}
    <BLANKLINE>
    """
    width = len(listing.head)
    lines = [
        r"\begin{table*}",
        r"\centering",
        f"\\caption{{{escape_latex(caption)}}}",
        f"\\label{{{label}}}",
        r"\footnotesize",
        r"\setlength{\tabcolsep}{3pt}",
        f"\\begin{{tabular}}{{@{{}}{'l' * width}@{{}}}}",
        r"\toprule",
        " & ".join(map(escape_latex, listing.head)) + r" \\",
    ]
    for title, rows in listing.blocks:
        lines.append(r"\midrule")
        if title:
            lines.append(
                f"\\multicolumn{{{width}}}{{@{{}}l}}{{\\emph{{{escape_latex(title)}}}}} \\\\"
            )
        lines += [" & ".join(map(escape_latex, row)) + r" \\" for row in rows]
    lines += [r"\bottomrule", r"\end{tabular}", r"\end{table*}"]
    return "\n".join(lines) + "\n"

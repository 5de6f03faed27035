"""What a results table must say beside its numbers."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ultrbench.evaluation.metrics import parse_metric
from ultrbench.reporting.names import display_name
from ultrbench.reporting.tables import BETTER, LEVEL, MIN_REPLICATES, WORSE, ResultsTable, mark

if TYPE_CHECKING:
    import pandas as pd

_VALIDATION = {
    "grades": "stopped early by the true grades of the validation queries",
    "clicks": "stopped early by the propensity-weighted clicks of the validation queries",
    "fixed": "trained with a fixed number of trees",
}


ONE_LOG = (
    "All replicates learn from the same click log of one's own: what another log would bring is"
    " neither in the intervals nor in the marks."
)


def results_caption(
    table: ResultsTable,
    *,
    dataset: str,
    policy: str,
    setting: str,
    candidates: str,
    list_size: int,
    validation: str,
    seed: int,
    without_relevant: int,
    queries_without_relevant: str,
    tied_share: float,
    control: str | None = None,
    synthetic: bool = False,
    labels: Mapping[str, str] | None = None,
    primary: str = "nDCG@10",
) -> str:
    """Return the caption of a results table as one paragraph of plain text.

    Parameters
    ----------
    table : ResultsTable
        The table; reference, numbers of queries, replicates and resamples, the minimum detectable
        effect and the corrections are read off its numbers.
    dataset, policy, setting : str
        Where the numbers come from, as named in the config.
    candidates : str
        ``truncated`` or ``full``.
    list_size : int
        Documents a query that truncation keeps.
    validation : str
        ``grades``, ``clicks`` or ``fixed``.
    seed : int
        Seed of the sign flips.
    without_relevant : int
        Test queries without a relevant document among the candidates.
    queries_without_relevant : str
        What becomes of them: ``zero`` or ``drop``.
    tied_share : float
        Share of the test queries with tied scores, mean over the methods, 0 to 1.
    control : str, optional
        The A/A row: the reference's method trained on other clicks.
    synthetic : bool
        Whether the data are generated.
    labels : mapping of str to str, optional
        Labels of methods.
    primary : str
        The metric of the test family and of the minimum detectable effect.

    Returns
    -------
    str
        Sentences without line breaks, the same for Markdown and LaTeX.

    Examples
    --------
    >>> import pandas as pd
    >>> from ultrbench.reporting.tables import COLUMNS, results_table
    >>> row = dict.fromkeys(COLUMNS, 0) | {"reference": "naive", "metric": "nDCG@10"}
    >>> frame = pd.DataFrame([row | {"method": "naive"}])
    >>> caption = results_caption(
    ...     results_table(frame, ["nDCG@10"], {"Clicks": ["naive"]}, "Clicks"), dataset="mine",
    ...     policy="weak", setting="static", candidates="full", list_size=10, validation="fixed",
    ...     seed=1, without_relevant=0, queries_without_relevant="drop", tied_share=0.25)
    >>> caption.split(". ")[0]
    'Data set mine, policy weak, setting static, full candidates (all documents of a query)'
    """
    numbers = table.numbers
    reference = display_name(numbers["reference"].iloc[0], labels)
    rivals = numbers[numbers["method"] != numbers["reference"]]
    family = rivals[rivals["metric"] == primary]
    replicates = int(numbers["replicates"].min())
    marks = [mark(row) for row in rivals.to_dict("records")]
    marked = family[[bool(mark(row)) for row in family.to_dict("records")]]

    if candidates == "truncated":
        shown = (
            f"truncated candidates (the first {list_size} documents of the policy's order; "
            "they differ by policy, so tables of two policies do not compare)"
        )
    else:
        shown = "full candidates (all documents of a query)"
    parts = [
        f"Data set {dataset}, policy {policy}, setting {setting}, {shown}.",
        f"Means over {_range(numbers['queries'])} test queries and "
        f"{_range(numbers['replicates'])} {'replicate' if replicates == 1 else 'replicates'}; "
        f"rankers {_VALIDATION[validation]}.",
        f"Headline metric: {primary}, whose assumed user {parse_metric(primary).user}.",
        "Bold: the best method learned from clicks, and all that share its three decimals.",
    ]

    test = (
        f"Fisher randomisation test on per-query differences averaged over replicates, two-sided, "
        f"p ≤ {LEVEL}, B = {int(numbers['resamples'].max()):,} sign flips (all of them "
        f"where at most 16 differences are not zero), seed {seed}"
    )
    needs = (
        "a mark also needs a 95 % crossed bootstrap interval of the difference "
        "(queries by replicates) that excludes 0, and at least five replicates"
    )
    if replicates < MIN_REPLICATES:
        parts.append(
            f"Fewer than five replicates: no marks, no verdicts. Each method was compared with "
            f"{reference} ({test}; {needs})."
        )
    else:
        parts.append(f"{BETTER} better, {WORSE} worse than {reference}: {test}; {needs}.")
        if not any(marks):
            parts.append("No difference earned a mark.")
    parts.append(
        "p is conditional on the trained rankers: it speaks of other queries, not of other "
        "clicks or other training runs."
    )
    if replicates >= MIN_REPLICATES and len(family):
        parts.append(
            f"Marks are not corrected for the number of comparisons: of the {len(marked)} marks at "
            f"{primary}, {int((marked['p_holm'] <= LEVEL).sum())} remain with Holm's correction "
            f"over the methods and {int((marked['p_max_t'] <= LEVEL).sum())} with max-T; the "
            "other columns are descriptive."
        )
    if family["mde"].notna().any():
        parts.append(
            f"Minimum detectable difference in {primary} at 80 % power: "
            f"{_range(family['mde'], '.3f')}."
        )
    if control is not None:
        parts.append(
            f"{display_name(control, labels)} is the A/A row: the same method as {reference}, "
            "trained on independent clicks; its difference is chance, and a mark on it is a "
            "false alarm."
        )
    fate = {"zero": "count as 0", "drop": "are left out"}[queries_without_relevant]
    parts.append(
        f"Test queries without relevant candidates: {without_relevant:,} (they {fate}). "
        f"Scores tie in {100 * tied_share:.1f} % of the test queries (mean over methods); "
        "ties keep the canonical document order."
    )
    if synthetic:
        parts.append("The data are synthetic: the verdicts are illustrations, not evidence.")
    return " ".join(parts)


def _range(values: "pd.Series", form: str = ",") -> str:
    low, high = (format(value, form) for value in (values.min(), values.max()))
    return low if low == high else f"{low} to {high}"

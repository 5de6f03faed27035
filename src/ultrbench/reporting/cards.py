"""Robustness cards: one page that says where an estimator works, at what cost, and what for."""

from collections.abc import Mapping
from dataclasses import dataclass
from textwrap import fill
from typing import TYPE_CHECKING, Any

from ultrbench.reporting.names import display_name
from ultrbench.reporting.tables import escape_latex
from ultrbench.study import JOINT

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

# Fixed before anything was swept, as for the claims.
THETA_MARGIN, SCORE_MARGIN = 0.05, 0.005
CONDITION = ["axis", "panel", "value"]
A4 = 8.27, 11.69  # inches
WIDTH = 125  # characters of the card's small type on a line

_SHUFFLED = "sessions under shuffled lists"
_SEVERAL = "documents that were shown at several positions: shuffled lists or several rounds"
_SCORES = "the scores by which the logging policy ordered the lists; without them it imitates"
NEEDS = {
    "ctr": "nothing but clicks",
    "randomization": _SHUFFLED,
    "dla": "features, and enough clicks to train rankers out of fold",
    "rem": "features, and the sessions without a click",
    "upe": _SCORES,
    "upe_scaled": _SCORES,
    "crossfit": _SCORES,
    "harvest": _SEVERAL,
    "fixed_effects": _SEVERAL,
    "paird": "features; it trains its own ranker",
    "vectorization": "features; it trains its own ranker",
    "lightgbm_position": "features; it trains its own ranker",
    "trust": _SHUFFLED,
    "last_clicks": "clicks of users who read on after a click",
}


@dataclass(frozen=True)
class Card:
    """What a card says of a method.

    Attributes
    ----------
    title, about : str
        Its name, and where the figures come from.
    facts : tuple of (str, str)
        Headings with their text.
    rows : pandas.DataFrame
        A row a condition: ``axis, panel, value, theta_error, theta_sd, signed_error, converged,
        score, gain, gain_sd``, means and standard deviations over seeds; `gain` is the score less
        the reference's.
    metric, reference : str
        What the scores are, and the label of what they are compared with.
    """

    title: str
    about: str
    facts: tuple[tuple[str, str], ...]
    rows: "pd.DataFrame"
    metric: str
    reference: str


def against(frame: "pd.DataFrame", reference: str) -> "pd.DataFrame":
    """Add the column ``gain``: the score less that of the reference with the same seed.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"axis": "eta", "panel": "weak", "value": "1", "seed": 1,
    ...                       "method": ["naive", "dla"], "score": [0.5, 0.75]})
    >>> against(frame, "naive")["gain"].tolist()
    [0.0, 0.25]
    """
    keys = [*CONDITION, "seed"]
    base = frame.loc[frame["method"] == reference, [*keys, "score"]]
    base = base.rename(columns={"score": "base"})
    both = frame.merge(base, on=keys, how="left")
    return both.assign(gain=both["score"] - both["base"]).drop(columns="base")


def make_card(
    frame: "pd.DataFrame",
    method: str,
    estimator: Mapping[str, Any],
    *,
    about: str,
    reference: str,
    trees: int,
    labels: Mapping[str, str] | None = None,
) -> Card:
    """Sum up what sweeps say of a method.

    Parameters
    ----------
    frame : pandas.DataFrame
        Rows of `ultrbench.stages.sweeps.sweep_frame` with ``axis`` and ``gain``.
    method : str
        The method.
    estimator : mapping
        Kind and parameters of its estimator.
    about : str
        What the conditions have in common.
    reference : str
        The method of ``gain``.
    trees : int
        Most trees of a ranker.
    labels : mapping of str to str, optional
        Labels of methods.

    Returns
    -------
    Card
        Its texts follow from the figures by fixed rules: an error of theta counts as small up to
        0.05, a difference in score as one beyond 0.005.
    """
    own = frame[frame["method"] == method]
    groups = own.groupby(CONDITION, sort=False)
    rows = groups[["theta_error", "signed_error", "score", "gain"]].mean()
    rows["theta_sd"], rows["gain_sd"] = groups["theta_error"].std(), groups["gain"].std()
    rows["converged"] = groups["converged"].apply(lambda values: values.astype(float).mean())
    rows = rows.reset_index()
    kind = estimator["kind"]
    facts = (
        ("Needs", f"{_sentence(NEEDS.get(kind, 'not stated'))}"),
        ("Where theta is right", _theta_text(rows)),
        ("Ranking", _ranking_text(rows, display_name(reference, labels))),
        ("Convergence", _convergence_text(own)),
        ("Cost", _cost_text(own, estimator, trees)),
        ("Recommended use", _use_text(rows, kind)),
    )
    parameters = ", ".join(f"{key} {value}" for key, value in estimator.items() if key != "kind")
    return Card(
        display_name(method, labels),
        f"Kind {kind}{', ' + parameters if parameters else ''}. {about}",
        facts,
        rows,
        str(own["metric"].iloc[0]),
        display_name(reference, labels),
    )


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _listed(rows: "pd.DataFrame") -> str:
    """Conditions by axis: "eta 0, 0.5; eps 0.1"."""
    parts = []
    for axis, part in rows.groupby("axis", sort=False):
        several = len(part["panel"].unique()) > 1
        values = [
            f"{v} ({p})" if several else v for v, p in zip(part.value, part.panel, strict=True)
        ]
        parts.append(f"{axis} {', '.join(values)}")
    return "; ".join(parts)


def _row_names(rows: "pd.DataFrame") -> list[str]:
    several = rows.groupby("axis")["panel"].transform("nunique") > 1
    return [
        f"{row.axis}: {row.value}" + (f" ({row.panel})" if more else "")
        for row, more in zip(rows.itertuples(), several, strict=True)
    ]


def _theta_text(rows: "pd.DataFrame") -> str:
    known = rows[rows["theta_error"].notna()]
    if known.empty:
        return "No error of theta: it gives no propensity by position."
    good = known[known["theta_error"] <= THETA_MARGIN]
    text = f"Error at most {THETA_MARGIN} in {len(good)} of {len(known)} conditions"
    if 0 < len(good) < len(known):
        text += f"; beyond at: {_listed(known.drop(good.index))}"
    worst = known.loc[known["theta_error"].idxmax()]
    return f"{text}. Greatest {worst.theta_error:.2f}, at {worst.axis} {worst.value}."


def _ranking_text(rows: "pd.DataFrame", reference: str) -> str:
    better, worse = rows["gain"] > SCORE_MARGIN, rows["gain"] < -SCORE_MARGIN
    text = (
        f"Against {reference}, by more than {SCORE_MARGIN}: better in {better.sum()} of"
        f" {len(rows)} conditions, worse in {worse.sum()}"
    )
    return f"{text}: {_listed(rows[worse])}." if worse.any() else f"{text}."


def _convergence_text(own: "pd.DataFrame") -> str:
    counts = own["iterations"].dropna()
    if counts.empty or counts.max() == 0:
        return "Closed form or a single fit: nothing to converge."
    share = own["converged"].dropna().astype(float).mean()
    return (
        f"Settled in {100 * share:.0f} % of {len(counts)} estimates; {counts.median():.0f} steps"
        f" in the median, {counts.max():.0f} at most."
    )


def _cost_text(own: "pd.DataFrame", estimator: Mapping[str, Any], trees: int) -> str:
    where = "CPU seconds are in runtime.csv beside the tables of the sweeps"
    if estimator["kind"] in JOINT:
        return f"One ranker, which is the one that is used; {where}."
    if "trees" not in estimator:
        return f"No tree is grown: seconds; {where}."
    fits = own["iterations"].median()
    passes = fits * estimator["trees"] * (estimator["folds"] - 1) / trees
    return (
        f"Up to {passes:.1f} x the trees of a plain ranker in the median ({estimator['folds']}"
        f" folds x {estimator['trees']} trees x {fits:.0f} steps, each on the other folds);"
        f" {where}."
    )


def _use_text(rows: "pd.DataFrame", kind: str) -> str:
    known = rows[rows["theta_error"].notna()]
    share = (known["theta_error"] <= THETA_MARGIN).mean() if len(known) else None
    needs = NEEDS.get(kind, "its needs").partition(";")[0]
    if share is None:
        theta = "As a ranker only."
    elif share >= 0.8:
        theta = f"For theta and for ranking, given {needs}."
    elif share >= 0.2:
        theta = "For theta only under the conditions where its error is small."
    else:
        theta = "Not for theta: hardly any condition has a small error."
    worse, better = (rows["gain"] < -SCORE_MARGIN).mean(), (rows["gain"] > SCORE_MARGIN).mean()
    if worse == 0 and better >= 0.5:
        return f"{theta} Its ranker is safe to prefer to the reference."
    if worse > better:
        return f"{theta} For ranking prefer the reference unless a condition above says otherwise."
    return f"{theta} For ranking it helps under some conditions; look yours up below."


def card_latex(card: Card) -> str:
    """Return a card as a LaTeX document of one page.

    Examples
    --------
    >>> import pandas as pd
    >>> row = {"axis": "eta", "panel": "weak", "value": "2", "theta_error": 0.1, "theta_sd": 0.02,
    ...        "signed_error": -0.1, "converged": 1.0, "score": 0.8, "gain": 0.01, "gain_sd": 0.0}
    >>> card = Card("DLA", "", (("Needs", "Clicks."),), pd.DataFrame([row]), "nDCG@10", "Naive")
    >>> print(card_latex(card).splitlines()[-4])
    eta & weak & 2 & 0.100 $\\pm$ 0.020 & $-$0.100 & 100\\,\\% & 0.800 & $+$0.010 \\\\
    """

    def number(value: float, form: str) -> str:
        text = "n/a" if value != value else format(value, form)
        return text.replace("-", "$-$").replace("+", "$+$")

    lines = [
        r"\documentclass[9pt]{extarticle}",
        r"\usepackage[a4paper,margin=15mm]{geometry}",
        r"\usepackage[T1]{fontenc}",
        r"\usepackage{booktabs}",
        r"\pagestyle{empty}",
        r"\setlength{\parindent}{0pt}",
        r"\begin{document}",
        rf"{{\Large {escape_latex(card.title)}}}\par\medskip",
        rf"{escape_latex(card.about)}\par\medskip",
    ]
    lines += [
        rf"\textbf{{{escape_latex(head)}.}} {escape_latex(text)}\par" for head, text in card.facts
    ]
    metric, reference = escape_latex(card.metric), escape_latex(card.reference)
    lines += [
        r"\medskip",
        r"{\scriptsize\setlength{\tabcolsep}{4pt}\renewcommand{\arraystretch}{0.92}",
        r"\begin{tabular}{lllrrrrr}",
        r"\toprule",
        r"varied & under & value & error of theta & signed & converged &"
        rf" {metric} & less {reference} \\",
        r"\midrule",
    ]
    for row in card.rows.itertuples():
        error = number(row.theta_error, ".3f")
        if row.theta_sd == row.theta_sd and error != "n/a":
            error += rf" $\pm$ {row.theta_sd:.3f}"
        settled = "n/a" if row.converged != row.converged else rf"{100 * row.converged:.0f}\,\%"
        cells = [escape_latex(str(part)) for part in (row.axis, row.panel, row.value)]
        cells += [error, number(row.signed_error, "+.3f"), settled]
        cells += [number(row.score, ".3f"), number(row.gain, "+.3f")]
        lines.append(" & ".join(cells) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}}", r"\end{document}", ""])


def card_figure(card: Card) -> "Figure":
    """Draw a card as a page: its texts above, below them error and gain by condition.

    Examples
    --------
    >>> import pandas as pd
    >>> row = {"axis": "eta", "panel": "weak", "value": "2", "theta_error": 0.1, "theta_sd": 0.02,
    ...        "signed_error": -0.1, "converged": 1.0, "score": 0.8, "gain": 0.01, "gain_sd": 0.0}
    >>> card = Card("DLA", "", (("Needs", "Clicks."),), pd.DataFrame([row]), "nDCG@10", "Naive")
    >>> [axes.get_xlabel() for axes in card_figure(card).axes]
    ['error of theta', 'nDCG@10 less Naive']
    """
    from matplotlib.figure import Figure

    from ultrbench.reporting.figures import _house

    rows = card.rows
    with _house():
        figure = Figure(A4)
        figure.text(0.07, 0.965, card.title, fontsize=14, va="top")
        text = fill(card.about, WIDTH)
        text += "\n\n" + "\n".join(fill(f"{head}: {said}", WIDTH) for head, said in card.facts)
        figure.text(0.07, 0.94, text, fontsize=7, va="top", linespacing=1.35)
        top = 0.94 - (text.count("\n") + 2) * 7 * 1.55 / 72 / A4[1] - 0.01
        height = min(top - 0.075, 0.017 * len(rows) + 0.01)
        names = _row_names(rows)
        left = min(0.1 + 0.0068 * max(map(len, names)), 0.5)
        grid = figure.add_gridspec(
            1, 2, left=left, right=0.95, bottom=top - height, top=top, wspace=0.06
        )
        errors, gains = grid.subplots(sharey=True)  # type: ignore[misc]
        places = range(len(rows))
        for axes, value, spread in (
            (errors, "theta_error", "theta_sd"),
            (gains, "gain", "gain_sd"),
        ):
            axes.errorbar(
                rows[value], places, xerr=rows[spread].fillna(0), fmt="o", color="#0072B2",
                elinewidth=0.8,
            )  # fmt: skip
            axes.grid(axis="both")
        if rows["theta_error"].isna().all():
            errors.set_xticks([])
        errors.axvline(THETA_MARGIN, color="0.5", linewidth=0.8, linestyle=(0, (4, 1.5)))
        errors.set_xlim(left=0)
        for edge in (-SCORE_MARGIN, SCORE_MARGIN):
            gains.axvline(edge, color="0.5", linewidth=0.8, linestyle=(0, (4, 1.5)))
        unsettled = rows["converged"] < 1
        errors.plot(
            rows.loc[unsettled, "theta_error"], rows.index[unsettled], "o", color="white",
            markersize=2, zorder=5,
        )  # fmt: skip
        errors.set_yticks(places, names)
        errors.set_ylim(len(rows) - 0.4, -0.6)
        errors.set_xlabel("error of theta")
        gains.set_xlabel(f"{card.metric} less {card.reference}")
        gains.tick_params(axis="y", length=0, labelleft=False)
        note = (
            f"Means and standard deviations over seeds, a row a condition. Dashed: {THETA_MARGIN}"
            f" of theta, {SCORE_MARGIN} of {card.metric}. A white core: not every estimate"
            " converged. No dot: no propensity by position to compare."
        )
        figure.text(
            0.07, top - height - 0.045, fill(note, WIDTH), fontsize=6, va="top", color="0.3"
        )
    return figure

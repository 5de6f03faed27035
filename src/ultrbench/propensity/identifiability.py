"""Which estimators can work on a click log, and why the others cannot: a look before training."""

from typing import Any

import numpy as np

from ultrbench.propensity.crossfit import KNOTS, few_queries
from ultrbench.propensity.estimate import AT_FACE_VALUE, FROM_FEATURES, assuming
from ultrbench.propensity.exposures import (
    exposures,
    follows_clicks,
    links_of,
    position_groups,
)
from ultrbench.propensity.harvest import FEEDBACK
from ultrbench.simulation.log import ClickLog

BINS = 20
MIN_OVERLAP = 0.05
OWN_SCALE = "policy scores must confound clicks at their own scale (`upe_scaled` learns the scale)"


def score_overlap(log: ClickLog) -> np.ndarray:
    """Return how much the policy scores of neighbouring positions overlap.

    sum_b min(p_kb, p_(k+1)b), with p_kb the share of position k's impressions whose score lies in
    bin b: 1 where both positions show the same scores, 0 where the score tells the position. Bins
    are the twentieths of all scores, after the scores of each round are standardised, as rounds
    differ in scale. With overlap, documents that the policy held to be alike were seen at both
    positions; without, a model of relevance must extrapolate from one position to the other
    (positivity; Hager et al. 2025, arXiv 2506.20501).

    Parameters
    ----------
    log : ClickLog
        Displayed lists; those without logged scores are left out.

    Returns
    -------
    numpy.ndarray
        float64 ``[positions - 1]``, 0 to 1; NaN where a position has no scored impression.
    """
    scored = log.shown & np.isfinite(log.scores)
    weights = np.where(scored, log.sessions[:, None], 0).astype(np.float64)
    scores = np.zeros(scored.shape)
    for r in np.unique(log.rounds):
        cells = scored & (log.rounds == r)[:, None]
        if cells.any():
            spread = log.scores[cells].std()
            scores[cells] = (log.scores[cells] - log.scores[cells].mean()) / (spread or 1.0)
    if not weights.any():
        return np.full(log.positions - 1, np.nan)
    edges = np.unique(np.quantile(scores[scored], np.linspace(0, 1, BINS + 1)[1:-1]))
    bins = np.searchsorted(edges, scores, side="right")
    mass = np.array(
        [
            np.bincount(bins[:, k], weights=weights[:, k], minlength=BINS)
            for k in range(log.positions)
        ]
    )
    with np.errstate(invalid="ignore"):
        mass /= mass.sum(axis=1, keepdims=True)
    return np.minimum(mass[1:], mass[:-1]).sum(axis=1)


def effective_clicks(clicks: np.ndarray, relative: np.ndarray) -> float:
    """Return Kish's effective sample size of clicks weighted by 1/theta.

    (sum_k c_k / theta_k)^2 / sum_k c_k / theta_k^2: as many clicks of equal weight would leave as
    much noise (Kish 1965).

    Parameters
    ----------
    clicks, relative : numpy.ndarray
        float64 ``[positions]``, clicks and theta_k / theta_1.

    Examples
    --------
    >>> effective_clicks(np.array([10.0, 10.0]), np.array([1.0, 1.0]))
    20.0
    """
    clicks, relative = clicks[clicks > 0], relative[clicks > 0]
    weighted = clicks / relative
    total = float(weighted.sum())
    return total**2 / float((weighted / relative).sum()) if total else 0.0


def _verdicts(log: ClickLog, facts: dict[str, Any]) -> list[dict[str, str]]:
    no_click = [k for k, c in enumerate(facts["clicks_by_position"], start=1) if c == 0]
    overlap = facts["score_overlap"]
    apart = [
        k for k, share in enumerate(overlap, start=1) if share is not None and share < MIN_OVERLAP
    ]
    verdicts: list[dict[str, str]] = []

    def add(estimator: str, works: str, why: str) -> None:
        if no_click:
            works, why = "no", f"no click at position {no_click[0]}"
        verdicts.append({"estimator": estimator, "works": works, "why": why})

    def documents_that_moved(estimator: str, name: str, clicked: str) -> None:
        groups, clicked_groups = facts[name], facts[clicked]
        if facts["documents_moved"] == 0:
            add(estimator, "no", "no document was seen at two positions")
        elif len(groups) > 1:
            add(estimator, "no", f"no chain of shared documents connects the positions {groups}")
        elif len(clicked_groups) > 1:
            add(
                estimator,
                "no",
                f"shared documents have too few clicks to connect the positions {clicked_groups}",
            )
        elif estimator != "fixed_effects" and follows_clicks(log):
            add(estimator, "assumption", FEEDBACK)
        else:
            add(estimator, "yes", "a document is compared with itself at another position")

    def by_assumption(estimator: str, assumption: str) -> None:
        if assuming(log, assumption)["identified"]:
            add(estimator, "yes", "all lists are in random order")
        else:
            add(estimator, "assumption", assumption)

    by_assumption("ctr", AT_FACE_VALUE)
    shuffled = log.select(log.randomized)
    # Position 1 is compared with each other one on the lists that reach it.
    compared = np.minimum(
        shuffled.clicks.sum(axis=0), (shuffled.clicks[:, :1] * shuffled.shown).sum(axis=0)
    )
    if not facts["randomized_sessions"]:
        add("randomization", "no", "no session in random order")
    elif (compared == 0).any():
        position = int(np.argmin(compared)) + 1
        why = f"no click at position {position}, or above it at position 1, in random order"
        add("randomization", "no", why)
    else:
        add("randomization", "yes", f"{facts['randomized_sessions']} sessions in random order")
    documents_that_moved("harvest, adjacent", "groups_adjacent", "clicked_groups_adjacent")
    documents_that_moved("harvest, all", "groups", "clicked_groups")
    documents_that_moved("fixed_effects", "groups", "clicked_groups")
    by_assumption("dla", FROM_FEATURES)
    if facts["sessions_without_click"]:
        by_assumption("rem", FROM_FEATURES)
    else:
        add("rem", "no", "sessions without a click were not logged")
    policies = len(np.unique(np.where(log.randomized, -1, log.rounds.astype(np.int64))))
    least = log.positions + 2 * (KNOTS - 1) * policies
    for estimator in ("upe", "upe_scaled", "crossfit"):
        if estimator == "crossfit" and facts["clicked_queries"] < least:
            add(estimator, "assumption", few_queries(facts["clicked_queries"], least - 1))
        elif facts["lists_with_scores"] < facts["lists"]:
            missing = facts["lists"] - facts["lists_with_scores"]
            add(
                estimator,
                "assumption",
                f"{missing} lists without policy scores: the order must follow from the features",
            )
        elif apart:
            add(
                estimator,
                "assumption",
                f"policy scores of positions {apart[0]} and {apart[0] + 1} hardly overlap: the"
                " effect of the score is extrapolated",
            )
        elif estimator == "upe":
            add(estimator, "assumption", OWN_SCALE)
        else:
            add(estimator, "yes", "policy scores are logged and overlap between positions")
    return verdicts


def identifiability(log: ClickLog, relative: np.ndarray | None = None) -> dict[str, Any]:
    """Report what a click log can tell of propensities.

    Parameters
    ----------
    log : ClickLog
        Displayed lists with clicks, simulated or one's own.
    relative : numpy.ndarray, optional
        float64 ``[positions]``, theta_k / theta_1 from any estimator, for the effective number
        of clicks.

    Returns
    -------
    dict
        Ready for JSON, None where unknown:

        - ``queries``, ``clicked_queries``, ``lists``, ``documents``, ``sessions``,
          ``sessions_without_click``;
        - ``lists_with_scores``, ``randomized_lists``, ``randomized_sessions``;
        - ``clicks_by_position``, ``impressions_by_position``;
        - ``documents_moved`` and ``share_moved``: seen at two positions or more;
        - ``groups``, ``groups_adjacent``: positions that shared documents connect, with all pairs
          of positions and with adjacent pairs; one group is a connected graph;
        - ``clicked_groups``, ``clicked_groups_adjacent``: the same by clicks on these documents,
          which an estimate that is neither 0 nor infinite needs;
        - ``score_overlap``: by pair of adjacent positions, see `score_overlap`;
        - ``effective_clicks``, ``effective_share``: see `effective_clicks`, and that by clicks;
        - ``estimators``: rows of ``estimator``, ``works`` (``yes``, ``assumption`` where the log
          cannot show what it takes, or ``no``) and ``why``.
    """
    table = exposures(log)
    n, c = table.impressions[table.moved], table.clicks[table.moved]
    links, clicked = links_of(n, n), links_of(c, n)
    position = np.arange(log.positions)
    adjacent = np.abs(position[:, None] - position) <= 1
    scored = (np.isfinite(log.scores) | ~log.shown).all(axis=1)
    clicks = log.clicks.sum(axis=0)
    facts: dict[str, Any] = {
        "queries": len(np.unique(log.queries)),
        "clicked_queries": table.clicked,
        "lists": len(log.queries),
        "documents": len(table.queries),
        "sessions": int(log.sessions.sum()),
        "sessions_without_click": int(log.count[log.mask == 0].sum()),
        "lists_with_scores": int(scored.sum()),
        "randomized_lists": int(log.randomized.sum()),
        "randomized_sessions": int(log.sessions[log.randomized].sum()),
        "impressions_by_position": table.impressions.sum(axis=0).astype(int).tolist(),
        "clicks_by_position": clicks.tolist(),
        "documents_moved": int(table.moved.sum()),
        "share_moved": float(table.moved.mean()),
        "groups": position_groups(links),
        "groups_adjacent": position_groups(links & adjacent),
        "clicked_groups": position_groups(clicked, strong=True),
        "clicked_groups_adjacent": position_groups(clicked & adjacent, strong=True),
        "score_overlap": [None if np.isnan(s) else float(s) for s in score_overlap(log)],
        "effective_clicks": None,
        "effective_share": None,
    }
    if relative is not None and clicks.any():
        facts["effective_clicks"] = effective_clicks(clicks, relative[: log.positions])
        facts["effective_share"] = facts["effective_clicks"] / int(clicks.sum())
    return facts | {"estimators": _verdicts(log, facts)}

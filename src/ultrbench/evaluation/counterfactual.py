"""Counterfactual evaluation: the worth of a ranker from a click log of another one.

A click at rank k of the log is worth 1 / theta_k clicks of an examined document. Weighted so, the
clicks of a document count its sessions times gamma(y), whatever its logged rank, and

    (1 / |D|) sum over clicks of lambda(rank of the document under the new ranker) / theta_k

has the expectation sum_i gamma(y_i) lambda(rank_i), for D = *all* sessions, those without a click
included, and theta the absolute examination probability.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ultrbench.errors import UserError
from ultrbench.evaluation.metrics import parse_metric
from ultrbench.simulation.log import ClickLog

if TYPE_CHECKING:
    import pandas as pd

SMALL_SAMPLE = 500  # effective clicks below which the weights leave too little to trust
CHUNK = 1 << 22
MANY = 5000  # groups of equal sessions from which on their resampled sums are as good as normal


class CounterfactualWarning(UserWarning):
    """A log that can be evaluated, but not trusted without a second look."""


def rank_weights(name: str, ranks: int) -> np.ndarray:
    """Return lambda(1), ..., lambda(ranks) of an additive metric.

    Parameters
    ----------
    name : str
        ``DCG`` (1 / log2(j + 1)), ``RBP(p=.8)`` ((1 - p) p^(j - 1)) or ``SRR`` (1/j, the sum of
        reciprocal ranks), each with ``@k`` or without.
    ranks : int
        Length of the longest list.

    Returns
    -------
    numpy.ndarray
        float64 ``[ranks]``.

    Raises
    ------
    UserError
        For a metric that is not a sum over documents, such as RR, ERR or nDCG.

    Examples
    --------
    >>> rank_weights("SRR@2", 3).tolist()
    [1.0, 0.5, 0.0]
    """
    j = np.arange(1.0, ranks + 1)
    kind, _, cutoff = name.partition("@")
    if kind == "SRR" and (not cutoff or cutoff.isdigit()):
        depth, weights = int(cutoff or ranks), 1 / j
    else:
        metric = parse_metric(name)
        depth = metric.cutoff or ranks
        if metric.kind == "DCG":
            weights = 1 / np.log2(j + 1)
        elif metric.kind == "RBP":
            p = dict(metric.parameters)["p"]
            weights = (1 - p) * p ** (j - 1)
        else:
            raise UserError(
                f"{metric.name} is not a sum over documents, so clicks cannot estimate it one by "
                "one; use DCG, RBP or SRR (the sum of reciprocal ranks, which is not MRR)."
            )
    return np.where(j <= depth, weights, 0.0)


def new_ranks(log: ClickLog, scores: np.ndarray) -> np.ndarray:
    """Return the rank of each displayed document under other scores, among those of its list.

    Parameters
    ----------
    log : ClickLog
        Displayed lists.
    scores : numpy.ndarray
        float ``[documents]``, the new ranker's score of each document row of the split; ties by
        document row.

    Returns
    -------
    numpy.ndarray
        int64 ``[lists, positions]``, from 1; 0 where a list is padded.

    Examples
    --------
    >>> from ultrbench.simulation.log import ClickLog
    >>> one = np.zeros(1, np.uint8)
    >>> log = ClickLog(np.array([[2, 0, 1, -1]]), np.array([0]), np.zeros((1, 4)), one, one > 0,
    ...                one, np.array([0]), np.array([1], np.uint64), np.array([7]))
    >>> new_ranks(log, np.array([0.1, 0.3, 0.2])).tolist()  # rows 1, 2, 0 is the new order
    [[2, 3, 1, 0]]
    """
    shown = log.shown
    displayed = np.where(shown, np.asarray(scores, np.float64)[log.documents], -np.inf)
    if np.isnan(displayed).any():
        row = int(np.flatnonzero(np.isnan(displayed).any(axis=1))[0])
        raise UserError(f"A document of query {log.queries[row]} has the score NaN.")
    order = np.lexsort((log.documents, -displayed, ~shown), axis=1)
    ranks = np.empty(order.shape, np.int64)
    np.put_along_axis(ranks, order, np.arange(1, log.positions + 1)[None], axis=1)
    return np.where(shown, ranks, 0)


@dataclass(frozen=True)
class Estimate:
    """An estimated worth of each ranker.

    Attributes
    ----------
    value, low, high : numpy.ndarray
        float64 ``[rankers]``, the estimate and its percentile interval.
    up_to_scale : bool
        True for the self-normalised form.
    sessions, clicks : int
        What the log holds.
    effective_sample_size : float
        (sum of click weights)^2 / sum of their squares: so many clicks of one weight are worth
        as much (Kish 1965).
    warnings : tuple of str
        What was warned of.
    """

    value: np.ndarray
    low: np.ndarray
    high: np.ndarray
    up_to_scale: bool
    sessions: int
    clicks: int
    effective_sample_size: float
    warnings: tuple[str, ...]


def estimate_from_clicks(
    log: ClickLog,
    ranks: np.ndarray,
    theta: np.ndarray,
    weights: str = "DCG",
    *,
    self_normalised: bool = False,
    clip: float = 0.0,
    resample: str = "sessions",
    bootstraps: int = 1000,
    level: float = 0.95,
    rng: np.random.Generator,
) -> Estimate:
    """Estimate the additive worth of rankers from clicks by inverse propensity scores.

    Parameters
    ----------
    log : ClickLog
        Displayed lists with all their sessions, also those without a click.
    ranks : numpy.ndarray
        int ``[rankers, lists, positions]``, the rank under each new ranker of the document that
        the log showed there, from 1 (`new_ranks`).
    theta : numpy.ndarray
        float ``[positions]``, absolute examination probability of the logged ranks.
    weights : str
        Name of lambda, see `rank_weights`.
    self_normalised : bool
        Divide by the sum of 1 / theta over clicks instead of |D|: the mean lambda of an examined
        click. The scale of theta cancels, and so does the number of relevant documents, so it
        orders rankers and is no DCG.
    clip : float
        Propensities below it are raised to it: less variance for some bias.
    resample : {"sessions", "queries"}
        What the interval speaks of: other sessions of these queries, or other queries with other
        sessions.
    bootstraps : int
        Resamples.
    level : float
        Nominal coverage.
    rng : numpy.random.Generator
        Source of the resamples; all rankers share them.

    Returns
    -------
    Estimate
        On the scale of clicks; `graded_dcg` turns it into DCG with gain 2^y - 1.

    Raises
    ------
    UserError
        Where theta is not positive at a displayed position, a rank is missing, the log has no
        positions or lacks sessions or impressions without a click.

    Warns
    -----
    CounterfactualWarning
        Where every query was shown in one order only, or the effective sample size is below 500,
        or queries with a single session leave the session interval too narrow.

    Notes
    -----
    Sessions within query are resampled by Poisson counts around the query's mean, with
    n / (n - 1) for its n sessions: to first order the multinomial bootstrap, without the queries
    that it would lose. Resampled queries bring their sessions along, whose noise is then in the
    spread between queries; drawing them again would count it twice (Davison and Hinkley 1997,
    section 3.8). Above 5,000 groups of equal sessions the resampled sums are drawn from the normal
    law of the same mean and covariance, to which they have converged: a hundredth of the time.

    References
    ----------
    Joachims et al. 2017; Agarwal et al. 2019 for additive metrics; Swaminathan and Joachims 2015
    for self-normalisation.
    """
    if resample not in ("sessions", "queries"):
        raise UserError(f"resample is 'sessions' or 'queries', not {resample!r}.")
    propensity = _checked_theta(log, theta)
    ranks = np.asarray(ranks)
    if ranks.shape[1:] != log.documents.shape or not (ranks[:, log.shown] >= 1).all():
        raise UserError("Every displayed document needs a rank, from 1, under every ranker.")
    _refuse_incomplete(log)

    weight = log.shown / np.maximum(propensity, clip)
    worth = np.append(0.0, rank_weights(weights, int(ranks.max(initial=1))))[ranks] * weight
    # A session's value is a sum over its clicked positions; the last column is sum of 1 / theta.
    terms = np.moveaxis(np.concatenate([worth, weight[None]]), 0, 2)
    values = np.zeros((len(log.mask), len(terms[0, 0])))
    for k in range(log.positions):
        clicked = np.flatnonzero(log.mask >> np.uint64(k) & np.uint64(1))
        values[clicked] += terms[log.click_list[clicked], k]

    queries, query = np.unique(log.queries[log.click_list], return_inverse=True)
    sums = np.zeros((len(queries), values.shape[1]))
    np.add.at(sums, query, values * log.count[:, None])
    sizes = np.bincount(query, weights=log.count)
    total = sums.sum(axis=0)
    normaliser = total[-1] if self_normalised else sizes.sum()
    if not normaliser > 0:
        raise UserError("The log has no clicks: nothing can be estimated from it.")

    if resample == "queries":
        draws = _resample_queries(sums, sizes, bootstraps, rng)
    else:
        spread = (values - sums[query] / sizes[query, None]) * np.sqrt(
            sizes / np.maximum(sizes - 1, 1)
        )[query, None]
        draws = _resample_sessions(spread, log.count, bootstraps, rng) + total
        draws = np.column_stack([draws, np.full(bootstraps, sizes.sum())])
    below = draws[:, -2] if self_normalised else draws[:, -1]
    estimates = draws[:, :-2] / np.maximum(below, np.finfo(float).tiny)[:, None]
    low, high = np.quantile(estimates, [(1 - level) / 2, (1 + level) / 2], axis=0)

    clicks = int(log.clicks.sum())
    effective = float((log.clicks * weight).sum() ** 2 / (log.clicks * weight**2).sum())
    found = _doubts(log, effective, sizes if resample == "sessions" else None)
    for message in found:
        warnings.warn(message, CounterfactualWarning, stacklevel=2)
    return Estimate(
        total[:-1] / normaliser,
        low,
        high,
        self_normalised,
        int(sizes.sum()),
        clicks,
        effective,
        tuple(found),
    )


def _checked_theta(log: ClickLog, theta: np.ndarray) -> np.ndarray:
    propensity = np.asarray(theta, np.float64)
    if len(propensity) < log.positions:
        raise UserError(f"theta has {len(propensity)} positions, the log {log.positions}.")
    propensity = propensity[: log.positions]
    if not (propensity > 0).all():
        position = int(np.flatnonzero(~(propensity > 0))[0]) + 1
        raise UserError(
            f"theta is {propensity[position - 1]:g} at position {position}: documents that are "
            "never examined there cannot be weighted; drop the position or estimate theta again."
        )
    return propensity


def _refuse_incomplete(log: ClickLog) -> None:
    if log.positions < 2:
        raise UserError(
            "The log has no positions: each of its lists holds one document. Give the displayed "
            "lists, with the position of each document."
        )
    impressions = log.sessions[:, None] * log.shown
    clicks = log.clicks
    if clicks.sum() == impressions.sum():
        raise UserError(
            "The log lacks the impressions without a click: every document in it was clicked "
            "each time. Give the whole displayed lists."
        )
    rate = clicks.sum(axis=0) / np.maximum(impressions.sum(axis=0), 1)
    expected_empty = log.sessions.sum() * np.prod(1 - rate)
    if expected_empty >= 10 and not log.count[log.mask == 0].sum():
        raise UserError(
            "The log has no session without a click, though its click rates let expect about "
            f"{expected_empty:.0f}: were they dropped? The estimate divides by all sessions."
        )


def _doubts(log: ClickLog, effective: float, sizes: np.ndarray | None) -> list[str]:
    found = []
    orders = np.unique(np.column_stack([log.queries, log.documents]), axis=0)
    if len(orders) == len(np.unique(log.queries)):
        found.append(
            "The log is deterministic: each query was shown in one order. The estimate rests on "
            "theta alone, which this log cannot check."
        )
    if effective < SMALL_SAMPLE:
        found.append(
            f"The effective sample size is {effective:.0f} clicks, below {SMALL_SAMPLE}: a few "
            "heavy clicks decide; clip, or use more sessions."
        )
    if sizes is not None and (sizes < 2).any():
        found.append(
            f"{int((sizes < 2).sum())} of {len(sizes)} queries have a single session, whose noise "
            "is not in the interval; resample queries instead."
        )
    return found


def _resample_sessions(
    spread: np.ndarray, count: np.ndarray, bootstraps: int, rng: np.random.Generator
) -> np.ndarray:
    """Return float64 ``[bootstraps, columns]``, deviations of the sums over all sessions."""
    if len(count) > MANY:
        variances, axes = np.linalg.eigh((spread * count[:, None]).T @ spread)
        normal = rng.standard_normal((bootstraps, len(variances)))
        return normal * np.sqrt(np.maximum(variances, 0)) @ axes.T
    draws = np.empty((bootstraps, spread.shape[1]))
    step = max(1, CHUNK // len(count))
    for start in range(0, bootstraps, step):
        rows = slice(start, min(start + step, bootstraps))
        drawn = rng.poisson(count, size=(rows.stop - start, len(count)))
        draws[rows] = (drawn - count).astype(np.float64) @ spread
    return draws


def _resample_queries(
    sums: np.ndarray, sizes: np.ndarray, bootstraps: int, rng: np.random.Generator
) -> np.ndarray:
    """Return float64 ``[bootstraps, columns + 1]``, sums over queries; the last is sessions."""
    columns = np.column_stack([sums, sizes])
    draws = np.empty((bootstraps, columns.shape[1]))
    for row in range(bootstraps):
        drawn = np.bincount(rng.integers(len(sizes), size=len(sizes)), minlength=len(sizes))
        draws[row] = drawn @ columns
    return draws


def true_worth(
    log: ClickLog,
    ranks: np.ndarray,
    gains: np.ndarray,
    weights: str = "DCG",
    *,
    self_normalised: bool = False,
) -> np.ndarray:
    """Return what `estimate_from_clicks` estimates, sum_i gains_i lambda(rank_i) a session.

    Parameters
    ----------
    log : ClickLog
        Displayed lists; a query counts as often as it was shown.
    ranks : numpy.ndarray
        int ``[rankers, lists, positions]``.
    gains : numpy.ndarray
        float ``[lists, positions]``, gamma(y) = P(click | examined, y) of each displayed document,
        or 2^y - 1 for what `graded_dcg` estimates.
    weights, self_normalised
        As there.

    Returns
    -------
    numpy.ndarray
        float64 ``[rankers]``.

    Examples
    --------
    >>> from ultrbench.simulation.log import ClickLog
    >>> one = np.zeros(1, np.uint8)
    >>> log = ClickLog(np.array([[2, 0]]), np.array([0]), np.zeros((1, 2)), one, one > 0, one,
    ...                np.array([0]), np.array([1], np.uint64), np.array([7]))
    >>> true_worth(log, np.array([[[2, 1]]]), np.array([[1.0, 0.5]]), "SRR").tolist()
    [1.0]
    """
    ranks = np.asarray(ranks)
    discount = np.append(0.0, rank_weights(weights, int(ranks.max(initial=1))))[ranks]
    seen = log.sessions[:, None] * np.where(log.shown, gains, 0.0)
    total = seen.sum() if self_normalised else log.sessions.sum()
    return (discount * seen).sum(axis=(1, 2)) / total


def graded_dcg(
    estimate: np.ndarray, log: ClickLog, weights: str = "DCG", *, eps: float, ymax: int
) -> np.ndarray:
    """Turn an estimate on the scale of clicks into one with gain 2^y - 1.

    For gamma(y) = eps + (1 - eps) (2^y - 1) / (2^ymax - 1) that is
    (estimate - eps sum_i lambda(rank_i)) (2^ymax - 1) / (1 - eps).

    Parameters
    ----------
    estimate : numpy.ndarray
        `Estimate.value`, `low` or `high`; not of the self-normalised form.
    log : ClickLog
        The log that gave it.
    weights : str
        Its lambda.
    eps : float
        Click probability of an examined document of grade 0.
    ymax : int
        Top grade.

    Returns
    -------
    numpy.ndarray
        float64, of the shape of `estimate`: the mean over sessions of DCG, or of the RBP or SRR
        sum, with gain 2^y - 1.

    Examples
    --------
    >>> from ultrbench.simulation.log import ClickLog
    >>> one = np.zeros(1, np.uint8)
    >>> log = ClickLog(np.array([[2, 0]]), np.array([0]), np.zeros((1, 2)), one, one > 0, one,
    ...                np.array([0]), np.array([1], np.uint64), np.array([7]))
    >>> float(graded_dcg(np.array(1.05), log, "SRR", eps=0.1, ymax=2))  # (1.05 - .15) 3 / .9
    3.0
    """
    lambdas = np.cumsum(np.append(0.0, rank_weights(weights, log.positions)))
    every = (log.sessions * lambdas[log.shown.sum(axis=1)]).sum() / log.sessions.sum()
    return (np.asarray(estimate) - eps * every) * (2.0**ymax - 1) / (1 - eps)


def summarise_estimates(estimates: "pd.DataFrame", by: Sequence[str]) -> "pd.DataFrame":
    """Return bias, variance and order of estimates over replicate logs.

    Parameters
    ----------
    estimates : pandas.DataFrame
        A row a replicate and ranker: columns seed, ranker, estimate, truth, low, high and those
        of `by`.
    by : sequence of str
        What the summary has a row for, such as the estimator of theta.

    Returns
    -------
    pandas.DataFrame
        The columns of `by`, then bias (mean of estimate - truth), variance (of the error over
        seeds, mean over rankers), rmse, coverage (share of intervals that hold the truth),
        rank_correlation (Kendall's tau-b between estimates and truths of the rankers, mean over
        seeds), replicates.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"theta": "oracle", "seed": [1, 1, 2, 2], "ranker": [*"abab"],
    ...     "estimate": [1.0, 2.0, 1.5, 2.5], "truth": [1.0, 2.0, 1.0, 2.0],
    ...     "low": [0.9, 1.9, 1.4, 2.4], "high": [1.1, 2.1, 1.6, 2.6]})
    >>> print(summarise_estimates(frame, ["theta"]).round(3).to_string(index=False))
     theta  bias  variance  rmse  coverage  rank_correlation  replicates
    oracle  0.25     0.125 0.354       0.5               1.0           2
    """
    import pandas as pd
    from scipy.stats import kendalltau

    rows = []
    for key, group in estimates.groupby(list(by), sort=False):
        error = group["estimate"] - group["truth"]
        taus = [kendalltau(g["estimate"], g["truth"]).statistic for _, g in group.groupby("seed")]
        rows.append(
            {
                **dict(zip(by, key, strict=True)),
                "bias": error.mean(),
                "variance": error.groupby(group["ranker"]).var().mean(),
                "rmse": float(np.sqrt((error**2).mean())),
                "coverage": (
                    (group["low"] <= group["truth"]) & (group["truth"] <= group["high"])
                ).mean(),
                "rank_correlation": float(np.mean(taus)),
                "replicates": group["seed"].nunique(),
            }
        )
    return pd.DataFrame(rows)

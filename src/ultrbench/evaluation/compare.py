"""The comparison of all methods of a table with one reference."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ultrbench.errors import UserError
from ultrbench.evaluation.significance import (
    TOLERANCE,
    benjamini_hochberg,
    crossed_bootstrap,
    effect_size,
    effect_that_interval_shows,
    fisher_randomization,
    holm,
    minimum_detectable_effect,
    win_tie_loss,
)

if TYPE_CHECKING:
    import pandas as pd

ALPHA = 0.05
MIN_REPLICATES = 5  # a mark claims something about other click logs, so it needs some


def compare_methods(
    per_query: pd.DataFrame,
    reference: str,
    metrics: Sequence[str],
    family_metric: str = "nDCG@10",
    *,
    not_marked: Collection[str] = (),
    resamples: int = 100_000,
    bootstraps: int = 2000,
    seed: int = 0,
) -> pd.DataFrame:
    """Compare every method with a reference, on every metric.

    **What the mark means.** `significant` is true where (1) the two-sided Fisher randomisation
    test on the per-query differences, averaged over replicates, has p <= .05, *and* (2) the 95 %
    crossed bootstrap interval of the mean difference (queries and replicates resampled) excludes
    0, *and* (3) there are at least 5 replicates, each with its own policy sample and clicks.
    Fisher's p alone is conditional on the trained rankers: it calls two runs of one method on two
    logs different far too often. The p of the mark is the raw one; `p_holm` and `p_max_t` say
    what is left of it when all marked methods of the table are asked at once. The reference and
    the methods in `not_marked` (the A/A row) are never marked.

    Parameters
    ----------
    per_query : pandas.DataFrame
        A row a (seed, method, query) with these three columns and a column a metric. One
        selection of candidates, validation and round.
    reference : str
        The method that the others are compared with.
    metrics : sequence of str
        Columns to compare.
    family_metric : str
        The family of the corrections is: this metric, all methods but the reference and
        `not_marked`. Other rows are descriptive; their `p_holm`, `p_max_t` and `p_bh` are
        NaN.
    not_marked : collection of str
        Methods that get no mark and are outside the family.
    resamples, bootstraps : int
        B of the randomisation test, and draws of the bootstrap.
    seed : int
        Of both; the same seed gives the same table.

    Returns
    -------
    pandas.DataFrame
        A row a method and metric, methods in the order in which they appear: method, reference,
        metric, mean, reference_mean, difference, p, p_holm, p_max_t, p_bh (Benjamini and Hochberg),
        low, high, mde (minimum detectable effect: the true difference that test and interval both
        show with 80 % power), wins, ties, losses, effect_size
        (Cohen's d), queries, replicates, resamples, significant. The tests of the reference's own
        rows are NaN.

    Raises
    ------
    UserError
        Where the reference, the family's metric, a column or a value is missing, a row stands
        twice, or the queries of some method and seed differ from those of the others.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({
    ...     "seed": 1, "method": ["naive"] * 3 + ["oracle"] * 3, "query": [0, 1, 2] * 2,
    ...     "nDCG@10": [0.5, 0.5, 0.5, 0.6, 0.6, 0.9]})
    >>> table = compare_methods(frame, "naive", ["nDCG@10"])
    >>> print(table[["method", "difference", "p", "wins", "significant"]].to_string(index=False))
    method  difference    p  wins  significant
     naive         0.0  NaN     0        False
    oracle         0.2 0.25     3        False
    """
    import pandas as pd

    if family_metric not in metrics:
        raise UserError(
            f"The metric of the family, {family_metric}, is not among those compared: "
            f"{', '.join(metrics)}."
        )
    methods, values = _cube(per_query, list(metrics))
    if reference not in methods:
        raise UserError(
            f"The reference {reference!r} is not among the methods: {', '.join(map(str, methods))}."
        )
    count, replicates, queries, width = values.shape
    base = methods.index(reference)
    differences = values - values[base]  # [methods, seeds, queries, metrics]
    paired = differences.mean(axis=1).transpose(1, 0, 2)  # [queries, methods, metrics]
    paired = np.where(np.abs(paired) <= TOLERANCE, 0.0, paired)  # replicates that cancel out

    tested = np.arange(count) != base
    claimed = tested & ~np.isin(methods, list(not_marked))
    family = claimed[:, None] & (np.array(metrics) == family_metric)
    flips, draws = (np.random.default_rng(s) for s in np.random.SeedSequence(seed).spawn(2))
    test = fisher_randomization(
        paired.reshape(queries, -1), resamples=resamples, rng=flips, family=family.ravel()
    )
    p = np.where(tested[:, None], test.p.reshape(count, width), np.nan)
    low, high = crossed_bootstrap(
        differences.transpose(0, 3, 1, 2), bootstraps=bootstraps, rng=draws
    )
    mde = np.maximum(minimum_detectable_effect(paired), effect_that_interval_shows(low, high))
    wins, ties, losses = win_tie_loss(paired)
    marked = (p <= ALPHA) & ((low > 0) | (high < 0)) & (replicates >= MIN_REPLICATES)

    def only_tested(array: np.ndarray) -> np.ndarray:
        return np.where(tested[:, None], array, np.nan).ravel()

    mean = values.mean(axis=(1, 2))
    return pd.DataFrame(
        {
            "method": np.repeat(np.array(methods, dtype=object), width),
            "reference": reference,
            "metric": list(metrics) * count,
            "mean": mean.ravel(),
            "reference_mean": np.tile(mean[base], count),
            "difference": (mean - mean[base]).ravel(),
            "p": p.ravel(),
            "p_holm": holm(np.where(family, p, np.nan).ravel()),
            "p_max_t": test.p_max_t,
            "p_bh": benjamini_hochberg(np.where(family, p, np.nan).ravel()),
            "low": only_tested(low),
            "high": only_tested(high),
            "mde": only_tested(mde),
            "wins": wins.ravel(),
            "ties": ties.ravel(),
            "losses": losses.ravel(),
            "effect_size": only_tested(effect_size(paired)),
            "queries": queries,
            "replicates": replicates,
            "resamples": resamples,
            "significant": (marked & claimed[:, None]).ravel(),
        }
    )


def _cube(per_query: pd.DataFrame, metrics: list[str]) -> tuple[list[str], np.ndarray]:
    """Return the methods and float64 ``[methods, seeds, queries, metrics]``."""
    absent = [c for c in ["seed", "method", "query", *metrics] if c not in per_query.columns]
    if absent:
        raise UserError(f"The per-query table has no column {', '.join(absent)}.")
    methods = list(per_query["method"].unique())
    seeds = np.unique(per_query["seed"])
    queries = np.unique(per_query["query"])
    method_of = per_query["method"].map({m: i for i, m in enumerate(methods)}).to_numpy()
    seed_of = np.searchsorted(seeds, per_query["seed"])
    query_of = np.searchsorted(queries, per_query["query"])
    shape = (len(methods), len(seeds), len(queries))
    seen = np.bincount(
        np.ravel_multi_index((method_of, seed_of, query_of), shape), minlength=np.prod(shape)
    ).reshape(shape)
    if (seen > 1).any():
        m, s, q = np.argwhere(seen > 1)[0]
        raise UserError(
            f"Method {methods[m]}, seed {seeds[s]}, query {queries[q]} stands "
            f"{seen[m, s, q]} times in the per-query table; select one candidates, validation "
            "and round first."
        )
    if (seen == 0).any():
        m, s, _ = np.argwhere(seen == 0)[0]
        lost = np.flatnonzero(seen[m, s] == 0)
        raise UserError(
            f"Method {methods[m]}, seed {seeds[s]} lacks {len(lost)} of the {len(queries)} queries "
            f"that others have (the first is {queries[lost[0]]}); a paired comparison needs the "
            "same queries for all methods and seeds."
        )
    values = np.empty((*shape, len(metrics)))
    values[method_of, seed_of, query_of] = per_query[metrics].to_numpy(dtype=np.float64)
    if np.isnan(values).any():
        m, s, q, c = np.argwhere(np.isnan(values))[0]
        raise UserError(
            f"{metrics[c]} of method {methods[m]}, seed {seeds[s]}, query {queries[q]} is missing."
        )
    return methods, values

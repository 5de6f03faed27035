"""Paired tests, intervals and corrections for per-query differences between two rankers."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtri

from ultrbench.errors import UserError

if TYPE_CHECKING:
    import pandas as pd

EXACT = 16  # up to so many non-zero differences, all 2^n sign flips are enumerated
TOLERANCE = 1e-9  # statistics closer than this, relatively, are equal: rounding is no evidence
CHUNK = 1 << 22  # random signs held at a time: 32 MB


@dataclass(frozen=True)
class Randomization:
    """What `fisher_randomization` returns.

    Attributes
    ----------
    p : numpy.ndarray
        float64 ``[comparisons]``, raw two-sided p.
    p_max_t : numpy.ndarray
        float64 ``[comparisons]``, p adjusted for the family; NaN outside the family.
    """

    p: np.ndarray
    p_max_t: np.ndarray


def fisher_randomization(
    differences: np.ndarray,
    *,
    resamples: int = 100_000,
    rng: np.random.Generator,
    family: np.ndarray | None = None,
) -> Randomization:
    """Fisher's paired randomisation test, two-sided, of many comparisons with shared sign flips.

    Under the null hypothesis of no difference on any query, each per-query difference is as likely
    with the other sign. T is the sum of a comparison's differences; T* its value after independent
    random flips, the same flips for all comparisons. p = (1 + #{|T*| >= |T|}) / (1 + B), equality
    judged with a relative tolerance of 1e-9. A comparison with at most 16 non-zero differences gets
    its exact p, the share of all 2^n flips.

    The adjusted p are Westfall and Young's step-down max-T over the family, with T divided by the
    root of the sum of squared differences. Flips leave that divisor unchanged, and T over it rises
    strictly with Student's t, so this is the maximum of studentised statistics at no cost; the
    plain T would let the comparison with the widest differences set the bar for all others.

    Parameters
    ----------
    differences : numpy.ndarray
        float ``[queries, comparisons]`` (or ``[queries]``), method minus reference.
    resamples : int
        B, random flips.
    rng : numpy.random.Generator
        Source of the flips.
    family : numpy.ndarray, optional
        bool ``[comparisons]``, what max-T adjusts over; default all.

    Returns
    -------
    Randomization

    Raises
    ------
    UserError
        Where a difference is not finite, or there are no queries.

    Notes
    -----
    The test is conditional on the trained rankers: it speaks of other queries, not of other click
    logs. Memory is bounded; the time is that of a product [resamples, queries] x [queries,
    comparisons].

    References
    ----------
    Fisher 1935; Smucker et al. 2007; Westfall and Young 1993, chapter 4.

    Examples
    --------
    >>> result = fisher_randomization(np.array([1.0, 2.0, 3.0]), rng=np.random.default_rng(1))
    >>> result.p.tolist()  # only +++ and --- of the 8 flips reach |T| = 6
    [0.25]
    """
    differences = np.asarray(differences, dtype=np.float64)
    if differences.ndim == 1:
        differences = differences[:, None]
    if not len(differences) or not np.isfinite(differences).all():
        raise UserError("A randomisation test needs finite differences of at least one query.")
    comparisons = differences.shape[1]
    family = np.ones(comparisons, bool) if family is None else np.asarray(family, bool)

    scale = np.sqrt((differences**2).sum(axis=0))
    used = differences / np.where(scale > 0, scale, 1)
    nonzero = (used != 0).sum(axis=0)
    used = used[used.any(axis=1)]
    totals = used.sum(axis=0)
    bar = _bar(totals)

    # Step-down: each comparison competes with those of a smaller observed statistic.
    members = np.flatnonzero(family)
    members = members[np.argsort(np.abs(totals[members]), kind="stable")]
    exact = len(used) <= EXACT
    reached, reached_max = np.zeros(comparisons, np.int64), np.zeros(len(members), np.int64)
    drawn = 0
    for signs in _all_signs(len(used)) if exact else _random_signs(len(used), resamples, rng):
        statistics = np.abs(totals - 2 * (signs @ used))
        reached += (statistics >= bar).sum(axis=0)
        largest = np.maximum.accumulate(statistics[:, members], axis=1)
        reached_max += (largest >= bar[members]).sum(axis=0)
        drawn += len(signs)

    extra = 0 if exact else 1
    p = (extra + reached) / (extra + drawn)
    if not exact:
        for column in np.flatnonzero(nonzero <= EXACT):
            p[column] = _exact_p(used[:, column])
    p_max_t = np.full(comparisons, np.nan)
    adjusted = np.maximum((extra + reached_max) / (extra + drawn), p[members])
    p_max_t[members] = np.maximum.accumulate(adjusted[::-1])[::-1]
    return Randomization(p, p_max_t)


def _bar(totals: np.ndarray) -> np.ndarray:
    # The small constant is for sums that are 0 but for rounding; the differences have norm 1.
    return np.abs(totals) * (1 - TOLERANCE) - 1e-12


def _exact_p(differences: np.ndarray) -> float:
    values = differences[differences != 0]
    (signs,) = _all_signs(len(values))
    statistics = np.abs(values.sum() - 2 * (signs @ values))
    return float((statistics >= _bar(values.sum())).mean())


def _all_signs(queries: int) -> Iterator[np.ndarray]:
    bits = np.arange(2**queries)[:, None] >> np.arange(queries) & 1
    yield bits.astype(np.float64)


def _random_signs(queries: int, resamples: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Yield float64 ``[chunk, queries]`` of 0 and 1 (1 = flipped), `resamples` rows in all."""
    step = max(1, CHUNK // queries)
    for start in range(0, resamples, step):
        rows = min(step, resamples - start)
        octets = rng.integers(0, 256, size=(rows, -(-queries // 8)), dtype=np.uint8)
        yield np.unpackbits(octets, axis=1, count=queries).astype(np.float64)


def holm(p: np.ndarray) -> np.ndarray:
    """Return Holm's step-down adjusted p-values, which control the family-wise error rate.

    Parameters
    ----------
    p : numpy.ndarray
        float ``[comparisons]``; NaN stands outside the family and stays NaN.

    Returns
    -------
    numpy.ndarray
        float64 ``[comparisons]``.

    References
    ----------
    Holm 1979.

    Examples
    --------
    >>> holm(np.array([0.01, 0.04, 0.03])).tolist()
    [0.03, 0.06, 0.06]
    """
    adjusted = np.array(p, dtype=np.float64)
    given = np.flatnonzero(~np.isnan(adjusted))
    order = given[np.argsort(adjusted[given], kind="stable")]
    stepped = adjusted[order] * np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(stepped), 1)
    return adjusted


def benjamini_hochberg(p: np.ndarray) -> np.ndarray:
    """Return Benjamini and Hochberg's adjusted p-values, which control the false discovery rate.

    Parameters
    ----------
    p : numpy.ndarray
        float ``[comparisons]``; NaN stands outside the family and stays NaN.

    Returns
    -------
    numpy.ndarray
        float64 ``[comparisons]``.

    References
    ----------
    Benjamini and Hochberg 1995.

    Examples
    --------
    >>> benjamini_hochberg(np.array([0.01, 0.04, 0.03])).round(12).tolist()
    [0.03, 0.04, 0.04]
    """
    from scipy.stats import false_discovery_control

    adjusted = np.array(p, dtype=np.float64)
    given = ~np.isnan(adjusted)
    if given.any():
        adjusted[given] = false_discovery_control(adjusted[given], method="bh")
    return adjusted


def crossed_bootstrap(
    differences: np.ndarray,
    *,
    bootstraps: int = 2000,
    rng: np.random.Generator,
    level: float = 0.95,
) -> tuple[np.ndarray, np.ndarray]:
    """Return percentile intervals of mean differences, resampling queries and replicates alike.

    Queries and replicates are drawn with replacement, independently of each other, and the same
    draws serve all comparisons. The interval covers other queries and other click logs at once.
    With few replicates it is somewhat too narrow in their direction, by sqrt(1 - 1/replicates);
    with one replicate it speaks of queries alone.

    Parameters
    ----------
    differences : numpy.ndarray
        float ``[..., replicates, queries]``.
    bootstraps : int
        Resamples.
    rng : numpy.random.Generator
        Source of the draws.
    level : float
        Nominal coverage.

    Returns
    -------
    low, high : numpy.ndarray
        float64 ``[...]``; NaN with a single query, which says nothing of others.

    References
    ----------
    Owen 2007, the pigeonhole bootstrap.

    Examples
    --------
    >>> low, high = crossed_bootstrap(np.full((5, 20), 0.25), rng=np.random.default_rng(1))
    >>> float(low), float(high)
    (0.25, 0.25)
    """
    differences = np.asarray(differences, dtype=np.float64)
    *outer, replicates, queries = differences.shape
    if queries < 2:
        return np.full(outer, np.nan), np.full(outer, np.nan)
    flat = differences.reshape(-1, queries)
    means = np.empty((bootstraps, flat.shape[0] // replicates))
    step = max(1, CHUNK // queries)
    for start in range(0, bootstraps, step):
        rows = slice(start, min(start + step, bootstraps))
        size = rows.stop - rows.start
        by_query = _draw_counts(size, queries, rng) @ flat.T
        by_query = by_query.reshape(size, -1, replicates)
        by_replicate = _draw_counts(size, replicates, rng)
        means[rows] = (by_query * by_replicate[:, None, :]).sum(axis=2) / (replicates * queries)
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return low.reshape(outer), high.reshape(outer)


def _draw_counts(draws: int, units: int, rng: np.random.Generator) -> np.ndarray:
    """How often each of `units` is drawn when `units` are drawn, float64 ``[draws, units]``."""
    index = rng.integers(units, size=(draws, units)) + units * np.arange(draws)[:, None]
    counts = np.bincount(index.ravel(), minlength=draws * units)
    return counts.reshape(draws, units).astype(np.float64)


def minimum_detectable_effect(
    differences: np.ndarray, *, alpha: float = 0.05, power: float = 0.8
) -> np.ndarray:
    """Return the true mean difference that a two-sided test at `alpha` finds with `power`.

    (z_{1 - alpha/2} + z_power) sd / sqrt(queries), with the sample's standard deviation.

    Parameters
    ----------
    differences : numpy.ndarray
        float ``[queries, ...]``, at least two queries; with fewer, NaN.
    alpha, power : float
        Error rates, in (0, 1).

    Returns
    -------
    numpy.ndarray
        float64 ``[...]``, in the unit of the differences.

    References
    ----------
    Cohen 1988; Sakai 2016 for information retrieval.

    Examples
    --------
    >>> effect = minimum_detectable_effect(np.tile([0.1, -0.1], 50))
    >>> round(float(effect), 4)  # (1.96 + 0.84) x 0.1005 / 10
    0.0282
    """
    return _standard_normal(alpha, power) * _deviation(differences) / np.sqrt(len(differences))


def effect_that_interval_shows(
    low: np.ndarray, high: np.ndarray, *, alpha: float = 0.05, power: float = 0.8
) -> np.ndarray:
    """Return the true mean difference whose interval leaves out 0 with `power`.

    (z_{1 - alpha/2} + z_power) standard errors, one of which is the interval's half over
    z_{1 - alpha/2}. Of a `crossed_bootstrap` it holds the spread over replicates too, which no
    number of queries takes away; `minimum_detectable_effect` has that over queries alone.

    Parameters
    ----------
    low, high : numpy.ndarray
        float64 ``[...]``, interval of coverage 1 - alpha.
    alpha, power : float
        Error rates, in (0, 1).

    Returns
    -------
    numpy.ndarray
        float64 ``[...]``; NaN where there is no interval.

    Examples
    --------
    >>> float(effect_that_interval_shows(np.array(-0.0196), np.array(0.0196)).round(4))
    0.028
    """
    by_rounding = high - low <= TOLERANCE * np.maximum(np.abs(low), np.abs(high))
    half = np.where(by_rounding, 0.0, high - low) / 2
    return _standard_normal(alpha, power) * half / float(ndtri(1 - alpha / 2))


def _standard_normal(alpha: float, power: float) -> float:
    return float(ndtri(1 - alpha / 2) + ndtri(power))


def _deviation(differences: np.ndarray) -> np.ndarray:
    differences = np.asarray(differences, dtype=np.float64)
    if len(differences) < 2:
        return np.full(differences.shape[1:], np.nan)
    deviation = differences.std(axis=0, ddof=1)
    return np.where(deviation <= TOLERANCE * np.abs(differences).max(axis=0), 0.0, deviation)


def effect_size(differences: np.ndarray) -> np.ndarray:
    """Return Cohen's d of paired differences: their mean over their standard deviation.

    Parameters
    ----------
    differences : numpy.ndarray
        float ``[queries, ...]``.

    Returns
    -------
    numpy.ndarray
        float64 ``[...]``; NaN where the deviation is 0 or there is one query only.

    References
    ----------
    Cohen 1988, d_z.

    Examples
    --------
    >>> float(effect_size(np.array([0.0, 1.0, 2.0])))
    1.0
    """
    deviation = _deviation(differences)
    mean = np.mean(differences, axis=0)
    return np.divide(mean, deviation, out=np.full_like(deviation, np.nan), where=deviation > 0)


def win_tie_loss(differences: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Count the queries where the difference is above, equal to (within 1e-9) and below 0.

    Parameters
    ----------
    differences : numpy.ndarray
        float ``[queries, ...]``.

    Returns
    -------
    wins, ties, losses : numpy.ndarray
        int64 ``[...]``.

    Examples
    --------
    >>> [int(count) for count in win_tie_loss(np.array([0.1, 0.0, -0.2, 1e-17]))]
    [1, 2, 1]
    """
    differences = np.asarray(differences)
    wins = (differences > TOLERANCE).sum(axis=0)
    losses = (differences < -TOLERANCE).sum(axis=0)
    return wins, len(differences) - wins - losses, losses


def power_table(
    differences: np.ndarray,
    effects: Sequence[float],
    *,
    alpha: float = 0.05,
    power: float = 0.8,
    comparisons: int = 1,
    error: float = 0.1,
) -> "pd.DataFrame":
    """Return how many queries and resamples a difference of a given size needs.

    Queries: ((z_{1 - alpha/2} + z_power) sd / effect)^2, with the standard deviation of the given
    differences. Resamples: so many that at p = alpha the Monte-Carlo standard error of p is
    `error` times alpha, (1 - alpha) / (alpha error^2). Both with alpha / comparisons for alpha,
    the bar of Holm's first step.

    Parameters
    ----------
    differences : numpy.ndarray
        float ``[queries]``, per-query differences of a pilot or of another pair of methods.
    effects : sequence of float
        Mean differences that are to be found, above 0.
    alpha, power : float
        Error rates, in (0, 1).
    comparisons : int
        Size of the family.
    error : float
        Relative Monte-Carlo error of p that is put up with.

    Returns
    -------
    pandas.DataFrame
        A row an effect: effect, effect_size (over the standard deviation), queries, resamples.

    Raises
    ------
    UserError
        Where an effect is not above 0, or the differences do not vary.

    References
    ----------
    Cohen 1988; Sakai 2016.

    Examples
    --------
    >>> print(power_table(np.tile([0.1, -0.1], 50), [0.01, 0.02]).round(2).to_string(index=False))
     effect  effect_size  queries  resamples
       0.01          0.1      793       1900
       0.02          0.2      199       1900
    """
    import pandas as pd

    sizes = np.asarray(effects, dtype=np.float64)
    deviation = float(_deviation(differences))
    if not (sizes > 0).all() or not deviation > 0:
        raise UserError("A power table needs effects above 0 and differences that vary.")
    bar = alpha / comparisons
    queries = np.ceil((_standard_normal(bar, power) * deviation / sizes) ** 2)
    return pd.DataFrame(
        {
            "effect": sizes,
            "effect_size": sizes / deviation,
            "queries": queries.astype(np.int64),
            "resamples": int(np.ceil((1 - bar) / (bar * error**2) - 1e-6)),
        }
    )

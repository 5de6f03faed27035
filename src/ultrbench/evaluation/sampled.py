"""Sampled metrics: the rank of a relevant item among m sampled others, and what is wrong with it.

One relevant item has the rank r among all n items. Against m sampled negatives its rank is
1 + Binomial(m, (r - 1) / (n - 1)) with replacement, and 1 + a hypergeometric number without: for
small m every metric comes near to AUC, and two rankers can swap their order.

References
----------
Krichene and Rendle 2020, "On sampled metrics for item recommendation".
"""

from collections.abc import Iterator, Sequence
from itertools import combinations, product
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import gammaln, xlogy

from ultrbench.errors import UserError
from ultrbench.evaluation.metrics import parse_metric

if TYPE_CHECKING:
    import pandas as pd

BLOCK = 4096  # exact ranks at a time in the regressions, whose memory it bounds


def metric_of_rank(name: str, rank: np.ndarray, items: int) -> np.ndarray:
    """Return the metric of a list of `items` documents with one relevant one, from its rank.

    Parameters
    ----------
    name : str
        ``nDCG``, ``RR``, ``AP``, ``R``, ``Hit``, ``P``, with or without ``@k``; or ``AUC``.
    rank : numpy.ndarray
        float, from 1 to `items`; estimated ranks need not be whole.
    items : int
        Length of the list.

    Returns
    -------
    numpy.ndarray
        float64, of the shape of `rank`.

    Examples
    --------
    >>> metric_of_rank("RR@10", np.array([1, 4, 11]), 100).tolist()
    [1.0, 0.25, 0.0]
    >>> metric_of_rank("AUC", np.array([1, 3]), 5).tolist()
    [1.0, 0.5]
    """
    rank = np.asarray(rank, np.float64)
    if name == "AUC":
        return (items - rank) / (items - 1)
    metric = parse_metric(name)
    depth = metric.cutoff or items
    values = {
        "nDCG": 1 / np.log2(rank + 1),
        "RR": 1 / rank,
        "AP": 1 / rank,
        "R": np.ones_like(rank),
        "Hit": np.ones_like(rank),
        "P": np.full_like(rank, 1 / depth),
    }
    if metric.kind not in values:
        raise UserError(f"{name} is no metric of one relevant item; take {', '.join(values)}, AUC.")
    return np.where(rank <= depth, values[metric.kind], 0.0)


def sample_ranks(
    ranks: np.ndarray,
    items: int,
    samples: int = 100,
    *,
    replacement: bool = False,
    rng: np.random.Generator,
) -> np.ndarray:
    """Draw the rank of each relevant item among `samples` uniformly drawn other items.

    Parameters
    ----------
    ranks : numpy.ndarray
        int, any shape, the exact ranks, from 1 to `items`.
    items : int
        Items of the catalogue, n.
    samples : int
        Sampled negatives, m.
    replacement : bool
        Whether an item can be drawn twice.
    rng : numpy.random.Generator
        Source of the draws.

    Returns
    -------
    numpy.ndarray
        int64, of the shape of `ranks`, from 1 to m + 1.

    Examples
    --------
    >>> sample_ranks(np.array([1, 7]), 7, 6, rng=np.random.default_rng(1)).tolist()
    [1, 7]
    """
    above = _checked(ranks, items, samples, replacement) - 1
    if replacement:
        return 1 + rng.binomial(samples, above / (items - 1))
    return 1 + rng.hypergeometric(above, items - 1 - above, samples)


def sampled_rank_distribution(
    ranks: np.ndarray, items: int, samples: int = 100, *, replacement: bool = False
) -> np.ndarray:
    """Return P(sampled rank | exact rank), the exact law of `sample_ranks`.

    Parameters
    ----------
    ranks, items, samples, replacement
        As in `sample_ranks`; ranks ``[ranks]``.

    Returns
    -------
    numpy.ndarray
        float64 ``[ranks, samples + 1]``, rows sum to 1.

    References
    ----------
    Krichene and Rendle 2020, section 4.

    Examples
    --------
    >>> sampled_rank_distribution(np.array([2]), 3, 1).tolist()  # one of two others is above
    [[0.5, 0.5]]
    """
    above = _checked(ranks, items, samples, replacement)[:, None] - 1
    below, found = items - 1 - above, np.arange(samples + 1)
    ways = gammaln(samples + 1) - gammaln(found + 1) - gammaln(samples - found + 1)
    if replacement:
        rate = above / (items - 1)
        return np.exp(ways + xlogy(found, rate) + xlogy(samples - found, 1 - rate))
    # scipy.stats.hypergeom takes a minute for 10^5 ranks; a table of log factorials, a second.
    factorial = gammaln(np.arange(items + 1) + 1.0)
    taken, left = above - found, below - (samples - found)
    log_law = (
        ways
        + (factorial[above] + factorial[below] - factorial[items - 1])
        - (factorial[taken] + factorial[left] - factorial[items - 1 - samples])
    )
    return np.where((taken >= 0) & (left >= 0), np.exp(log_law), 0.0)


def _checked(ranks: np.ndarray, items: int, samples: int, replacement: bool) -> np.ndarray:
    ranks = np.asarray(ranks, np.int64)
    if ((ranks < 1) | (ranks > items)).any():
        raise UserError(f"Ranks must lie between 1 and the number of items, {items}.")
    if not replacement and samples > items - 1:
        raise UserError(
            f"{samples} different negatives cannot be drawn from {items - 1} items; draw fewer, "
            "or with replacement."
        )
    return ranks


def expected_sampled_metric(
    name: str, ranks: np.ndarray, items: int, samples: int = 100, *, replacement: bool = False
) -> np.ndarray:
    """Return the exact expectation of a metric that is computed on sampled ranks.

    Parameters
    ----------
    name : str
        As in `metric_of_rank`.
    ranks, items, samples, replacement
        As in `sampled_rank_distribution`.

    Returns
    -------
    numpy.ndarray
        float64 ``[ranks]``.

    References
    ----------
    Krichene and Rendle 2020, section 4.

    Examples
    --------
    >>> expected_sampled_metric("RR", np.array([2]), 3, 1).tolist()  # (1 + 1/2) / 2
    [0.75]
    """
    law = sampled_rank_distribution(ranks, items, samples, replacement=replacement)
    return law @ metric_of_rank(name, np.arange(1, samples + 2), samples + 1)


def uncorrected(name: str, samples: int = 100) -> np.ndarray:
    """Return the metric as it is commonly computed, for each sampled rank 1 .. m + 1.

    Examples
    --------
    >>> uncorrected("Hit@1", 2).tolist()
    [1.0, 0.0, 0.0]
    """
    return metric_of_rank(name, np.arange(1, samples + 2), samples + 1)


def corrected_by_rank(name: str, items: int, samples: int = 100) -> np.ndarray:
    """Return the metric at the unbiased estimate of the rank, for each sampled rank.

    The rank is estimated by 1 + (n - 1) (sampled rank - 1) / m; the metric, not being linear in
    it, is biased still.

    Parameters
    ----------
    name, items, samples
        As in `expected_sampled_metric`.

    Returns
    -------
    numpy.ndarray
        float64 ``[samples + 1]``: value ``s - 1`` replaces the metric of sampled rank ``s``.

    References
    ----------
    Krichene and Rendle 2020, section 5.

    Examples
    --------
    >>> corrected_by_rank("RR", 21, 2).tolist()  # ranks 1, 11, 21
    [1.0, 0.09090909090909091, 0.047619047619047616]
    """
    return metric_of_rank(name, 1 + (items - 1) * np.arange(samples + 1) / samples, items)


def corrected_by_bias_variance(
    name: str,
    items: int,
    samples: int = 100,
    *,
    gamma: float = 0.1,
    replacement: bool = False,
    prior: np.ndarray | None = None,
) -> np.ndarray:
    """Return the correction that minimises squared bias + gamma x variance over a prior of ranks.

    With A = sqrt(prior) P(sampled rank | rank), b = sqrt(prior) metric(rank) and c the marginal
    law of the sampled rank: ((1 - gamma) A'A + gamma diag(c))^-1 A'b.

    Parameters
    ----------
    name, items, samples, replacement
        As in `expected_sampled_metric`.
    gamma : float
        Price of variance, in (0, 1]; the paper uses .1 and .01. Towards 0 the bias is least and
        the values grow without bound.
    prior : numpy.ndarray, optional
        float ``[items]``, how likely each rank is; default uniform.

    Returns
    -------
    numpy.ndarray
        float64 ``[samples + 1]``: value ``s - 1`` replaces the metric of sampled rank ``s``.

    References
    ----------
    Krichene and Rendle 2020, section 5.

    Examples
    --------
    >>> corrected_by_bias_variance("AUC", 50, 10, gamma=0.0001).round(2)[[0, 5, 10]].tolist()
    [1.0, 0.5, 0.0]
    """
    if not 0 < gamma <= 1:
        raise UserError(f"gamma must be above 0 and at most 1, not {gamma}.")
    square, marginal, right = 0.0, 0.0, 0.0
    for a, b, root in _regression(name, items, samples, replacement, prior):
        square, marginal, right = square + a.T @ a, marginal + root @ a, right + a.T @ b
    return np.linalg.solve((1 - gamma) * square + gamma * np.diag(marginal), right)


def corrected_by_constrained_least_squares(
    name: str,
    items: int,
    samples: int = 100,
    *,
    replacement: bool = False,
    prior: np.ndarray | None = None,
) -> np.ndarray:
    """Return the correction of least squared bias among those that never rise with the rank.

    Without that constraint the least-bias solution swings without bound.

    Parameters
    ----------
    name, items, samples, replacement, prior
        As in `corrected_by_bias_variance`.

    Returns
    -------
    numpy.ndarray
        float64 ``[samples + 1]``, non-increasing: value ``s - 1`` replaces the metric of sampled
        rank ``s``.

    References
    ----------
    Krichene and Rendle 2020, section 5.

    Examples
    --------
    >>> corrected_by_constrained_least_squares("AUC", 50, 10).round(6)[[0, 5, 9]].tolist()
    [1.0, 0.5, 0.1]
    """
    from scipy.optimize import lsq_linear

    # The last value, and the steps from each value to the next, which must not be negative. The
    # triangular factor has the same least squares problem in m + 2 rows instead of n.
    triangle = np.empty((0, samples + 2))
    for a, b, _ in _regression(name, items, samples, replacement, prior):
        block = np.column_stack([np.cumsum(a, axis=1), b])
        triangle = np.asarray(np.linalg.qr(np.concatenate([triangle, block]), mode="r"))
    lower = np.append(np.zeros(samples), -np.inf)
    solution = lsq_linear(triangle[:, :-1], triangle[:, -1], (lower, np.inf), method="bvls").x
    return np.cumsum(solution[::-1])[::-1]


def _regression(
    name: str, items: int, samples: int, replacement: bool, prior: np.ndarray | None
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yield the A and b of the paper, and the root of the prior, for some ranks at a time."""
    roots = np.sqrt(np.full(items, 1 / items) if prior is None else prior / np.sum(prior))
    for start in range(0, items, BLOCK):
        root = roots[start : start + BLOCK]
        ranks = np.arange(start + 1, start + 1 + len(root))
        law = sampled_rank_distribution(ranks, items, samples, replacement=replacement)
        yield root[:, None] * law, root * metric_of_rank(name, ranks, items), root


def order_agreement(
    ranks: np.ndarray,
    items: int,
    values: np.ndarray,
    exact: np.ndarray,
    *,
    users: int,
    repeats: int = 500,
    replacement: bool = False,
    rng: np.random.Generator,
) -> np.ndarray:
    """Return how often two rankers stand in their true order under a sampled metric.

    Parameters
    ----------
    ranks : numpy.ndarray
        int ``[2, all users]``, exact rank of each user's relevant item under two rankers.
    items : int
        Items of the catalogue.
    values : numpy.ndarray
        float ``[..., samples + 1]``, the metric or its corrections for each sampled rank; all see
        the same draws.
    exact : numpy.ndarray
        float ``[items]``, the exact metric of each rank: its mean over all users is the truth.
    users : int
        Users drawn, with replacement, for one comparison.
    repeats : int
        Comparisons drawn.
    replacement : bool
        Whether negatives are drawn with replacement.
    rng : numpy.random.Generator
        Source of the draws.

    Returns
    -------
    numpy.ndarray
        float64 ``[...]``, share of the comparisons, in [0, 1], with the true sign of the
        difference; a tie counts half.

    Examples
    --------
    >>> ranks = np.array([[1] * 9, [50] * 9])
    >>> order_agreement(ranks, 100, uncorrected("RR", 20), metric_of_rank("RR",
    ...     np.arange(1, 101), 100), users=9, rng=np.random.default_rng(1)).tolist()
    1.0
    """
    ranks = np.asarray(ranks)
    truth = np.sign(np.subtract(*exact[ranks - 1].mean(axis=1)))
    samples = values.shape[-1] - 1
    agreed = np.zeros(values.shape[:-1])
    for _ in range(repeats):
        drawn = ranks[:, rng.integers(ranks.shape[1], size=users)]
        sampled = sample_ranks(drawn, items, samples, replacement=replacement, rng=rng)
        counts = [np.bincount(ranks_of, minlength=samples + 2)[1:] for ranks_of in sampled]
        change = np.subtract(*counts)
        difference = values @ change
        # Corrections have plateaus, on which rounding must not decide.
        noise = 1e-9 * (np.abs(values) @ np.abs(change))
        sign = np.where(np.abs(difference) <= noise, 0, np.sign(difference))
        agreed += np.where(sign == 0, 0.5, sign == truth)
    return agreed / repeats


def order_table(
    ranks: np.ndarray,
    rankers: Sequence[str],
    items: int,
    name: str,
    *,
    sample_sizes: Sequence[int],
    user_counts: Sequence[int],
    gammas: Sequence[float] = (0.1, 0.01),
    repeats: int = 500,
    rng: np.random.Generator,
) -> "pd.DataFrame":
    """Return how often each pair of rankers keeps its order, by sample size and correction.

    Parameters
    ----------
    ranks : numpy.ndarray
        int ``[rankers, users]``, exact rank of each user's relevant item.
    rankers : sequence of str
        Their names.
    items : int
        Items of the catalogue.
    name : str
        Metric, as in `metric_of_rank`.
    sample_sizes, user_counts : sequence of int
        Numbers m of negatives, and of users in a comparison.
    gammas : sequence of float
        Of the bias-variance correction.
    repeats : int
        Comparisons drawn for each row.
    rng : numpy.random.Generator
        Source of the draws; negatives are drawn without replacement.

    Returns
    -------
    pandas.DataFrame
        Columns better, worse (by the exact metric over all users), metric, gap (of the exact
        metric), samples, correction, users, agreement.

    Examples
    --------
    >>> table = order_table(np.array([[1] * 9, [50] * 9]), ["a", "b"], 100, "RR", gammas=(),
    ...     sample_sizes=[20], user_counts=[9], repeats=9, rng=np.random.default_rng(1))
    >>> print(table[["better", "samples", "correction", "agreement"]].to_string(index=False))
    better  samples                correction  agreement
         a       20                      none        1.0
         a       20                      rank        1.0
         a       20 constrained least squares        1.0
    """
    import pandas as pd

    exact = metric_of_rank(name, np.arange(1, items + 1), items)
    means = exact[ranks - 1].mean(axis=1)
    rows = []
    for samples in sample_sizes:
        values = {
            "none": uncorrected(name, samples),
            "rank": corrected_by_rank(name, items, samples),
            "constrained least squares": corrected_by_constrained_least_squares(
                name, items, samples
            ),
        }
        for gamma in gammas:
            values[f"bias-variance {gamma:g}"] = corrected_by_bias_variance(
                name, items, samples, gamma=gamma
            )
        every = np.array(list(values.values()))
        pairs = combinations(np.argsort(-means, kind="stable"), 2)
        for (better, worse), users in product(pairs, user_counts):
            agreements = order_agreement(
                ranks[[better, worse]], items, every, exact, users=users, repeats=repeats, rng=rng
            )
            for correction, agreement in zip(values, agreements, strict=True):
                rows.append(
                    {
                        "better": rankers[better],
                        "worse": rankers[worse],
                        "metric": name,
                        "gap": means[better] - means[worse],
                        "samples": samples,
                        "correction": correction,
                        "users": users,
                        "agreement": agreement,
                    }
                )
    return pd.DataFrame(rows)

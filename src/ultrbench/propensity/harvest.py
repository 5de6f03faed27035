"""Intervention harvesting: position effects from pairs of positions that share documents."""

from dataclasses import replace
from typing import Any

import numpy as np

from ultrbench.errors import UserError
from ultrbench.propensity.estimate import Estimate
from ultrbench.propensity.exposures import exposures, follows_clicks
from ultrbench.propensity.position_effects import check_connected, fit_effects
from ultrbench.simulation.log import ClickLog

FEEDBACK = (
    "the orders of later rounds must not depend on the clicks before them: what a ranker learnt"
    " from chance clicks goes into theta (fixed_effects allows for it)"
)


def estimate(log: ClickLog, *, pairs: str, **_: Any) -> Estimate:
    """Estimate propensities from documents that were seen at two positions of a pair.

    The intervention set S_kl holds the documents seen at k and at l. Their clicks, weighted by
    inverse impressions, are alike in relevance at both (Agarwal et al., WSDM 2019, section 4):

        c^kl_k = sum_{d in S_kl} w_d c_dk / n_dk,    c^kl_l = sum_{d in S_kl} w_d c_dl / n_dl,
        E[c^kl_k] = theta_k r_kl,    r_kl = sum_{d in S_kl} w_d P(relevant | d).

    ``adjacent`` is their AdjacentChain, theta_k / theta_1 = prod_{j < k} c^{j,j+1}_{j+1} /
    c^{j,j+1}_j. ``all`` is their AllPairs, which fits theta_k and r_kl to all pairs at once.

    Adapted: the paper's likelihood of clicks and of skips has bounds on theta_k r_kl, which are
    click probabilities; ours takes the Poisson limit, where r_kl has a closed form and a concave
    likelihood of theta remains (Bradley-Terry), with AdjacentChain as its solution when the pairs
    are the adjacent ones. The paper weights documents by the traffic of their query, w_d here is
    n_dk n_dl / (n_dk + n_dl), in proportion to it when the orders have equal traffic, so that a
    document with few impressions at one position adds little noise (Mantel and Haenszel 1959).

    Orders must not depend on the clicks they are compared with. In a dynamic log the ranker of a
    round has learnt from the clicks of the rounds before: documents that were lucky at a low
    position move up and are not lucky again, so that theta of low positions comes out too large
    where sessions are few. The estimate says so (``identified`` false), and its standard errors do
    not know of it; `ultrbench.propensity.fixed_effects.estimate` allows for it.

    Parameters
    ----------
    log : ClickLog
        Displayed lists with clicks, several orders a query.
    pairs : {"adjacent", "all"}
        Pairs of positions that are compared.

    Returns
    -------
    Estimate
        Relative propensities, with standard errors that are robust to any dependence within a
        query.

    Raises
    ------
    UserError
        When no document was seen at two positions, or the pairs do not connect all positions.
    """
    if pairs not in ("adjacent", "all"):
        raise UserError(f"estimator harvest: pairs: adjacent or all is wanted, got {pairs}")
    table = exposures(log)
    n, c = table.impressions, table.clicks
    first, second = np.triu_indices(log.positions, 1)
    if pairs == "adjacent":
        first, second = np.arange(log.positions - 1), np.arange(1, log.positions)

    impressions, clicks = np.zeros((2, len(first), log.positions))
    names, query = np.unique(table.queries, return_inverse=True)
    by_query = []
    for unit, (k, l) in enumerate(zip(first, second, strict=True)):  # noqa: E741
        pair = [k, l]
        shared = np.flatnonzero((n[:, pair] > 0).all(axis=1))
        seen = n[np.ix_(shared, pair)]
        weighted = c[np.ix_(shared, pair)] * (seen[:, ::-1] / seen.sum(axis=1, keepdims=True))
        impressions[unit, pair] = len(shared) > 0
        clicks[unit, pair] = weighted.sum(axis=0)
        by_query.append((pair, query[shared], weighted))
    used = impressions.any(axis=1)
    remedy = (
        "take `pairs: all`, or show the documents of a query in more orders"
        if pairs == "adjacent"
        else "show the documents of a query in more orders, or fewer positions (list_size)"
    )
    if table.moved.any() and not used.any():
        raise UserError(
            "estimator harvest: no document of this log was seen at two adjacent positions;"
            f" {remedy}"
        )
    check_connected("harvest", impressions[used], clicks[used], remedy)
    fit = fit_effects(impressions[used], clicks[used])

    scores = np.zeros((len(names), log.positions))
    kept = [part for part, keep in zip(by_query, np.atleast_1d(used), strict=True) if keep]
    for (pair, queries, weighted), share in zip(kept, fit.share, strict=True):
        residual = weighted - weighted.sum(axis=1, keepdims=True) * share[pair]
        for k, values in zip(pair, residual.T, strict=True):
            scores[:, k] += np.bincount(queries, weights=values, minlength=len(scores))
    clicked = [queries[weighted.any(axis=1)] for _, queries, weighted in kept]
    estimate = fit.estimate(scores, len(np.unique(np.concatenate(clicked))))
    if follows_clicks(log):
        return replace(estimate, identified=False, notes=(*estimate.notes, FEEDBACK))
    return estimate

"""Poisson with a free effect of each document: position effects from documents that moved."""

from typing import Any

from ultrbench.propensity.estimate import Estimate
from ultrbench.propensity.exposures import exposures
from ultrbench.propensity.position_effects import check_connected, fit_effects
from ultrbench.simulation.log import ClickLog


def estimate(log: ClickLog, **_: Any) -> Estimate:
    """Estimate propensities from every document that was seen at two positions or more.

    clicks[q, i, k] ~ Poisson(n[q, i, k] theta_k a_qi), maximised over theta and all a_qi:

        a_qi = sum_k c_qik / sum_k n_qik theta_k,    theta_k = sum_qi c_qik / sum_qi n_qik a_qi.

    No model of relevance is needed, nor scores of the logging policy: a document is compared with
    itself at another position (conditional Poisson, Hausman, Hall and Griliches 1984, on the
    intervention sets of Agarwal et al., WSDM 2019). The a_qi are conditioned away, so that their
    number does not bias theta, and theta is found by Newton's method; see
    `ultrbench.propensity.position_effects`.

    It assumes that an order does not depend on the clicks it is compared with. In a dynamic log
    the ranker of a round has learnt from the clicks of the rounds before: documents that were
    lucky at a low position move up and are not lucky again, so that theta of low positions comes
    out too large, by about .05 in its logarithm with 25 sessions a query and round, by about .015
    with 80 (synthetic data, four rounds). The standard errors do not know of it.

    Parameters
    ----------
    log : ClickLog
        Displayed lists with clicks, several orders a query.

    Returns
    -------
    Estimate
        Relative propensities, with standard errors that are robust to any dependence within a
        query.

    Raises
    ------
    UserError
        When no document was seen at two positions, or those that were do not connect all
        positions.
    """
    table = exposures(log)
    moved = table.select(table.moved)
    check_connected(
        "fixed_effects", moved.impressions, moved.clicks,
        "show the documents of a query in more orders, or show fewer positions (list_size)",
    )  # fmt: skip
    fit = fit_effects(moved.impressions, moved.clicks)
    residual = moved.clicks - moved.clicks.sum(axis=1, keepdims=True) * fit.share
    return fit.estimate(moved.by_query(residual))

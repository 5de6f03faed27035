"""Relative position effects where the order of a round depends on the clicks of earlier rounds.

The ranker that displays a round has learnt from the clicks before it: a document that was lucky at
a low position moves up, and is not lucky again. Conditioning on all clicks of a document, as in
`ultrbench.propensity.position_effects`, takes the difference for one of position. What still holds
is that orders do not depend on clicks yet to come: given all that happened before round r,

    E[clicks_ir] = E_ir a_i,    E_ir = sum_k impressions_irk theta_k,

so that with rates x_ir = clicks_ir / E_ir, for every later round s and any W, z that were known
before the clicks of round r,

    E[W_ir z_ir (x_ir - x_is)] = 0,

however much the order of round s owes to the clicks of round r (Chamberlain 1992, Journal of
Business and Economic Statistics 10, "Comment: Sequential moment restrictions in panel data";
Wooldridge 1997, Econometric Theory 13, multiplicative models without strict exogeneity).
"""

import numpy as np

from ultrbench.propensity.choice import refuse_runaway
from ultrbench.propensity.estimate import Estimate
from ultrbench.propensity.exposures import Exposures
from ultrbench.propensity.position_effects import robust_estimate

TOLERANCE = 1e-9
MAX_ITERATIONS = 100
LARGEST_STEP = 1.0


def _predictions(known: np.ndarray, use: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Predict values, ``[documents, columns]``, by least squares on the documents in use."""
    return known @ np.linalg.lstsq(known[use], values[use], rcond=None)[0]


def fit_sequential(rounds: list[Exposures], signals: np.ndarray, start: np.ndarray) -> Estimate:
    """Solve the sequential moment conditions for theta by Newton's method.

    With s_irk = impressions_irk theta_k / E_ir the share of position k in a document's exposure,

        0 = sum_ir (clicks_irk - s_irk sum_l clicks_irl)             (within a round)
          + sum_ir W_ir (s_irk - p_irk) (x_ir - sum_s w_irs x_is),   (against the rounds s > r)

    where p_irk predicts the mean of the later s_isk, w_irs is in proportion to F_irs, a prediction
    of E_is, with sum 1 over s, and W_ir = E_ir F_ir / (E_ir + F_ir), F_ir = sum_s F_irs. With
    perfect predictions that is the score of conditional Poisson by forward deviations (Arellano and
    Bover 1995), so they are what decides on precision; only what was known before round r enters
    them, which keeps the equations free of bias whether they are good or bad. They are linear in
    the shares of round r and in `signals`.

    Parameters
    ----------
    rounds : list of Exposures
        Of each round in turn, 2 or more, with the same documents.
    signals : numpy.ndarray
        float64 ``[documents, columns]``, what tells of later positions without having seen the
        clicks on the document's own query.
    start : numpy.ndarray
        float64 ``[positions]``, theta_k / theta_1 from which the iteration starts.

    Returns
    -------
    Estimate
        With standard errors that are robust to any dependence within a query.

    Raises
    ------
    UserError
        When theta runs off to infinity.

    Examples
    --------
    Two documents swap places: expected clicks of theta = (1, .5), a = (.4, .2), and 100 sessions.

    >>> query = np.zeros(2, np.int64)
    >>> before = Exposures(query, np.diag([100.0, 100.0]), np.diag([40.0, 10.0]))
    >>> after = Exposures(query, np.diag([100.0, 100.0])[::-1], np.diag([20.0, 20.0])[::-1])
    >>> fit_sequential([before, after], np.empty((2, 0)), np.ones(2)).relative.round(6).tolist()
    [1.0, 0.5]
    """
    clicks = [table.clicks.sum(axis=1) for table in rounds]
    logs = np.log(start)
    trace: list[list[float]] = []
    converged = False
    while True:
        theta = np.exp(logs)
        exposure = [table.impressions @ theta for table in rounds]
        seen = [e > 0 for e in exposure]
        safe = [np.where(ok, e, 1.0) for ok, e in zip(seen, exposure, strict=True)]
        share = [t.impressions * theta / e[:, None] for t, e in zip(rounds, safe, strict=True)]
        rate = [c / e for c, e in zip(clicks, safe, strict=True)]

        score = np.zeros(rounds[0].impressions.shape)
        slope = np.zeros((len(theta), len(theta)))
        for r, table in enumerate(rounds):
            score += table.clicks - clicks[r][:, None] * share[r]
            slope += np.diag(clicks[r] @ share[r]) - (clicks[r][:, None] * share[r]).T @ share[r]
            known = np.hstack([share[r], signals])
            ahead = np.zeros(len(known))
            rates = np.zeros(len(known))
            predicted, moved = np.zeros_like(score), np.zeros_like(score)
            for s in range(r + 1, len(rounds)):
                both = seen[r] & seen[s]
                if both.any():
                    log_exposure = _predictions(known, both, np.log(safe[s])[:, None])[:, 0]
                    weight = np.where(both, np.exp(log_exposure), 0.0)
                    ahead += weight
                    rates += weight * rate[s]
                    predicted += weight[:, None] * _predictions(known, both, share[s])
                    moved += (weight * rate[s])[:, None] * share[s]
            compared = seen[r] & (ahead > 0)
            total = np.where(compared, ahead, 1.0)
            weight = np.where(compared, safe[r] * total / (safe[r] + total), 0.0)
            instrument = weight[:, None] * (share[r] - predicted / total[:, None])
            score += instrument * (rate[r] - rates / total)[:, None]
            slope += instrument.T @ (share[r] * rate[r][:, None] - moved / total[:, None])

        inverse = np.linalg.pinv(slope[1:, 1:])
        if converged or len(trace) == MAX_ITERATIONS:
            break
        step = np.clip(inverse @ score.sum(axis=0)[1:], -LARGEST_STEP, LARGEST_STEP)
        logs[1:] += step
        trace.append(np.exp(logs).tolist())
        converged = bool(np.abs(step).max(initial=0.0) < TOLERANCE)
    total = np.sum([table.clicks for table in rounds], axis=0)
    why = "the documents that moved between rounds have too few clicks"
    refuse_runaway(logs[1:], total.sum(), why)
    influence = rounds[0].by_query(score)[:, 1:] @ inverse.T
    impressions = np.sum([table.impressions for table in rounds], axis=0)
    pooled = Exposures(rounds[0].queries, impressions, total)
    clicked = pooled.select(pooled.moved).clicked
    return robust_estimate(np.exp(logs), influence, clicked, trace=trace, converged=converged)

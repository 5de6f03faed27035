"""Cross-fitted choice model: clicks on position, policy score and out-of-fold relevance."""

from typing import Any

import numpy as np

from ultrbench.propensity.choice import fit_clicks, spline_basis
from ultrbench.propensity.confounder import PolicyScores, policy_scores
from ultrbench.propensity.ctr import refuse_silence
from ultrbench.propensity.estimate import Estimate, up_to_scale
from ultrbench.ranking.crossfit import CrossFit
from ultrbench.ranking.targets import ipw_weights
from ultrbench.simulation.log import ClickLog

KNOTS = 6

IMITATED = (
    "no policy scores were logged: theta rests on the assumption that the features explain all"
    " relevance by which the lists were ordered, and has no interval"
)
INSEPARABLE = (
    "the logged policy scores follow from the positions, so clicks cannot tell one from the other;"
    " an imitation of the order from the features takes their place"
)


def few_queries(queries: int, parameters: int) -> str:
    """Return the note on a log with too few queries.

    Examples
    --------
    >>> few_queries(24, 29)
    'clicks are on 24 queries, no more than the 29 parameters, which bend to each of them: theta has
    no interval'
    """
    return (
        f"clicks are on {queries} queries, no more than the {parameters} parameters, which bend to"
        " each of them: theta has no interval"
    )


def spline_controls(log: ClickLog, scores: PolicyScores, *others: np.ndarray) -> np.ndarray:
    """Return spline columns of the policy score and of other scores, a block for each policy.

    How relevance depends on a score differs between policies, and between lists that a policy
    ordered and lists in random order, so they share no coefficient.

    Parameters
    ----------
    log : ClickLog
        Displayed lists.
    scores : PolicyScores
        Scores that ordered them.
    *others : numpy.ndarray
        float64 ``[lists, positions]``.

    Returns
    -------
    numpy.ndarray
        float64 ``[lists, positions, columns]``, 0 where nothing is shown.
    """
    blocks = []
    for values in (scores.values, *others):
        for policy in np.unique(scores.policy):
            cells = log.shown & (scores.policy == policy)[:, None]
            columns = spline_basis(values[cells], KNOTS)
            block = np.zeros((*cells.shape, columns.shape[1]))
            block[cells] = columns
            blocks.append(block)
    return np.concatenate(blocks, axis=2)


def estimate(
    log: ClickLog,
    *,
    features: np.ndarray,
    seed: int,
    folds: int,
    trees: int,
    leaves: int,
    learning_rate: float,
    tolerance: float,
    max_iterations: int,
    relevance: bool = True,
    **_: Any,
) -> Estimate:
    """Estimate propensities by a choice model with cross-fitted relevance controls.

    Given that a list was clicked, where was it? With z the score by which the policy ordered the
    list, f a ranker's score and h, s natural cubic splines,

        log P(click at k | list, a click) = l_k + h(z_k) + s(f_k) - normaliser,   theta = exp(l),

    fitted as in `ultrbench.propensity.choice.fit_clicks`. f comes from IPW rankers of the *other*
    query folds, so that it carries no click of the list it explains: whatever its quality, it is a
    fixed function of the features, its spline learns the scale that it has out of fold, and a poor
    f costs precision, not consistency. In turns: theta from z alone, rankers weighted by 1/theta,
    theta from z and f, until theta settles. f is the mean over the turns' rankers, as one ranker
    jumps with its weights from tree to tree; as it matters only through its spline, two or three
    turns do.

    **Identification.** l is identified where E[gamma | list] = a_list exp(h(z) + s(f)) with every
    signal that drove the order among the controls. Logged scores z give that: given its scores,
    nothing else determined the order. In lists in random order nothing did, and they need no z.
    Where scores are not logged, or follow from the positions (ranks, say), an imitation of the
    order takes their place; what the policy knew and the features do not then counts as position.
    The estimate says `identified` false and has no interval.

    **Intervals.** The standard error of log(theta_k/theta_1) is the cluster-robust sandwich of the
    last fit, by query. With ``relevance`` false (z alone) that is exact for large samples; with f
    it takes f as given and leaves out what the rankers' own noise adds.

    **Precision.** What remains is how much documents of equal z and f differ in relevance, so it is
    the number of queries that counts. Mean error of log theta over 16 synthetic worlds with 700
    queries and 300,000 sessions: .063 (weak policy) and .051 (strong); f learned from true
    relevance, in ten folds, took 3 to 11 % off their standard errors.

    Parameters
    ----------
    log : ClickLog
        Displayed lists with clicks, of one round or several, ordered or in random order.
    features : numpy.ndarray
        float32 ``[documents, features]`` of the training split.
    seed : int
        Replicate seed.
    folds, trees, leaves, learning_rate
        The rankers, as in `ultrbench.ranking.crossfit.CrossFit`.
    tolerance : float
        Settled when no log(theta_k / theta_1) moves by more than this share of its standard error;
        later turns then move it by less, as each adds one ranker to a mean.
    max_iterations : int
        Fits of the rankers after which it ends with ``converged`` false.
    relevance : bool
        False leaves f out: one convex fit, no rankers.

    Returns
    -------
    Estimate
        Relative propensities; the trace begins with the fit on z alone.

    Raises
    ------
    UserError
        When a position has no click in the whole log.
    """
    refuse_silence(log, log.clicks.sum(axis=0))
    size: dict[str, Any] = {"trees": trees, "leaves": leaves, "learning_rate": learning_rate}
    scores = policy_scores(log, features, folds=folds, seed=seed, **size)
    fit = fit_clicks(log, spline_controls(log, scores))
    notes = []
    if not fit.separable:
        notes.append(INSEPARABLE)
        scores = policy_scores(log, features, targets="positions", folds=folds, seed=seed, **size)
        fit = fit_clicks(log, spline_controls(log, scores))
    if not scores.logged:
        notes.append(IMITATED)
    logs = [fit.position]
    converged = not relevance
    rankers = CrossFit(log, features, folds=folds, seed=seed, **size) if relevance else None
    total = np.zeros(log.documents.shape)
    while rankers is not None and not converged and len(logs) <= max_iterations:
        total += rankers.by_cell(rankers.scores(ipw_weights(log, np.exp(fit.position)).weights))
        fit = fit_clicks(log, spline_controls(log, scores, total / len(logs)))
        logs.append(fit.position)
        move = np.abs(logs[-1] - logs[-2])
        converged = bool((move <= tolerance * fit.position_error).all())
    if fit.queries <= fit.parameters:
        notes.append(few_queries(fit.queries, fit.parameters))
    return up_to_scale(
        np.exp(fit.position),
        None if notes else fit.position_error,
        trace=[np.exp(position).tolist() for position in logs],
        converged=converged,
        identified=not notes,
        notes=tuple(notes),
    )

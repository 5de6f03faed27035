"""Unconfounded propensity estimation: a logging-policy-aware model with backdoor adjustment."""

from typing import Any

import numpy as np

from ultrbench.propensity.choice import fit_choice
from ultrbench.propensity.confounder import policy_scores
from ultrbench.propensity.ctr import refuse_silence
from ultrbench.propensity.dla import RATIO_LIMIT
from ultrbench.propensity.estimate import Estimate, up_to_scale
from ultrbench.propensity.fixed_point import iterate
from ultrbench.ranking.crossfit import CrossFit
from ultrbench.ranking.objectives import list_softmax
from ultrbench.ranking.targets import ipw_weights
from ultrbench.seeding import stream
from ultrbench.simulation.log import ClickLog

PERMUTATIONS = 16

IMITATED = (
    "no policy scores were logged: the confounder encoder imitates the order of the lists from the"
    " features, and what the policy knew and the features do not counts as position"
)


def displayed_examination(
    logits: np.ndarray, confounder: np.ndarray, shown: np.ndarray
) -> np.ndarray:
    """Return softmax over positions of g(x_k, k) = l_k + h(x_k), float64 ``[lists, positions]``."""
    g = np.where(shown, logits + confounder, -np.inf)
    p = np.exp(g - g.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)


def backdoor_adjusted(
    logits: np.ndarray,
    confounder: np.ndarray,
    shown: np.ndarray,
    permutations: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """Return P(E | do(k)) / P(E | do(1)), by putting random documents at every position.

    P(E | do(k)) = mean over lists and random permutations pi of softmax over positions of
    g(x_pi(k), k). Luo et al. (SIGIR 2024), backdoor adjustment of the logging policy. Averaging a
    softmax flattens: the ratio is nearer to 1 than exp(l_k - l_1) wherever h varies in a list.

    Parameters
    ----------
    logits : numpy.ndarray
        float64 ``[positions]``, l_k.
    confounder : numpy.ndarray
        float64 ``[lists, positions]``, h(x) of the displayed documents.
    shown : numpy.ndarray
        bool ``[lists, positions]``; a position's ratio is taken over the lists that reach it.
    permutations : int
        Random permutations of each list; 0 keeps the logged order (no adjustment).
    rng : numpy.random.Generator
        Source of randomness.

    Examples
    --------
    Without a confounder there is nothing to adjust:

    >>> l, h = np.log([1.0, 0.5]), np.zeros((3, 2))
    >>> backdoor_adjusted(l, h, h == 0, 16, np.random.default_rng(0)).tolist()
    [1.0, 0.5]
    """
    if permutations == 0:
        p = displayed_examination(logits, confounder, shown)
    else:
        p = np.zeros(shown.shape)
        for _ in range(permutations):
            # Padding keeps its place behind the documents.
            keys = np.where(shown, rng.random(shown.shape), np.inf)
            order = np.argsort(keys, axis=1, kind="stable")
            permuted = np.take_along_axis(confounder, order, axis=1)
            p += displayed_examination(logits, permuted, shown)
    return p.sum(axis=0) / (p[:, :1] * shown).sum(axis=0)


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
    scale: str = "policy",
    backdoor: str = "permutations",
    relevance_weights: bool = True,
    targets: str = "scores",
    **_: Any,
) -> Estimate:
    """Estimate propensities by UPE (Luo et al. 2023, arXiv 2305.09918; SIGIR 2024).

    Step 1, confounder encoder: h(x) reproduces the logging policy's softmax over the list.
    Step 2, with h frozen: position effects l_k of the examination logits g(x, k) = l_k + h(x), by

        minimise - sum over clicks c_k (r_1/r_k) log softmax(g)_k,   r relevance, as in DLA;

    then P(E | do(k)) as in `backdoor_adjusted`. A ranker weights clicks by P(E|do(1))/P(E|do(k)),
    its relevance enters step 2, in turns until the propensities settle.

    Adapted for boosted trees and full logs: relevance is out of fold, as in
    `ultrbench.propensity.dla`; h is the logged policy score itself, the softmax of which step 1
    has as its target, so that nothing needs training, and an out-of-fold LightGBM imitation of the
    order in rounds that logged no score (`ultrbench.propensity.confounder`); step 2 is convex, so
    it is solved, by Newton's method, where the paper takes gradient steps. h stays at the policy's
    own scale, whatever the scores' unit: where that over-corrects without bound, it is a finding
    about the method.

    Parameters
    ----------
    log : ClickLog
        Displayed lists with clicks.
    features : numpy.ndarray
        float32 ``[documents, features]`` of the training split.
    seed : int
        Replicate seed.
    folds, trees, leaves, learning_rate, tolerance, max_iterations
        As in `ultrbench.propensity.dla.estimate`.
    scale : {"policy", "learned"}
        ``learned`` gives the standardised score a coefficient, fitted with l in step 2.
    backdoor : {"permutations", "none", "additive"}
        ``none`` averages over the logged lists alone, ``additive`` takes exp(l_k - l_1), which is
        what the adjustment comes to where examination is exp(l_k + h(x)).
    relevance_weights : bool
        False sets r_1/r_k to 1: no ranker, no turns.
    targets : {"scores", "positions"}
        What the encoder reproduces: the logged scores, or (ablation) the positions, from features.

    Returns
    -------
    Estimate
        Relative propensities with their trace. No relation to the truth is promised: ``identified``
        is False when the encoder imitates.

    Raises
    ------
    UserError
        When a position has no click in the whole log.
    """
    refuse_silence(log, log.clicks.sum(axis=0))
    size: dict[str, Any] = {"trees": trees, "leaves": leaves, "learning_rate": learning_rate}
    scores = policy_scores(log, features, targets=targets, folds=folds, seed=seed, **size)
    clicked, shown = log.clicks.astype(np.float64), log.shown
    if scale == "learned":
        controls, offset = scores.standardised()[:, :, None], np.zeros(shown.shape)
    else:
        controls, offset = np.empty((*shown.shape, 0)), scores.values

    def propensity(weights: np.ndarray) -> np.ndarray:
        fit = fit_choice(clicked * weights, shown, controls, log.queries, offset=offset)
        if backdoor == "additive":
            return np.exp(fit.position)
        h = offset + controls @ fit.control
        permutations = PERMUTATIONS if backdoor == "permutations" else 0
        rng = stream(seed, "backdoor")
        return backdoor_adjusted(fit.position, h, shown, permutations, rng)

    notes = () if scores.logged else (IMITATED,)
    outcome: dict[str, Any] = {"identified": scores.logged, "notes": notes}
    if not relevance_weights:
        return up_to_scale(propensity(np.ones(shown.shape)), **outcome)
    rankers = CrossFit(log, features, folds=folds, seed=seed, **size)

    def update(relative: np.ndarray) -> np.ndarray:
        fitted = rankers.scores(ipw_weights(log, relative).weights)
        r = rankers.by_cell(list_softmax(fitted, rankers.query_ptr))
        return propensity(np.minimum(r[:, :1] / r, RATIO_LIMIT))

    settled = iterate(update, log.positions, tolerance=tolerance, max_iterations=max_iterations)
    return up_to_scale(
        settled.relative, trace=settled.trace, converged=settled.converged, **outcome
    )


def estimate_scaled(log: ClickLog, *, features: np.ndarray, **parameters: Any) -> Estimate:
    """Estimate propensities as `estimate` does, with the scale of the confounder learned."""
    return estimate(log, features=features, **parameters | {"scale": "learned"})

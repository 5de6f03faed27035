"""Affine correction: clicks with trust bias, less what position alone brings."""

import numpy as np

from ultrbench.errors import UserError
from ultrbench.ranking.targets import TrainingLists, sum_by_document
from ultrbench.simulation.log import ClickLog


def affine_weights(log: ClickLog, alpha: np.ndarray, beta: np.ndarray) -> TrainingLists:
    """Affine-corrected clicks: w_i = sum_k (c_ik - beta_k n_ik) / alpha_k.

    Under trust bias (Agarwal et al., WWW 2019) users click an examined document that seems
    relevant with probability eps+_k if it is and eps-_k if it is not, so that
    P(click at k) = theta_k (eps+_k gamma + eps-_k (1 - gamma)) = alpha_k gamma + beta_k with
    alpha_k = theta_k (eps+_k - eps-_k) and beta_k = theta_k eps-_k. Vardasbi et al. (CIKM 2020): no
    weight of clicks alone is unbiased then; (c - beta_k) / alpha_k is, in every session, clicked
    or not, hence the impressions n_ik.

    Weights can be negative. For boosted trees they are summed over sessions, and over lists, and
    the objectives take them as they are (`ultrbench.ranking.objectives`); none is clipped.

    Parameters
    ----------
    log : ClickLog
        Displayed lists with clicks; sessions without a click must have been kept.
    alpha, beta : numpy.ndarray
        float64 ``[positions]``; alpha positive. (a alpha, beta + b alpha) ranks alike for every
        a > 0 and b.

    Returns
    -------
    TrainingLists
        With weights of any sign.

    Raises
    ------
    UserError
        When an alpha is not positive: clicks there say nothing of relevance.
    """
    alpha, beta = alpha[: log.positions], beta[: log.positions]
    if not (alpha > 0).all():
        first = np.argmin(alpha > 0)
        raise UserError(
            f"weights affine: alpha of position {first + 1} is {alpha[first]:.4g}, and a"
            " correction needs clicks that depend on relevance at every position; show fewer"
            " positions (list_size)"
        )
    return sum_by_document(log, (log.clicks - beta * log.sessions[:, None]) / alpha)

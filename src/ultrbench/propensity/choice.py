"""Choice model of clicks on position and smooth controls, with list effects conditioned out.

    log P(click at k | list, a click) = l_k + sum_j b_j x_jk - log sum_m exp(l_m + sum_j b_j x_jm)

is a conditional logit (McFadden 1974) in which every click of a list is one choice among its
shown cells. It is used as a quasi-likelihood, so clicks need be neither single nor independent:
under the position-based model E[c_k | list] = n theta_k gamma_k, and where E[gamma_k | list] =
a_list exp(b x_k), summing over the clicks C of a list gives E[c_k] = E[C] softmax(l + b x)_k at
l = log theta. The score, the sum over lists of c_k - C softmax(l + b x)_k, has mean zero there, and
the likelihood is concave: l is consistent, for any number of clicks a session, and so is the
sandwich below, whose units are queries (the score of conditional Poisson: Wooldridge 1999).
"""

from dataclasses import dataclass

import numpy as np

from ultrbench.errors import UserError
from ultrbench.simulation.log import ClickLog

MIN_INFORMATION = 1e-4
DECREMENT = 1e-13
MAX_NEWTON = 100
SMALLEST_STEP = 1e-6
BLOCK = 10_000
LARGEST = 10.0  # beside log(clicks), to which a log without controls leads at most
REWEIGHTINGS = 2


@dataclass(frozen=True)
class ChoiceFit:
    """Fitted choice model.

    Attributes
    ----------
    position : numpy.ndarray
        float64 ``[positions]``, l_k - l_1.
    position_error : numpy.ndarray
        float64 ``[positions]``, standard errors of `position`, robust to clustering.
    control : numpy.ndarray
        float64 ``[controls]``, coefficients.
    information : float
        Smallest share of the information on positions that the controls leave; 0 where positions
        and controls cannot be told apart.
    queries : int
        Queries with clicks.
    """

    position: np.ndarray
    position_error: np.ndarray
    control: np.ndarray
    information: float
    queries: int

    @property
    def parameters(self) -> int:
        """Number of fitted numbers: with no more clicked queries, the fit bends to each of them."""
        return len(self.position) - 1 + len(self.control)

    @property
    def separable(self) -> bool:
        """Whether positions and controls can be told apart on these lists."""
        return self.information > MIN_INFORMATION


def spline_basis(values: np.ndarray, knots: int) -> np.ndarray:
    """Return natural cubic spline columns of standardised values, linear beyond the outer knots.

    Knots lie at equally spaced quantiles from 5 to 95 %; equal quantiles are merged, and fewer
    than three leave the linear column alone (Harrell 2015, section 2.4.5).

    Parameters
    ----------
    values : numpy.ndarray
        float64 ``[cells]``.
    knots : int
        Number of knots, 3 or more; the columns are one fewer.

    Returns
    -------
    numpy.ndarray
        float64 ``[cells, columns]``, each of mean 0 and variance 1; no column for a constant.

    Examples
    --------
    >>> spline_basis(np.arange(50.0), 4).shape, spline_basis(np.ones(50), 4).shape
    ((50, 3), (50, 0))
    """
    values = values - values.mean() if len(values) else values
    spread = values.std() if len(values) else 0.0
    if spread <= 1e-12:
        return np.empty((len(values), 0))
    x = values / spread
    t = np.unique(np.quantile(x, np.linspace(0.05, 0.95, knots)))
    columns = [x]
    if len(t) > 2:
        cube = np.maximum(x[:, None] - t, 0) ** 3
        last, before = t[-1], t[-2]
        tail = (last - t[:-2]) / (last - before)
        bent = cube[:, :-2] - cube[:, [-2]] * tail + cube[:, [-1]] * (tail - 1)
        columns.extend(bent.T)
    # Columns of one basis are nearly collinear: orthogonal ones keep Newton's steps exact.
    orthogonal, _ = np.linalg.qr(np.column_stack([np.ones_like(x), *columns]))
    return orthogonal[:, 1:] * np.sqrt(len(x))


def refuse_runaway(logs: np.ndarray, clicks: float, why: str) -> None:
    """Stop when the effect of a position has run off to infinity, where every slope is flat.

    Parameters
    ----------
    logs : numpy.ndarray
        float64 ``[positions - 1]``, log(theta_k / theta_1), k >= 2.
    clicks : float
        Clicks that it comes from.
    why : str
        What the log lacks.

    Raises
    ------
    UserError
        Naming the position.

    Examples
    --------
    >>> refuse_runaway(np.array([-10.0]), 1e5, "too few clicks")
    """
    for k in np.flatnonzero(np.abs(logs) > LARGEST + np.log1p(clicks))[:1]:
        raise UserError(
            f"the clicks set no bound to the propensity of position {k + 2}, which comes out as"
            f" {np.exp(logs[k]):.1g} of that of position 1: {why}; log clicks on more queries, or"
            " show fewer positions (list_size)"
        )


def fit_choice(
    targets: np.ndarray,
    shown: np.ndarray,
    controls: np.ndarray,
    clusters: np.ndarray,
    *,
    offset: np.ndarray | float = 0.0,
    ridge: float = 1e-6,
    start: ChoiceFit | None = None,
) -> ChoiceFit:
    """Fit position effects and control coefficients by Newton's method.

    Parameters
    ----------
    targets : numpy.ndarray
        float64 ``[lists, positions]``, clicks (or weighted clicks) by cell; 0 where not shown.
    shown : numpy.ndarray
        bool ``[lists, positions]``.
    controls : numpy.ndarray
        float64 ``[lists, positions, controls]``, of about unit variance.
    clusters : numpy.ndarray
        int64 ``[lists]``, independent units for the standard errors (queries).
    offset : numpy.ndarray, optional
        float64 ``[lists, positions]``, a term with coefficient 1.
    ridge : float
        Penalty ridge/2 |b|^2 on the coefficients of the controls, beside the mean loss of a click.
    start : ChoiceFit, optional
        A fit with the same controls, nearby: it spares steps, and the maximum is the same.

    Returns
    -------
    ChoiceFit

    Raises
    ------
    UserError
        When the effect of a position runs off to infinity: it has no target, or none on lists that
        show another, or the controls tell for certain which cells have one.

    Examples
    --------
    Without controls theta is what balances clicks: here each list has 3 clicks at the first
    position for 1 at the second.

    >>> clicks = np.array([[3.0, 1.0], [6.0, 2.0]])
    >>> none = np.empty((2, 2, 0))
    >>> fit_choice(clicks, clicks > 0, none, np.arange(2)).position.round(6).tolist()
    [0.0, -1.098612]
    """
    clicked = targets.sum(axis=1) > 0
    targets, shown, x = targets[clicked], shown[clicked], controls[clicked]
    fixed = np.broadcast_to(offset, clicked.shape + targets.shape[1:])[clicked]
    total = targets.sum()
    totals = targets.sum(axis=1)
    free, columns = targets.shape[1] - 1, x.shape[2]
    penalty = np.concatenate([np.zeros(free), np.full(columns, ridge)])

    def utilities(beta: np.ndarray) -> np.ndarray:
        eta = fixed + np.concatenate([[0.0], beta[:free]]) + x @ beta[free:]
        return np.where(shown, eta, -np.inf)

    def loss(beta: np.ndarray) -> float:
        eta = utilities(beta)
        top = eta.max(axis=1)
        log_sum = top + np.log(np.exp(eta - top[:, None]).sum(axis=1))
        log_p = np.where(shown, eta - log_sum[:, None], 0.0)
        return float(-(targets * log_p).sum() / total + (penalty * beta**2).sum() / 2)

    def derivatives(beta: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Score of every list, gradient and unpenalised hessian of the mean loss."""
        eta = utilities(beta)
        p = np.exp(eta - eta.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        residual = (targets - totals[:, None] * p) / total
        weight = totals[:, None] * p / total
        score = np.empty((len(p), len(beta)))
        score[:, :free] = residual[:, 1:]
        hessian = np.zeros((len(beta), len(beta)))
        hessian[:free, :free] = np.diag(weight[:, 1:].sum(axis=0)) - weight[:, 1:].T @ p[:, 1:]
        for start in range(0, len(p), BLOCK):
            part = slice(start, start + BLOCK)
            score[part, free:] = np.einsum("lk,lkj->lj", residual[part], x[part])
            centred = x[part] - np.einsum("lk,lkj->lj", p[part], x[part])[:, None, :]
            weighted = weight[part][:, :, None] * centred
            hessian[free:, :free] += weighted[:, 1:].sum(axis=0).T
            hessian[free:, free:] += np.tensordot(weighted, centred, axes=([0, 1], [0, 1]))
        hessian[:free, free:] = hessian[free:, :free].T
        return score, penalty * beta - score.sum(axis=0), hessian

    beta = np.zeros(free + columns)
    if start is not None:
        beta = np.concatenate([start.position[1:], start.control])
    value = loss(beta)
    for _ in range(MAX_NEWTON):
        _, gradient, hessian = derivatives(beta)
        step = np.linalg.lstsq(hessian + np.diag(penalty), gradient, rcond=1e-12)[0]
        if gradient @ step < DECREMENT:
            # The loss can no longer tell steps apart; the last one squares the error.
            beta = beta - step
            break
        size = 1.0
        while (new := loss(beta - size * step)) > value and size > SMALLEST_STEP:
            size /= 2
        beta, value = beta - size * step, new

    refuse_runaway(
        beta[:free],
        total,
        "too few lists show both and have clicks there that the policy scores do not foretell",
    )
    score, _, hessian = derivatives(beta)
    ids, cluster = np.unique(clusters[clicked], return_inverse=True)
    summed = np.zeros((len(ids), len(beta)))
    np.add.at(summed, cluster, score)
    inverse = np.linalg.pinv(hessian + np.diag(penalty), hermitian=True)
    # Residuals of fitted parameters are too small: the usual degrees-of-freedom correction.
    units = len(ids)
    inflation = units / max(units - len(beta), 1)
    variance = np.diag(inverse @ (summed.T @ summed) @ inverse) * inflation
    error = np.sqrt(np.maximum(variance[:free], 0.0))
    return ChoiceFit(
        np.concatenate([[0.0], beta[:free]]),
        np.concatenate([[0.0], error]),
        beta[free:],
        _information_left(hessian, free),
        units,
    )


def fit_clicks(log: ClickLog, controls: np.ndarray) -> ChoiceFit:
    """Fit the choice model to the clicks of a log, and again with weights that make it efficient.

    Documents with equal controls differ in relevance, so the clicks of a cell, with exposure
    e = n exp(l_k) and expectation mu, vary by mu + s_1 e mu + s_2 mu^2: s_1 is the spread of
    relevance that grows with its mean, s_2 with its square. The conditional logit weighs cells as
    if both were 0, which leaves nearly all the say to the first positions. Cell weights
    v = 1/(1 + s_1 e + s_2 mu) mend that: the choice among v c, with log v as offset, has E[v c]
    proportional to v exp(l + b x), so it is as consistent as before, and still concave, as long as
    v depends on positions, controls and the number of sessions alone, never on the list's own
    clicks. They come from the fit before, with mu at the mean click rate of all lists and s_1, s_2
    by least squares on the squared residuals.

    Parameters
    ----------
    log : ClickLog
        Displayed lists with clicks at every position.
    controls : numpy.ndarray
        float64 ``[lists, positions, controls]``.

    Returns
    -------
    ChoiceFit
        With standard errors robust to clustering by query.
    """
    from scipy.optimize import nnls

    clicks, shown = log.clicks.astype(np.float64), log.shown
    totals = clicks.sum(axis=1, keepdims=True)
    clicked = shown & (totals > 0)
    fit = fit_choice(clicks, shown, controls, log.queries)
    for _ in range(REWEIGHTINGS):
        exposure = log.sessions[:, None] * np.where(shown, np.exp(fit.position), 0.0)
        expected = exposure * np.exp(controls @ fit.control)
        sums = expected.sum(axis=1, keepdims=True, where=shown)
        within = (totals * expected / np.where(sums > 0, sums, 1.0))[clicked]  # 0: no sessions
        excess = (clicks[clicked] - within) ** 2 / within - 1
        spread, _ = nnls(np.column_stack([exposure[clicked], within]), excess)
        mean = expected * (clicks.sum() / expected.sum())
        weights = 1 / (1 + spread[0] * exposure + spread[1] * mean)
        fit = fit_choice(
            clicks * weights, shown, controls, log.queries, offset=np.log(weights), start=fit
        )
    return fit


def _information_left(hessian: np.ndarray, free: int) -> float:
    from scipy.linalg import eigh

    alone, across, rest = hessian[:free, :free], hessian[:free, free:], hessian[free:, free:]
    if free == 0:
        return 1.0
    left = alone - across @ np.linalg.pinv(rest, hermitian=True) @ across.T
    try:
        return float(max(eigh(left, alone, eigvals_only=True)[0], 0.0))
    except np.linalg.LinAlgError:
        raise UserError(
            "the policy scores alone say for certain which document of a list is clicked, and leave"
            " the positions nothing to explain; take an estimator that learns their scale"
            " (upe_scaled, crossfit), or log scores that differ less"
        ) from None

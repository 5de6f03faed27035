"""What every estimator returns, its files, and the registry of estimators."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ultrbench.errors import UserError
from ultrbench.files import read_json, replacing, write_json
from ultrbench.own_code import find_function
from ultrbench.simulation.log import ClickLog

ESTIMATORS = {
    "naive": "ultrbench.propensity.naive:estimate",
    "oracle": "ultrbench.propensity.oracle:estimate",
    "ctr": "ultrbench.propensity.ctr:estimate",
    "randomization": "ultrbench.propensity.randomization:estimate",
    "dla": "ultrbench.propensity.dla:estimate",
    "rem": "ultrbench.propensity.rem:estimate",
    "harvest": "ultrbench.propensity.harvest:estimate",
    "fixed_effects": "ultrbench.propensity.fixed_effects:estimate",
    "upe": "ultrbench.propensity.upe:estimate",
    "upe_scaled": "ultrbench.propensity.upe:estimate_scaled",
    "crossfit": "ultrbench.propensity.crossfit:estimate",
    "paird": "ultrbench.propensity.paird:estimate",
    "vectorization": "ultrbench.propensity.vectorization:estimate",
    "lightgbm_position": "ultrbench.propensity.lightgbm_position:estimate",
    "trust": "ultrbench.propensity.trust:estimate",
    "last_clicks": "ultrbench.propensity.last_clicks:estimate",
}
MAX_NUMBER = 1e100  # weights beyond it, or below its inverse, would overflow in sums
ROUNDING = 1e-6


@dataclass(frozen=True)
class Estimate:
    """Examination propensities by position, and how they came about.

    Attributes
    ----------
    relative : numpy.ndarray
        float64 ``[positions]``, theta_k / theta_1; all an IPW ranker needs. NaN where examination
        is no function of position, or not one number.
    theta : numpy.ndarray
        float64 ``[positions]``, the absolute probability of examination where the estimator
        identifies it, else NaN.
    standard_error : numpy.ndarray
        float64 ``[positions]``, of log(relative), where the estimator has one, else NaN.
    trace : list of list of float
        `relative`, or what stands for it, after each iteration; empty for a closed form.
    converged : bool
        False when the iteration ended without settling: a result, not an error.
    identified : bool
        False when the log alone cannot tell position from relevance and the figures rest on an
        assumption that `notes` states.
    notes : tuple of str
        What a reader must know to use the estimate, in sentences.
    columns : dict of numpy.ndarray
        Further parameters by position, float64 ``[positions]``: what weights other than plain IPW
        need, or what the estimator has beside theta.
    model : str or None
        The ranker of a joint estimator, as LightGBM text.
    """

    relative: np.ndarray
    theta: np.ndarray
    standard_error: np.ndarray
    trace: list[list[float]] = field(default_factory=list)
    converged: bool = True
    identified: bool = True
    notes: tuple[str, ...] = ()
    columns: dict[str, np.ndarray] = field(default_factory=dict)
    model: str | None = None


AT_FACE_VALUE = "relevance must not depend on position, as in random order"
FROM_FEATURES = (
    "relevance must follow from the features: what the policy knew beyond them goes into theta"
)


def assuming(log: ClickLog, assumption: str) -> dict[str, Any]:
    """Return `identified` and `notes` of an estimate that takes an assumption to tell position.

    Where all lists are in random order relevance does not differ between positions, and it takes
    none.

    Examples
    --------
    >>> log = ClickLog(
    ...     np.array([[0]]), np.array([0]), np.zeros((1, 1)), np.zeros(1, np.uint8),
    ...     np.ones(1, bool), np.zeros(1, np.uint8),
    ...     np.array([0]), np.array([1], np.uint64), np.array([1]),
    ... )
    >>> assuming(log, "Relevance is alike.")
    {'identified': True, 'notes': ()}
    """
    identified = bool(log.randomized.all())
    return {"identified": identified, "notes": () if identified else (assumption,)}


def up_to_scale(
    relative: np.ndarray, standard_error: np.ndarray | None = None, **outcome: Any
) -> Estimate:
    """Return an estimate that knows propensities only relative to position 1.

    Parameters
    ----------
    relative : numpy.ndarray
        ``[positions]``, theta_k / theta_1.
    standard_error : numpy.ndarray, optional
        float64 ``[positions]``, of log(relative).
    **outcome
        Other attributes of `Estimate`.

    Returns
    -------
    Estimate
        Its theta is NaN.

    Examples
    --------
    >>> up_to_scale(np.array([1.0, 0.5])).theta.tolist()
    [nan, nan]
    """
    unknown = np.full(len(relative), np.nan)
    errors = unknown if standard_error is None else standard_error
    known = np.ma.filled(np.ma.asarray(relative, dtype=np.float64), np.nan)  # masked: not known
    return Estimate(known, unknown, errors, **outcome)


def find_estimator(kind: str) -> Callable[..., Estimate]:
    """Return the function of an estimator, importing its module.

    Every estimator is called as ``estimate(log, features=..., truth=..., columns=...,
    seed=..., **parameters)`` with a `ultrbench.simulation.log.ClickLog`, the features of the
    training split, the simulator's theta (None for a log of one's own) and its other parameters by
    position, and the replicate seed. Joint estimators take the size of the ranker besides:
    ``trees``, ``leaves``, ``learning_rate`` and ``min_data_in_leaf``.

    Parameters
    ----------
    kind : str
        Name in `ESTIMATORS`, or ``file.py:function`` in a file of one's own.

    Returns
    -------
    callable
        Returns an `Estimate`.

    Raises
    ------
    UserError
        When a file of one's own cannot be imported.

    Examples
    --------
    >>> find_estimator("ctr").__module__
    'ultrbench.propensity.ctr'
    """
    return find_function(ESTIMATORS, kind)


def refuse_wrong_estimate(estimate: object, kind: str, positions: int) -> None:
    """Stop when a function did not return an `Estimate` of every position.

    Raises
    ------
    UserError
        Naming the kind and what it returned.

    Examples
    --------
    >>> refuse_wrong_estimate(up_to_scale(np.array([1.0, 0.5])), "mine.py:estimate", 2)
    >>> refuse_wrong_estimate([1.0, 0.5], "mine.py:estimate", 2)
    Traceback (most recent call last):
        ...
    ultrbench.errors.UserError: mine.py:estimate returned a list; ...
    """
    if not isinstance(estimate, Estimate):
        raise UserError(
            f"{kind} returned a {type(estimate).__name__}; an Estimate is wanted:"
            " ultrbench.propensity.estimate.up_to_scale(relative) makes one of theta_k / theta_1"
        )
    lost = [name for name in Estimate.__dataclass_fields__ if not hasattr(estimate, name)]
    if lost:
        raise UserError(f"{kind} returned an Estimate without {', '.join(lost)}")
    trace, notes, columns = estimate.trace, estimate.notes, estimate.columns
    names = {"position", "relative", "theta", "standard_error"}
    wanted = {
        "converged": (isinstance(estimate.converged, bool), "True or False"),
        "identified": (isinstance(estimate.identified, bool), "True or False"),
        "notes": (
            _all_are(notes, str) and all(note.isprintable() for note in notes),
            "a tuple of sentences, each in one line",
        ),
        "trace": (
            _all_are(trace, list)
            and all(_all_are(step, float | int) for step in trace)
            and all(abs(number) < MAX_NUMBER for step in trace for number in step),
            "a list of lists of finite numbers (`tolist()` makes one of an array)",
        ),
        "columns": (
            isinstance(columns, dict)
            and _all_are(list(columns), str)
            and all(name.isidentifier() for name in columns)
            and not names & {*columns},
            f"a dict of arrays, under other names than {', '.join(sorted(names))}, of letters,",
        ),
    }
    for name, (fits, form) in wanted.items():
        if not fits:
            found = type(getattr(estimate, name)).__name__
            raise UserError(f"{kind} returned `{name}` as {found}; {form} is wanted")
    given = {name: getattr(estimate, name) for name in sorted(names - {"position"})}
    for name, values in (given | columns).items():
        array = np.asarray(values)
        sound = array.shape == (positions,) and array.dtype.kind in "fiu"
        if not sound or np.ma.is_masked(values):
            raise UserError(
                f"{kind} returned `{name}` of shape {list(array.shape)} and type {array.dtype}; one"
                f" number for each of the {positions} positions is wanted"
            )


def refuse_wrong_numbers(estimate: Estimate, kind: str) -> None:
    """Stop when an estimate of one's own has numbers that are no propensities.

    Raises
    ------
    UserError
        Naming the kind, the number and its position.

    Examples
    --------
    >>> refuse_wrong_numbers(up_to_scale(np.array([1.0, 0.5])), "mine.py:estimate")
    >>> refuse_wrong_numbers(up_to_scale(np.array([0.5, 0.4])), "mine.py:estimate")
    Traceback (most recent call last):
        ...
    ultrbench.errors.UserError: mine.py:estimate returned `relative` 0.5 at position 1; 1 is wanted,
    as it is theta_k / theta_1
    """
    names = ("relative", "theta", "standard_error")
    given = {name: np.asarray(getattr(estimate, name), dtype=np.float64) for name in names}
    relative, theta, error = given.values()
    if any(len(step) != len(relative) for step in estimate.trace):
        raise UserError(f"{kind} returned a `trace` whose steps are not {len(relative)} numbers")
    if not all(1 / MAX_NUMBER < number < MAX_NUMBER for step in estimate.trace for number in step):
        raise UserError(f"{kind} returned a `trace` with numbers that are not above 0")
    for name, values in estimate.columns.items():
        if np.isinf(values).any():
            raise UserError(f"{kind} returned an infinite number in the column `{name}`")
    usable = (relative > 1 / MAX_NUMBER) & (relative < MAX_NUMBER)
    for name, wrong, wanted in (
        ("relative", ~usable, "a number above 0 is wanted"),
        (
            "relative",
            (np.arange(len(relative)) == 0) & (abs(relative - 1) > ROUNDING),
            "1 is wanted, as it is theta_k / theta_1",
        ),
        (
            "theta",
            ~(np.isnan(theta) | ((theta > 0) & (theta <= 1 + ROUNDING))),
            "a probability above 0 is wanted, or NaN where it is not known",
        ),
        (
            "theta",
            abs(theta - theta[0] * relative) > ROUNDING,
            "it is not `relative` times the theta of position 1",
        ),
        (
            "standard_error",
            ~(np.isnan(error) | ((error >= 0) & (error < MAX_NUMBER))),
            "a number of at least 0 is wanted, or NaN",
        ),
    ):
        for k in np.flatnonzero(wrong)[:1]:
            raise UserError(
                f"{kind} returned `{name}` {given[name][k]:g} at position {k + 1}; {wanted}"
            )


def _all_are(values: object, kind: Any) -> bool:
    return isinstance(values, list | tuple) and all(isinstance(value, kind) for value in values)


def write_estimate(estimate: Estimate, table: str | Path, report: str | Path, **about: Any) -> None:
    """Write ``theta.csv`` (a row a position) and its report.

    Parameters
    ----------
    estimate : Estimate
        What to write.
    table : path-like
        ``.csv`` with the columns position, theta, relative, standard_error and those of
        the estimate; empty for NaN.
    report : path-like
        ``.json`` with `about`, converged and trace.
    **about
        The estimator and its parameters.

    Examples
    --------
    >>> import tempfile
    >>> table, report = (Path(tempfile.mkdtemp()) / name for name in ("theta.csv", "theta.json"))
    >>> write_estimate(up_to_scale(np.array([1.0, 0.5])), table, report, estimator="ctr")
    >>> read_propensity(table).tolist(), is_converged(report)
    ([1.0, 0.5], True)
    """
    import pandas as pd

    frame = pd.DataFrame(
        {
            "position": np.arange(1, len(estimate.relative) + 1),
            "theta": estimate.theta,
            "relative": estimate.relative,
            "standard_error": estimate.standard_error,
            **estimate.columns,
        }
    )
    with replacing(table) as half:
        frame.to_csv(half, index=False, lineterminator="\n")
    outcome = {
        "converged": estimate.converged,
        "identified": estimate.identified,
        "notes": list(estimate.notes),
        "trace": estimate.trace,
    }
    write_json(report, about | outcome)


def read_by_position(table: str | Path, column: str) -> np.ndarray:
    """Read a column of ``theta.csv``.

    Parameters
    ----------
    table : path-like
        File of `write_estimate`.
    column : str
        Name of the column.

    Returns
    -------
    numpy.ndarray
        float64 ``[positions]``, to the last digit; NaN where it is empty.

    Raises
    ------
    UserError
        When the estimator gave no such column.

    Examples
    --------
    >>> import tempfile
    >>> table, report = (Path(tempfile.mkdtemp()) / name for name in ("theta.csv", "theta.json"))
    >>> estimate = up_to_scale(np.array([1.0, 0.5]), columns={"beta": np.array([0.2, 0.0])})
    >>> write_estimate(estimate, table, report)
    >>> read_by_position(table, "beta").tolist()
    [0.2, 0.0]
    """
    import pandas as pd

    # As text first: Python parses every digit, pandas may be off by the last one.
    frame = pd.read_csv(table, dtype=str)
    if column not in frame:
        raise UserError(
            f"{table}: no column `{column}`, which the method's `weights` need; its estimator does"
            " not know it on this log: take another estimator or other weights"
        )
    return frame[column].to_numpy(dtype=np.float64)


def read_propensity(table: str | Path) -> np.ndarray:
    """Read the propensities of ``theta.csv`` relative to position 1.

    Parameters
    ----------
    table : path-like
        File of `write_estimate`, whose example reads it back.

    Returns
    -------
    numpy.ndarray
        float64 ``[positions]``, to the last digit.

    Raises
    ------
    UserError
        When a propensity has no usable inverse by which clicks could be weighted: 0, below, not a
        number, or beyond 1e-100 and 1e100, where sums of weights would overflow.
    """
    relative = read_by_position(table, "relative")
    wrong = np.flatnonzero(~((relative > 1 / MAX_NUMBER) & (relative < MAX_NUMBER)))
    if len(wrong):
        raise UserError(
            f"{table}: the propensity of position {wrong[0] + 1} is {relative[wrong[0]]}, and"
            " clicks cannot be weighted by its inverse; log more sessions, or show fewer positions"
            " (list_size)"
        )
    return relative


def is_converged(report: str | Path) -> bool:
    """Tell whether the estimate that belongs to a report file settled.

    Parameters
    ----------
    report : path-like
        File of `write_estimate`, whose example asks for it.

    Returns
    -------
    bool
        False where an iteration ended without settling.
    """
    return bool(read_json(report)["converged"])

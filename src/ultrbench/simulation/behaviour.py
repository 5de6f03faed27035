"""What every click model says about users, and the registry of click models."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from ultrbench.errors import UserError
from ultrbench.own_code import find_function
from ultrbench.simulation.truth import LIMITS, PARAMETERS

CLICK_MODELS = {
    "pbm": "ultrbench.simulation.click_models.pbm:behaviour",
    "ubm": "ultrbench.simulation.click_models.ubm:behaviour",
    "cascade": "ultrbench.simulation.click_models.dcm:cascade",
    "dcm": "ultrbench.simulation.click_models.dcm:behaviour",
    "trust": "ultrbench.simulation.click_models.trust:behaviour",
    "contextual": "ultrbench.simulation.click_models.contextual:behaviour",
    "additive": "ultrbench.simulation.click_models.additive:behaviour",
}


@dataclass(frozen=True)
class Behaviour:
    """Examination, clicks and satisfaction on some displayed lists.

    Users go from the top to the bottom. While they browse they examine a position with a
    probability that may depend on the list and on where they clicked last, click what they
    examined with the probability of its attraction, and go on after a click, or are satisfied and
    stop. Every click model of the registry is a case of this.

    Attributes
    ----------
    attraction : numpy.ndarray
        float64 ``[lists, positions]``, P(click | examined); 0 where nothing is shown.
    examination : numpy.ndarray
        float64, P(examined | still browsing, last click), of a shape that broadcasts to
        ``[lists, positions, positions + 1]``; the last axis is the position clicked last, 0 for
        none.
    continuation : numpy.ndarray
        float64, P(goes on | click), of a shape that broadcasts to ``[lists, positions]``.
    by_position : bool
        Whether examination is a function of position alone. Otherwise there is no true theta that
        an estimate could be compared with.
    parameters : dict of numpy.ndarray
        What else the truth says by position, float64 ``[positions]``: `alpha` and `beta` where
        P(click) = alpha_k gamma + beta_k, and `continuation`.

    Examples
    --------
    Two positions; who clicks the first is satisfied in half of the sessions.

    >>> users = Behaviour(np.array([[0.5, 0.4]]), continuation=np.array([[0.5]]))
    >>> users.examined().tolist()
    [[1.0, 0.75]]
    """

    attraction: np.ndarray
    examination: np.ndarray = field(default_factory=lambda: np.ones((1, 1, 1)))
    continuation: np.ndarray = field(default_factory=lambda: np.ones((1, 1)))
    by_position: bool = False
    parameters: dict[str, np.ndarray] = field(default_factory=dict)

    def broadcast(self) -> tuple[np.ndarray, np.ndarray]:
        """Return views of `examination` and `continuation` at full shape."""
        lists, positions = self.attraction.shape
        return (
            np.broadcast_to(self.examination, (lists, positions, positions + 1)),
            np.broadcast_to(self.continuation, (lists, positions)),
        )

    def unclicked(self) -> np.ndarray:
        """Return P(click at k | no click before k) by list and position."""
        examination, _ = self.broadcast()
        return examination[:, :, 0] * self.attraction

    def examined(self) -> np.ndarray:
        """Return P(examined) by list and position, without simulation.

        The probabilities of the position clicked last are carried from the top to the bottom.

        Returns
        -------
        numpy.ndarray
            float64 ``[lists, positions]``; times `attraction` it is the click rate.
        """
        examination, continuation = self.broadcast()
        lists, positions = self.attraction.shape
        browsing = np.zeros((lists, positions + 1))  # by position clicked last
        browsing[:, 0] = 1
        examined = np.empty((lists, positions))
        for k in range(positions):
            sees = browsing[:, : k + 1] * examination[:, k, : k + 1]
            examined[:, k] = sees.sum(axis=1)
            browsing[:, : k + 1] -= sees * self.attraction[:, k, None]
            browsing[:, k + 1] = examined[:, k] * self.attraction[:, k] * continuation[:, k]
        return examined


def find_click_model(kind: str) -> Callable[..., Behaviour]:
    """Return the function of a click model: of `CLICK_MODELS`, or ``file.py:function``.

    Every click model is called as ``behaviour(attraction, contexts=..., eta=..., examination=...,
    **parameters)`` with the attraction gamma(y) of the displayed documents, float64 ``[lists,
    positions]``, the kind of the sessions of each list, int ``[lists]``, the setting's keys
    ``eta`` and ``examination``, and the keys of the kind.

    Examples
    --------
    >>> find_click_model("cascade").__module__
    'ultrbench.simulation.click_models.dcm'
    """
    return find_function(CLICK_MODELS, kind)


def refuse_wrong_behaviour(users: object, kind: str, shape: tuple[int, ...]) -> None:
    """Stop when a function did not return a `Behaviour` on all displayed lists.

    Raises
    ------
    UserError
        Naming the kind and what it returned.

    Examples
    --------
    >>> refuse_wrong_behaviour(Behaviour(np.ones((3, 2))), "mine.py:behaviour", (3, 2))
    >>> refuse_wrong_behaviour(np.ones((3, 2)), "mine.py:behaviour", (3, 2))
    Traceback (most recent call last):
        ...
    ultrbench.errors.UserError: mine.py:behaviour returned a ndarray; ...
    """
    form = "a Behaviour (ultrbench.simulation.behaviour) is wanted"
    if not isinstance(users, Behaviour):
        raise UserError(f"{kind} returned a {type(users).__name__}; {form}")
    try:
        examination, continuation = users.broadcast()
    except (AttributeError, TypeError, ValueError):
        raise UserError(f"{kind} returned arrays whose shapes do not fit; {form}") from None
    parts = {"attraction": np.asarray(users.attraction), "examination": examination}
    for name, values in (parts | {"continuation": continuation}).items():
        masked = np.ma.is_masked(getattr(users, name))
        chances = values.dtype.kind in "fiub" and ((values >= 0) & (values <= 1)).all()
        if masked or not chances:
            raise UserError(f"{kind}: `{name}` has values that are no probabilities")
    if not isinstance(users.by_position, bool | np.bool_):
        raise UserError(
            f"{kind}: `by_position` is {users.by_position!r:.9}; True or False is wanted"
        )
    if users.by_position and (examination != examination[:1, :, :1]).any():
        raise UserError(
            f"{kind}: `by_position` says that examination is a function of position alone, and"
            " `examination` differs between lists or with clicks"
        )
    if users.by_position and (continuation != 1).any():
        raise UserError(
            f"{kind}: `by_position` says that examination is a function of position alone, and by"
            " `continuation` some users do not go on after a click"
        )
    if users.by_position and not (examination[:1, :, 0] > 0).all():
        raise UserError(
            f"{kind}: position {np.flatnonzero(examination[0, :, 0] <= 0)[0] + 1} is never examined"
            " (or its probability is too small for a number), so that it has no propensity; use a"
            " probability above 0, a smaller eta, or fewer positions (list_size)"
        )
    if not isinstance(users.parameters, dict) or not users.parameters.keys() <= {*PARAMETERS}:
        raise UserError(f"{kind}: `parameters` may have {', '.join(PARAMETERS)} and nothing else")
    for name, values in users.parameters.items():
        if np.shape(values) != shape[1:]:
            raise UserError(
                f"{kind}: parameter `{name}` has shape {list(np.shape(values))}; one number for"
                f" each of the {shape[1]} positions is wanted"
            )
        numbers = type(values) is np.ndarray and values.dtype.kind in "fiu"
        if not numbers or not np.isfinite(values).all():
            raise UserError(f"{kind}: parameter `{name}` is no array of finite numbers")
        least, most = LIMITS[name]
        if not ((values >= least) & (values <= most)).all():
            raise UserError(
                f"{kind}: parameter `{name}` has values that are no probabilities: {least} to"
                f" {most} is wanted"
            )
    if users.attraction.shape != shape:
        raise UserError(
            f"{kind} returned `attraction` of shape {list(users.attraction.shape)}; lists and"
            f" positions are {list(shape)}"
        )


def mean_examination(examined: np.ndarray, shown: np.ndarray, sessions: np.ndarray) -> np.ndarray:
    """Return the marginal probability of examination by position.

    Parameters
    ----------
    examined : numpy.ndarray
        float64 ``[lists, positions]``, of `Behaviour.examined`.
    shown : numpy.ndarray
        bool ``[lists, positions]``, where a document is shown.
    sessions : numpy.ndarray
        int64 ``[lists]``, sessions drawn, the weight of a list; at a position that no session
        reached all lists that show it weigh the same.

    Returns
    -------
    numpy.ndarray
        float64 ``[positions]``; NaN where nothing is shown.

    Examples
    --------
    >>> examined, shown = np.array([[1, 0.2], [1, 0.8]]), np.ones((2, 2), bool)
    >>> mean_examination(examined, shown, np.array([3, 1])).round(3).tolist()
    [1.0, 0.35]
    """
    weights = np.where(sessions @ shown > 0, sessions[:, None], 1.0) * shown
    sums = weights.sum(axis=0)
    theta = np.full(len(sums), np.nan)
    return np.divide((weights * examined).sum(axis=0), sums, out=theta, where=sums > 0)

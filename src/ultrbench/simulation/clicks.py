"""Click simulation: how grades and positions become click masks with counts."""

from collections.abc import Sequence

import numpy as np

from ultrbench.simulation.behaviour import Behaviour

JOACHIMS_EXAMINATION = (0.68, 0.61, 0.48, 0.34, 0.28, 0.20, 0.11, 0.10, 0.08, 0.06)


def by_position(values: Sequence[float], positions: int) -> np.ndarray:
    """Return values by position; positions past the end keep the last.

    Parameters
    ----------
    values : sequence of float
        At least one, from position 1 on.
    positions : int
        Number of displayed positions.

    Returns
    -------
    numpy.ndarray
        float64 ``[positions]``.

    Examples
    --------
    >>> by_position([0.9, 0.5], 3).tolist()
    [0.9, 0.5, 0.5]
    """
    index = np.minimum(np.arange(positions), len(values) - 1)
    return np.asarray(values, dtype=np.float64)[index]


def examination(
    positions: int, *, eta: float = 1.0, values: Sequence[float] = JOACHIMS_EXAMINATION
) -> np.ndarray:
    """Return the probability that each position is examined, theta_k to the power of eta.

    Parameters
    ----------
    positions : int
        Number of displayed positions; those past the end of `values` keep the last value.
    eta : float
        Severity of the position bias; 0 is no bias.
    values : sequence of float
        Examination probabilities of the first positions, by default those measured with eye
        tracking by Joachims et al. (SIGIR 2005).

    Returns
    -------
    numpy.ndarray
        float64 ``[positions]``.

    Examples
    --------
    >>> examination(2).tolist()
    [0.68, 0.61]
    """
    return by_position(values, positions) ** eta


def attraction(grades: np.ndarray, ymax: int, *, eps: float = 0.1) -> np.ndarray:
    """Return gamma(y) = P(click | examined, grade y) = eps + (1 - eps) (2^y - 1)/(2^ymax - 1).

    Parameters
    ----------
    grades : numpy.ndarray
        Integer grades, 0..ymax, any shape.
    ymax : int
        Top grade of the data set.
    eps : float
        Click noise: the probability of a click on an examined document of grade 0.

    Returns
    -------
    numpy.ndarray
        float64, of the shape of `grades`. Source: Ai et al. (SIGIR 2018), section 5.1.

    Examples
    --------
    >>> attraction(np.array([0, 4]), 4).tolist()
    [0.1, 1.0]
    """
    return eps + (1 - eps) * (2.0 ** np.asarray(grades) - 1) / (2.0**ymax - 1)


def query_traffic(queries: int, exponent: float, rng: np.random.Generator) -> np.ndarray:
    """Return the share of the sessions that each query gets.

    Parameters
    ----------
    queries : int
        Number of queries.
    exponent : float
        0 for uniform traffic, else the Zipf exponent: the r-th most popular query gets a share
        proportional to r to the power of -exponent.
    rng : numpy.random.Generator
        Draws which query is how popular.

    Returns
    -------
    numpy.ndarray
        float64 ``[queries]``, summing to 1.

    Examples
    --------
    >>> share = query_traffic(3, 1.0, np.random.default_rng(0))
    >>> sorted((share * 11).round(9).tolist())  # 1 : 1/2 : 1/3
    [2.0, 3.0, 6.0]
    """
    share = np.arange(1, queries + 1) ** -float(exponent)
    return rng.permutation(share / share.sum())


def first_click(probability: np.ndarray) -> np.ndarray:
    """Return P(click at k | no click before k, and one at k or later), by list and position.

    Parameters
    ----------
    probability : numpy.ndarray
        float64 ``[lists, positions]``, P(click at k | no click before k).

    Returns
    -------
    numpy.ndarray
        float64 ``[lists, positions]``; 0 where no click can follow.

    Examples
    --------
    >>> first_click(np.array([[0.5, 0.5]])).round(4).tolist()  # 0.5/0.75, and certainty
    [[0.6667, 1.0]]
    """
    with np.errstate(divide="ignore"):
        none = np.log1p(-probability)
    later = -np.expm1(np.cumsum(none[:, ::-1], axis=1)[:, ::-1])
    chance = np.divide(probability, later, out=np.zeros_like(later), where=later > 0)
    # Certain at the last position where a click can come: no session may slip through by rounding.
    last = np.pad(later[:, 1:], ((0, 0), (0, 1))) == 0
    return np.where(last, probability > 0, np.minimum(chance, 1))


Groups = tuple[np.ndarray, np.ndarray, np.ndarray]


def draw_masks(
    sessions: np.ndarray,
    behaviour: Behaviour,
    rng: np.random.Generator,
    *,
    first: np.ndarray | None = None,
) -> Groups:
    """Draw the click masks of some displayed lists, as counts.

    The sessions of a list are exchangeable, so a group of sessions with equal clicks so far is
    split by one binomial draw at the next position, and those who clicked by another into who
    goes on and who is satisfied: the cost grows with the number of distinct masks, not with the
    number of sessions, and the distribution is exactly that of drawing every session on its own.

    Parameters
    ----------
    sessions : numpy.ndarray
        int64 ``[lists]``, sessions of each list.
    behaviour : Behaviour
        What users do on these lists; at most 63 positions.
    rng : numpy.random.Generator
        Source of randomness.
    first : numpy.ndarray, optional
        float64 ``[lists, positions]``, P(click) of sessions without a click so far, where it is
        another one.

    Returns
    -------
    click_list, mask, count : numpy.ndarray
        int64, uint64 and int64 ``[groups]``, sorted by list, then mask; counts are positive.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> users = Behaviour(np.array([[1.0, 0.0]]))
    >>> [a.tolist() for a in draw_masks(np.array([5]), users, rng)]
    [[0], [1], [5]]
    """
    examination, continuation = behaviour.broadcast()
    everyone_goes_on = (behaviour.continuation == 1).all()
    # Where examination forgets the last click, one chance a list and position: a row a position.
    chances = behaviour.unclicked().T.copy() if examination.strides[2] == 0 else None
    lists = np.flatnonzero(sessions)
    mask = np.zeros(len(lists), dtype=np.uint64)
    count = np.asarray(sessions, dtype=np.int64)[lists]
    last = np.zeros(len(lists), dtype=np.int64)
    satisfied = []
    for k in range(behaviour.attraction.shape[1]):
        if chances is not None:
            chance = chances[k].take(lists)
        else:
            chance = examination[lists, k, last] * behaviour.attraction[lists, k]
        if first is not None:
            chance = np.where(mask == 0, first[lists, k], chance)
        clicked = rng.binomial(count, chance)
        count -= clicked
        skip, click = np.flatnonzero(count), np.flatnonzero(clicked)
        bit, going_on = np.uint64(1 << k), clicked.take(click)
        if not everyone_goes_on:
            going_on = rng.binomial(going_on, continuation[lists[click], k])
            stopping = clicked[click] - going_on
            stops = stopping > 0
            satisfied.append((lists[click[stops]], mask[click[stops]] | bit, stopping[stops]))
            click, going_on = click[going_on > 0], going_on[going_on > 0]
        groups = np.concatenate([skip, click])
        count = np.concatenate([count.take(skip), going_on])
        lists, mask = lists.take(groups), mask.take(groups)
        mask[len(skip) :] |= bit
        if chances is None:
            last = last.take(groups)
            last[len(skip) :] = k + 1
    parts = zip((lists, mask, count), *satisfied, strict=True)
    lists, mask, count = (np.concatenate(arrays) for arrays in parts)
    order = np.lexsort((mask, lists))
    lists, mask, count = lists.take(order), mask.take(order), count.take(order)
    # Satisfied and unsatisfied sessions can end with the same clicks.
    changes = (lists[1:] != lists[:-1]) | (mask[1:] != mask[:-1])
    starts = np.append(0, np.flatnonzero(changes) + 1)[: len(lists)]
    return lists[starts], mask[starts], np.add.reduceat(count, starts) if len(starts) else count


def simulate_sessions(
    sessions: np.ndarray,
    behaviour: Behaviour,
    rng: np.random.Generator,
    *,
    empty_sessions: str = "keep",
) -> Groups:
    """Draw click masks and treat the sessions without a click as configured.

    Parameters
    ----------
    sessions, behaviour, rng
        As in `draw_masks`.
    empty_sessions : {"keep", "drop", "resample"}
        ``drop`` leaves sessions without a click out; ``resample`` draws each of them again until
        it has one, which is to draw from the distribution given a click. Sessions of a list on
        which nobody can click are dropped then.

    Returns
    -------
    click_list, mask, count : numpy.ndarray
        As in `draw_masks`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> users = Behaviour(np.array([[0.5, 0.5]]))
    >>> simulate_sessions(np.array([9]), users, rng, empty_sessions="resample")[2].sum()
    np.int64(9)
    """
    if empty_sessions == "resample":
        # Until the first click users of every model go on to the next position.
        unclicked = behaviour.unclicked()
        possible = np.where((unclicked > 0).any(axis=1), sessions, 0)
        return draw_masks(possible, behaviour, rng, first=first_click(unclicked))
    lists, mask, count = draw_masks(sessions, behaviour, rng)
    kept = mask > 0 if empty_sessions == "drop" else np.ones(len(mask), dtype=bool)
    return lists[kept], mask[kept], count[kept]

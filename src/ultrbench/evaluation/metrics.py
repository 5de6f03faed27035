"""Ranking metrics on true grades, each with the user it assumes.

All share one signature, ``metric(scores, grades, mask=None, *, cutoff=None, mean=False, ...)``:

scores
    float ``[queries, documents]``; documents are ranked by descending score, ties in document
    order (a stable sort), whatever their grades.
grades
    ``[queries, documents]``, 0 or more; a document is relevant when its grade is above 0.
mask
    bool ``[queries, documents]``, true for a real document, false for padding; default all true.
cutoff
    ranks that count; default all. Lists shorter than the cutoff are as if filled with grade 0.
mean
    true returns the mean over queries, false (default) one float64 a query.
judged
    (nDCG, R, AP) the grades of all judged documents of each query ``[queries, judged]``, 0 pads;
    default those of the list itself, so that the ideal and the number of relevant documents are
    the list's and not the query's.

A query without relevant documents, and an empty list, has 0.0 in every metric. A NaN score, a
grade below 0 or above `ymax` is a `UserError` that names the query.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import numpy as np

from ultrbench.errors import UserError
from ultrbench.evaluation.interfaces import INTERFACES
from ultrbench.evaluation.lists import RankedLists, count, pad, padding_mask, ranked_chunks

__all__ = [
    "INTERFACES",
    "Metric",
    "average_precision",
    "compute_metrics",
    "dcg",
    "err",
    "headline_metric",
    "hit_rate",
    "ndcg",
    "pad",
    "padding_mask",
    "parse_metric",
    "precision",
    "rbp",
    "rbp_residual",
    "recall",
    "reciprocal_rank",
]


def ndcg(
    scores: np.ndarray,
    grades: np.ndarray,
    mask: np.ndarray | None = None,
    *,
    cutoff: int | None = None,
    mean: bool = False,
    gain: str = "exponential",
    judged: np.ndarray | None = None,
) -> np.ndarray | float:
    """Normalised discounted cumulative gain: DCG over the DCG of the ideal order.

    Assumed user: as for `dcg`; every query counts alike, however much relevance it has.

    Parameters
    ----------
    scores, grades, mask, cutoff, mean, judged
        See the module.
    gain : {"exponential", "linear"}
        2^grade - 1, or the grade itself.

    Returns
    -------
    numpy.ndarray or float
        In [0, 1], ``[queries]``; 0.0 for a query without relevant documents.

    References
    ----------
    Järvelin and Kekäläinen 2002; gain of Burges et al. 2005.

    Examples
    --------
    >>> ndcg(np.array([[3.0, 2.0, 1.0]]), np.array([[0, 2, 0]])).round(4).tolist()
    [0.6309]
    """
    metric = Metric("nDCG", cutoff, (("gain", gain),))
    return metric(scores, grades, mask, mean=mean, judged=judged)


def dcg(
    scores: np.ndarray,
    grades: np.ndarray,
    mask: np.ndarray | None = None,
    *,
    cutoff: int | None = None,
    mean: bool = False,
    gain: str = "exponential",
) -> np.ndarray | float:
    """Discounted cumulative gain: sum over ranks j of gain(grade_j) / log2(j + 1).

    Assumed user: looks at rank j with probability proportional to 1/log2(j + 1), whatever was
    found above it, and profits from every relevant document.

    Parameters
    ----------
    scores, grades, mask, cutoff, mean
        See the module.
    gain : {"exponential", "linear"}
        2^grade - 1, or the grade itself.

    Returns
    -------
    numpy.ndarray or float
        0 or more, ``[queries]``.

    References
    ----------
    Järvelin and Kekäläinen 2002; gain of Burges et al. 2005.

    Examples
    --------
    >>> dcg(np.array([[3.0, 2.0, 1.0]]), np.array([[1, 0, 2]])).tolist()  # 1 + 3 / log2(4)
    [2.5]
    """
    return Metric("DCG", cutoff, (("gain", gain),))(scores, grades, mask, mean=mean)


def err(
    scores: np.ndarray,
    grades: np.ndarray,
    mask: np.ndarray | None = None,
    *,
    ymax: int,
    cutoff: int | None = None,
    mean: bool = False,
) -> np.ndarray | float:
    """Expected reciprocal rank: sum over ranks r of (1/r) R_r prod_{s<r} (1 - R_s).

    Assumed user: reads from the top, is satisfied by a document of grade y with probability
    R(y) = (2^y - 1) / 2^ymax and then stops.

    Parameters
    ----------
    scores, grades, mask, cutoff, mean
        See the module.
    ymax : int
        The top grade of the data set (not of the list).

    Returns
    -------
    numpy.ndarray or float
        In [0, 1), ``[queries]``.

    References
    ----------
    Chapelle et al. 2009.

    Examples
    --------
    >>> err(np.array([[2.0, 1.0]]), np.array([[1, 2]]), ymax=2).tolist()  # 1/4 + 3/4 * 3/4 / 2
    [0.53125]
    """
    return Metric("ERR", cutoff)(scores, grades, mask, mean=mean, ymax=ymax)


def precision(
    scores: np.ndarray,
    grades: np.ndarray,
    mask: np.ndarray | None = None,
    *,
    cutoff: int | None = None,
    mean: bool = False,
) -> np.ndarray | float:
    """Precision: relevant documents in the first k ranks over k, even where the list is shorter.

    Assumed user: looks at the first k documents, each with the same attention, and stops there.

    Parameters
    ----------
    scores, grades, mask, cutoff, mean
        See the module; without a cutoff, k is the length of the list.

    Returns
    -------
    numpy.ndarray or float
        In [0, 1], ``[queries]``.

    Examples
    --------
    >>> precision(np.array([[3.0, 2.0, 1.0]]), np.array([[1, 0, 2]]), cutoff=2).tolist()
    [0.5]
    """
    return Metric("P", cutoff)(scores, grades, mask, mean=mean)


def recall(
    scores: np.ndarray,
    grades: np.ndarray,
    mask: np.ndarray | None = None,
    *,
    cutoff: int | None = None,
    mean: bool = False,
    judged: np.ndarray | None = None,
) -> np.ndarray | float:
    """Recall: relevant documents in the first k ranks over all relevant documents.

    Assumed user: wants every relevant document and looks at all of the first k.

    Parameters
    ----------
    scores, grades, mask, cutoff, mean, judged
        See the module.

    Returns
    -------
    numpy.ndarray or float
        In [0, 1], ``[queries]``; 0.0 for a query without relevant documents.

    Examples
    --------
    >>> recall(np.array([[3.0, 2.0, 1.0]]), np.array([[1, 0, 2]]), cutoff=1).tolist()
    [0.5]
    """
    return Metric("R", cutoff)(scores, grades, mask, mean=mean, judged=judged)


def average_precision(
    scores: np.ndarray,
    grades: np.ndarray,
    mask: np.ndarray | None = None,
    *,
    cutoff: int | None = None,
    mean: bool = False,
    judged: np.ndarray | None = None,
) -> np.ndarray | float:
    """Average precision: sum of P@j over the relevant ranks j, over all relevant documents.

    Assumed user: stops at a relevant document, any of them with the same probability, and judges
    the list by the precision up to there. The mean over queries is MAP.

    Parameters
    ----------
    scores, grades, mask, cutoff, mean, judged
        See the module.

    Returns
    -------
    numpy.ndarray or float
        In [0, 1], ``[queries]``; 0.0 for a query without relevant documents. The number of
        relevant documents divides, also where it exceeds the cutoff.

    References
    ----------
    Robertson 2008 for the user.

    Examples
    --------
    >>> average_precision(np.array([[3.0, 2.0, 1.0, 0.0]]), np.array([[1, 0, 0, 2]])).tolist()
    [0.75]
    """
    return Metric("AP", cutoff)(scores, grades, mask, mean=mean, judged=judged)


def reciprocal_rank(
    scores: np.ndarray,
    grades: np.ndarray,
    mask: np.ndarray | None = None,
    *,
    cutoff: int | None = None,
    mean: bool = False,
) -> np.ndarray | float:
    """Reciprocal rank: 1 over the rank of the first relevant document. Its mean is MRR.

    Assumed user: wants one relevant document, reads from the top and stops at the first.

    Parameters
    ----------
    scores, grades, mask, cutoff, mean
        See the module.

    Returns
    -------
    numpy.ndarray or float
        In [0, 1], ``[queries]``; 0.0 where no relevant document is in the first k ranks.

    Examples
    --------
    >>> reciprocal_rank(np.array([[3.0, 2.0, 1.0]]), np.array([[0, 1, 2]])).tolist()
    [0.5]
    """
    return Metric("RR", cutoff)(scores, grades, mask, mean=mean)


def rbp(
    scores: np.ndarray,
    grades: np.ndarray,
    mask: np.ndarray | None = None,
    *,
    p: float = 0.8,
    cutoff: int | None = None,
    mean: bool = False,
    gain: str = "binary",
    ymax: int | None = None,
) -> np.ndarray | float:
    """Rank-biased precision: (1 - p) sum over ranks j of rel_j p^(j - 1).

    Assumed user: reads from the top and goes on to the next document with probability p,
    whatever was found: the metric is the rate of relevant documents among those read.

    Parameters
    ----------
    scores, grades, mask, cutoff, mean
        See the module.
    p : float
        Persistence, in [0, 1).
    gain : {"binary", "linear", "exponential"}
        rel_j: 1 for a grade above 0; grade / ymax; (2^grade - 1) / (2^ymax - 1).
    ymax : int, optional
        The top grade, for the two graded gains.

    Returns
    -------
    numpy.ndarray or float
        In [0, 1], ``[queries]``, a lower bound of the value of an endless list; `rbp_residual`
        is what is missing to the upper bound.

    References
    ----------
    Moffat and Zobel 2008.

    Examples
    --------
    >>> rbp(np.array([[3.0, 2.0, 1.0]]), np.array([[1, 0, 2]]), p=0.5).tolist()  # .5 (1 + .25)
    [0.625]
    """
    metric = Metric("RBP", cutoff, (("p", p), ("gain", gain)))
    return metric(scores, grades, mask, mean=mean, ymax=ymax)


def rbp_residual(
    scores: np.ndarray,
    grades: np.ndarray,
    mask: np.ndarray | None = None,
    *,
    p: float = 0.8,
    cutoff: int | None = None,
    mean: bool = False,
) -> np.ndarray | float:
    """Residual of rank-biased precision: the weight p^n of all ranks after the n evaluated ones.

    Assumed user: that of `rbp`; n is the cutoff, or the length of a shorter list.

    Parameters
    ----------
    scores, grades, mask, cutoff, mean
        See the module.
    p : float
        Persistence, in [0, 1).

    Returns
    -------
    numpy.ndarray or float
        In [0, 1], ``[queries]``; 1 for an empty list, of which nothing is known.

    References
    ----------
    Moffat and Zobel 2008.

    Examples
    --------
    >>> rbp_residual(np.array([[3.0, 2.0, 1.0]]), np.array([[1, 0, 2]]), p=0.5).tolist()
    [0.125]
    """
    return Metric("RBPresidual", cutoff, (("p", p),))(scores, grades, mask, mean=mean)


def hit_rate(
    scores: np.ndarray,
    grades: np.ndarray,
    mask: np.ndarray | None = None,
    *,
    cutoff: int | None = None,
    mean: bool = False,
) -> np.ndarray | float:
    """Hit: 1 where a relevant document is in the first k ranks, else 0. Its mean is the hit rate.

    Assumed user: looks at all of the first k documents and is content with one.

    Parameters
    ----------
    scores, grades, mask, cutoff, mean
        See the module.

    Returns
    -------
    numpy.ndarray or float
        0.0 or 1.0, ``[queries]``.

    Examples
    --------
    >>> hit_rate(np.array([[3.0, 2.0], [3.0, 2.0]]), np.array([[0, 1], [0, 0]]), mean=True)
    0.5
    """
    return Metric("Hit", cutoff)(scores, grades, mask, mean=mean)


def _ratio(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    out = np.zeros(len(numerator))
    return np.divide(numerator, denominator, out=out, where=denominator > 0)


def _formula_dcg(lists: RankedLists, cutoff: int | None, gain: str) -> np.ndarray:
    return lists.at(lists.linear_dcg if gain == "linear" else lists.dcg, cutoff)


def _formula_ndcg(lists: RankedLists, cutoff: int | None, gain: str) -> np.ndarray:
    best = lists.linear_ideal_dcg if gain == "linear" else lists.ideal_dcg
    return _ratio(_formula_dcg(lists, cutoff, gain), lists.at(best, cutoff))


def _formula_err(lists: RankedLists, cutoff: int | None) -> np.ndarray:
    return lists.at(lists.err, cutoff)


def _formula_precision(lists: RankedLists, cutoff: int | None) -> np.ndarray:
    found = lists.at(lists.found, cutoff)
    return _ratio(found, lists.lengths) if cutoff is None else found / cutoff


def _formula_recall(lists: RankedLists, cutoff: int | None) -> np.ndarray:
    return _ratio(lists.at(lists.found, cutoff), lists.relevant)


def _formula_average_precision(lists: RankedLists, cutoff: int | None) -> np.ndarray:
    found, hits = lists.found[:cutoff], lists.hits[:cutoff]
    total = np.zeros(len(lists.lengths))
    for rank, (above, hit) in enumerate(zip(found, hits, strict=True), start=1):
        total += above * hit / rank
    return _ratio(total, lists.relevant)


def _formula_reciprocal_rank(lists: RankedLists, cutoff: int | None) -> np.ndarray:
    # Ranks before the first hit, among the first k; k of them are no hit at all.
    before = count(lists.found[:cutoff] == 0)
    return np.where(before < len(lists.found[:cutoff]), 1 / (before + 1), 0.0)


def _formula_hit(lists: RankedLists, cutoff: int | None) -> np.ndarray:
    return (lists.at(lists.found, cutoff) > 0).astype(np.float64)


def _formula_rbp(lists: RankedLists, cutoff: int | None, p: float, gain: str) -> np.ndarray:
    if gain == "binary":
        rel = lists.hits[:cutoff]
    elif gain == "linear":
        rel = lists.grades[:cutoff] / _needed(lists.ymax, "RBP with graded gain")
    else:
        rel = lists.gains[:cutoff] / (2.0 ** _needed(lists.ymax, "RBP with graded gain") - 1)
    total = np.zeros(len(lists.lengths))
    for rank, row in enumerate(rel):
        total += row * p**rank
    return (1 - p) * total


def _formula_rbp_residual(lists: RankedLists, cutoff: int | None, p: float) -> np.ndarray:
    depth = lists.lengths if cutoff is None else np.minimum(lists.lengths, cutoff)
    return (p ** np.arange(depth.max(initial=0) + 1.0))[depth]


def _needed(ymax: int | None, what: str) -> int:
    if ymax is None:
        raise UserError(f"{what} needs the top grade of the data set: pass ymax.")
    return ymax


def _persistence(text: str) -> float:
    value = float(text)
    if not 0 <= value < 1:
        raise ValueError
    return value


def _short(value: float) -> str:
    return f"{value:.12g}".removeprefix("0") or "0"


def _one_of(*allowed: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in allowed:
            raise ValueError
        return text

    return read


@dataclass(frozen=True)
class _Kind:
    """What a metric's name stands for; parameters have a reader and a default each."""

    formula: Callable[..., np.ndarray]
    user: str
    parameters: Mapping[str, tuple[Callable[[str], Any], Any]]


_GAIN = {"gain": (_one_of("exponential", "linear"), "exponential")}
_P = {"p": (_persistence, 0.8)}
_BROWSER = "looks at rank j in proportion to 1/log2(j + 1), whatever was found above"
_KINDS = {
    "nDCG": _Kind(_formula_ndcg, f"{_BROWSER}; every query counts alike", _GAIN),
    "DCG": _Kind(_formula_dcg, _BROWSER, _GAIN),
    "ERR": _Kind(
        _formula_err, "reads down and stops when satisfied, the likelier the higher the grade", {}
    ),
    "P": _Kind(_formula_precision, "looks at all of the first k alike and at nothing else", {}),
    "R": _Kind(_formula_recall, "looks at the first k and wants every relevant document", {}),
    "AP": _Kind(_formula_average_precision, "stops at a relevant document, any one alike", {}),
    "RR": _Kind(_formula_reciprocal_rank, "reads down and stops at the first relevant one", {}),
    "RBP": _Kind(
        _formula_rbp,
        "reads down and goes on to the next with probability p, whatever was found",
        _P | {"gain": (_one_of("binary", "linear", "exponential"), "binary")},
    ),
    "RBPresidual": _Kind(
        _formula_rbp_residual, "that of RBP: the part of the reading below the evaluated ranks", _P
    ),
    "Hit": _Kind(_formula_hit, "looks at all of the first k and is content with one", {}),
}
_ALIASES = {"MAP": "AP", "MRR": "RR"}


@dataclass(frozen=True)
class Metric:
    """A metric with its cutoff and parameters: a value with a canonical name, and callable.

    Attributes
    ----------
    kind : str
        nDCG, DCG, ERR, P, R, AP, RR, RBP, RBPresidual or Hit.
    cutoff : int or None
        Ranks that count; None for all.
    parameters : tuple of (name, value)
        As given; the constructor checks them and fills in the defaults.

    Examples
    --------
    >>> metric = Metric("RBP", 10, (("p", 0.8),))
    >>> metric.name
    'RBP(p=.8)@10'
    >>> metric == parse_metric("RBP(p=0.80)@10")
    True
    """

    kind: str
    cutoff: int | None = None
    parameters: tuple[tuple[str, Any], ...] = ()

    def __post_init__(self) -> None:
        kind = _ALIASES.get(self.kind, self.kind)
        if kind not in _KINDS:
            near = get_close_matches(kind.lower(), {k.lower(): k for k in _KINDS}, 1)
            meant = next((f"; is {k} meant?" for k in _KINDS if [k.lower()] == near), "")
            raise UserError(
                f"There is no metric {self.kind!r}; there are {', '.join(_KINDS)}{meant or '.'}"
            )
        if self.cutoff is not None and self.cutoff < 1:
            raise UserError(f"The cutoff of {kind} must be 1 or more, not {self.cutoff}.")
        given, values = dict(self.parameters), []
        for name, (read, default) in _KINDS[kind].parameters.items():
            text = str(given.pop(name, default))
            try:
                values.append((name, read(text)))
            except ValueError:
                raise UserError(f"{kind} cannot have {name}={text}.") from None
        if given:
            raise UserError(f"{kind} has no parameter {', '.join(given)}.")
        object.__setattr__(self, "kind", kind)
        object.__setattr__(self, "parameters", tuple(values))

    @property
    def name(self) -> str:
        """The canonical name, which config, tables and files share."""
        shown = [
            f"{name}={value}" if isinstance(value, str) else f"{name}={_short(value)}"
            for name, value in self.parameters
            if name == "p" or value != _KINDS[self.kind].parameters[name][1]
        ]
        inside = f"({','.join(shown)})" if shown else ""
        return f"{self.kind}{inside}" + (f"@{self.cutoff}" if self.cutoff else "")

    @property
    def user(self) -> str:
        """What the assumed user does, a phrase for captions: "assumed user: ..."."""
        return _KINDS[self.kind].user

    def of(self, lists: RankedLists) -> np.ndarray:
        """Return the value of each of the ranked lists, float64 ``[queries]``."""
        return _KINDS[self.kind].formula(lists, self.cutoff, **dict(self.parameters))

    def __call__(
        self,
        scores: np.ndarray,
        grades: np.ndarray,
        mask: np.ndarray | None = None,
        *,
        mean: bool = False,
        ymax: int | None = None,
        judged: np.ndarray | None = None,
    ) -> np.ndarray | float:
        """Return the metric of each query, or its mean; see the module for the arguments."""
        return _compute([self], scores, grades, mask, mean=mean, ymax=ymax, judged=judged)[0]


def parse_metric(name: str) -> Metric:
    """Return the metric of a name such as ``nDCG@10``, ``AP``, ``RBP(p=.8)@10``.

    Parameters
    ----------
    name : str
        Kind, parameters in brackets where there are any, ``@`` and the cutoff where there is one.
        ``MAP`` and ``MRR`` are read as ``AP`` and ``RR``.

    Returns
    -------
    Metric
        Its ``name`` is the canonical form of `name`.

    Raises
    ------
    UserError
        For an unknown kind or parameter, or a value out of range.

    Examples
    --------
    >>> parse_metric("nDCG(gain=linear)@5").name
    'nDCG(gain=linear)@5'
    >>> parse_metric("RBP@10").name
    'RBP(p=.8)@10'
    """
    match = re.fullmatch(r"(\w+)(?:\(([^()]*)\))?(?:@([1-9]\d*))?", name.strip(), re.ASCII)
    if not match:
        raise UserError(
            f"Metric name {name!r} is not understood; write it like nDCG@10 or RBP(p=.8)@10."
        )
    kind, inside, cutoff = match.groups()
    parts = [part.partition("=") for part in (inside or "").split(",") if part.strip()]
    parameters = tuple((key.strip(), value.strip()) for key, _, value in parts)
    return Metric(kind, int(cutoff) if cutoff else None, parameters)


def headline_metric(interface: str) -> Metric:
    """Return the metric whose assumed user is the one of an interface.

    Parameters
    ----------
    interface : str
        ``result_page`` (a page of ten that is skimmed), ``feed`` (scrolled until bored),
        ``navigation`` (read until satisfied), ``single_answer`` (the first right answer ends it),
        ``carousel`` (five at a glance, one will do), ``exhaustive`` (every relevant document).

    Returns
    -------
    Metric
        Its ``user`` is the phrase for the caption.

    Raises
    ------
    UserError
        For another interface.

    Examples
    --------
    >>> headline_metric("feed").name
    'RBP(p=.8)@10'
    >>> headline_metric("feed").user
    'reads down and goes on to the next with probability p, whatever was found'
    """
    if interface not in INTERFACES:
        raise UserError(f"There is no interface {interface!r}; there are {', '.join(INTERFACES)}.")
    return parse_metric(INTERFACES[interface])


def compute_metrics(
    names: Sequence[str],
    scores: np.ndarray,
    grades: np.ndarray,
    mask: np.ndarray | None = None,
    ymax: int | None = None,
    *,
    mean: bool = False,
    judged: np.ndarray | None = None,
) -> dict[str, np.ndarray] | dict[str, float]:
    """Return several metrics of the same lists, which are sorted once for all of them.

    Parameters
    ----------
    names : sequence of str
        Names that `parse_metric` reads.
    scores, grades, mask, mean, judged
        See the module. With `mean` no value of a single query is kept: a tenth of the memory.
    ymax : int, optional
        The top grade of the data set; ERR needs it. A higher grade is an error.

    Returns
    -------
    dict of str to numpy.ndarray, or to float
        float64 ``[queries]``, or the mean, by canonical name, in the order of `names`.

    Raises
    ------
    UserError
        For a name that is not understood, or input as the module says.

    Examples
    --------
    >>> values = compute_metrics(["P@1", "RR"], np.array([[2.0, 1.0]]), np.array([[0, 1]]))
    >>> {name: value.tolist() for name, value in values.items()}
    {'P@1': [0.0], 'RR': [0.5]}
    """
    metrics = [parse_metric(name) for name in names]
    values = _compute(metrics, scores, grades, mask, mean=mean, ymax=ymax, judged=judged)
    return {metric.name: value for metric, value in zip(metrics, values, strict=True)}


def _compute(
    metrics: Sequence[Metric],
    scores: np.ndarray,
    grades: np.ndarray,
    mask: np.ndarray | None,
    *,
    mean: bool,
    ymax: int | None,
    judged: np.ndarray | None,
) -> np.ndarray | list[float]:
    """Return ``[metrics, queries]``, or the means."""
    cutoffs = [metric.cutoff for metric in metrics if metric.cutoff]
    depth = max(cutoffs, default=1) if len(cutoffs) == len(metrics) else None
    queries = len(scores)
    if mean and not queries:
        raise UserError(f"{metrics[0].name} has no mean over 0 queries.")
    values = np.zeros(len(metrics)) if mean else np.empty((len(metrics), queries))
    chunks = ranked_chunks(scores, grades, mask, depth, ymax=ymax, judged=judged)
    for rows, lists in chunks:
        for i, metric in enumerate(metrics):
            if mean:
                values[i] += metric.of(lists).sum()
            else:
                values[i, rows] = metric.of(lists)
    return (values / queries).tolist() if mean else values

"""Training of boosted rankers through ``lgb.train``, stopped by our own metric."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ultrbench.bars import bar
from ultrbench.ranking.binned import BinnedFeatures, bin_documents
from ultrbench.ranking.model import BASE_PARAMETERS, count_trees
from ultrbench.ranking.objectives import OBJECTIVES, Objective, normalise_weights
from ultrbench.ranking.targets import TrainingLists
from ultrbench.simulation.display import order_by_score


@dataclass(frozen=True)
class ValidationLists:
    """Lists on which training is stopped, padded.

    Attributes
    ----------
    documents : numpy.ndarray
        int64 ``[queries, candidates]``, rows of the validation split; -1 pads.
    gains : numpy.ndarray
        float64 ``[queries, candidates]``, gain of each candidate; 0 where padded.
    ideal : numpy.ndarray or None
        float64 ``[queries]``, what the DCG of each query is divided by before the mean; None
        divides the DCG of all queries by the sum of all gains, which ranks rankers as the DCG does.
    """

    documents: np.ndarray
    gains: np.ndarray
    ideal: np.ndarray | None


@dataclass(frozen=True)
class Fit:
    """A trained ensemble.

    Attributes
    ----------
    model : str
        LightGBM's text form, all trees.
    curve : dict of list of float
        Validation value after each tree, by validation name.
    trees : dict of int
        Trees to use, by validation name; ``fixed`` is all of them.
    """

    model: str
    curve: dict[str, list[float]]
    trees: dict[str, int]


def discounted_gain(scores: np.ndarray, lists: ValidationLists, cutoff: int) -> np.ndarray:
    """Return sum over the first `cutoff` ranks of gain/log2(1 + rank) for each list.

    Parameters
    ----------
    scores : numpy.ndarray
        float64 ``[queries, candidates]``; ties go to the smaller document row, and padding counts
        for nothing.
    lists : ValidationLists
        What is ranked.
    cutoff : int
        Ranks that count.

    Returns
    -------
    numpy.ndarray
        float64 ``[queries]``.

    Examples
    --------
    >>> lists = ValidationLists(np.array([[4, 2, -1]]), np.array([[1.0, 3.0, 0.0]]), None)
    >>> discounted_gain(np.array([[0.1, 0.9, 5.0]]), lists, 1).tolist()
    [3.0]
    """
    top = order_by_score(lists.documents, scores)[:, :cutoff]
    gains = np.take_along_axis(lists.gains, top, axis=1)
    return gains @ (1 / np.log2(2 + np.arange(top.shape[1])))


def graded_lists(documents: np.ndarray, grades: np.ndarray, cutoff: int) -> ValidationLists:
    """Return lists whose validation value is nDCG on true grades, gain 2^y - 1.

    Parameters
    ----------
    documents : numpy.ndarray
        int64 ``[queries, candidates]``, rows of the validation split; -1 pads.
    grades : numpy.ndarray
        uint8 ``[documents of the split]``.
    cutoff : int
        Ranks that count.

    Returns
    -------
    ValidationLists
        With the ideal DCG of the candidates at `cutoff`.

    Examples
    --------
    >>> lists = graded_lists(np.array([[1, 0]]), np.array([0, 2], np.uint8), 10)
    >>> lists.gains.tolist(), lists.ideal.tolist()
    ([[3.0, 0.0]], [3.0])
    """
    gains = np.where(documents >= 0, 2.0 ** grades[documents] - 1, 0.0)
    lists = ValidationLists(documents, gains, None)
    return ValidationLists(documents, gains, discounted_gain(gains, lists, cutoff))


def weighted_lists(target: TrainingLists) -> ValidationLists:
    """Return lists whose validation value is the IPS-DCG of weighted clicks, up to scale.

    Its numerator is linear in the clicks, and its denominator is the same for every ranker; a
    per-query ideal DCG computed from noisy clicks would be neither.

    Parameters
    ----------
    target : TrainingLists
        Documents of the validation split with weighted clicks; at least one query.

    Returns
    -------
    ValidationLists
        A row a query, documents in canonical order.

    Examples
    --------
    >>> rows, query_ptr = np.array([3, 5, 9]), np.array([0, 2, 3])
    >>> lists = weighted_lists(TrainingLists(rows, query_ptr, np.array([2.0, 0.0, 1.0])))
    >>> lists.documents.tolist(), lists.gains.tolist()
    ([[3, 5], [9, -1]], [[2.0, 0.0], [1.0, 0.0]])
    """
    lengths = np.diff(target.query_ptr)
    inside = np.arange(lengths.max()) < lengths[:, None]
    documents, gains = np.full(inside.shape, -1), np.zeros(inside.shape)
    documents[inside], gains[inside] = target.rows, target.weights
    return ValidationLists(documents, gains, None)


def validation_value(scores: np.ndarray, lists: ValidationLists, cutoff: int) -> float:
    """Return the value that stops training.

    Parameters
    ----------
    scores, lists, cutoff
        As in `discounted_gain`.

    Returns
    -------
    float
        The mean over queries of DCG by ideal, 0 where the ideal is 0; or the DCG of all queries by
        the sum of all gains, which must be positive.

    Examples
    --------
    >>> lists = graded_lists(np.array([[0, 1]]), np.array([0, 2], np.uint8), 10)
    >>> validation_value(np.array([[0.9, 0.1]]), lists, 10)  # 1/log2(3)
    0.63...
    """
    dcg = discounted_gain(scores, lists, cutoff)
    if lists.ideal is None:
        return float(dcg.sum() / lists.gains.sum())
    ideal = lists.ideal
    return float(np.mean(np.divide(dcg, ideal, out=np.zeros_like(dcg), where=ideal > 0)))


def best_tree(values: Sequence[float]) -> int:
    """Return the number of trees with the highest value, the fewest on a tie.

    Parameters
    ----------
    values : sequence of float
        Validation value after each tree; at least one.

    Returns
    -------
    int
        From 1.

    Examples
    --------
    >>> best_tree([0.1, 0.4, 0.4, 0.2])
    2
    """
    return int(np.argmax(values)) + 1


class _Watch:
    """Validation values of a growing ensemble, and whether it has grown long enough."""

    def __init__(
        self, validation: Mapping[str, ValidationLists], patience: int, cutoff: int
    ) -> None:
        documents = [v.documents[v.documents >= 0] for v in validation.values()]
        self.rows = np.unique(np.concatenate(documents))
        self.curve: dict[str, list[float]] = {name: [] for name in validation}
        self._cells = {n: np.searchsorted(self.rows, v.documents) for n, v in validation.items()}
        self._validation, self._patience, self._cutoff = validation, patience, cutoff

    def add(self, scores: np.ndarray) -> None:
        """Take in the scores of `rows` after one more tree."""
        for name, values in self.curve.items():
            lists = self._validation[name]
            values.append(validation_value(scores[self._cells[name]], lists, self._cutoff))

    @property
    def over(self) -> bool:
        return all(len(v) - best_tree(v) >= self._patience for v in self.curve.values())

    def fit(self, model: str) -> Fit:
        return Fit(model, self.curve, {name: best_tree(v) for name, v in self.curve.items()})


def boost(
    features: np.ndarray | BinnedFeatures,
    rows: np.ndarray,
    objective: Objective,
    *,
    trees: int,
    leaves: int,
    learning_rate: float,
    min_data_in_leaf: int,
    seed: int,
    watch: _Watch | None = None,
    validation_features: np.ndarray | BinnedFeatures | None = None,
) -> str:
    """Boost an objective and return the model text.

    Parameters
    ----------
    features : numpy.ndarray or BinnedFeatures
        float32 ``[documents, features]`` of the split.
    rows : numpy.ndarray
        int64, the documents that the objective scores, ascending.
    objective : callable
        ``(scores, dataset) -> (gradient, hessian)``, called once a tree.
    trees, leaves, learning_rate, min_data_in_leaf
        Size of the ensemble.
    seed : int
        Replicate seed.
    watch, validation_features
        Set by `train`.

    Examples
    --------
    >>> towards = lambda scores, _: (scores - np.array([1.0, 3.0]), np.ones(2))
    >>> x = np.array([[0.0], [1.0]], dtype=np.float32)
    >>> model = boost(
    ...     x, np.arange(2), towards, trees=1, leaves=2, learning_rate=1, min_data_in_leaf=1, seed=0
    ... )
    >>> from ultrbench.ranking.model import predict
    >>> predict(model, x).round(6).tolist()
    [1.0, 3.0]
    """
    import lightgbm as lgb

    binning = BASE_PARAMETERS | {"min_data_in_leaf": min_data_in_leaf, "seed": seed}
    parameters = binning | {
        "objective": objective,
        "metric": "None",
        "num_leaves": leaves,
        "learning_rate": learning_rate,
    }
    data = bin_documents(features, rows, binning)
    if watch is None or validation_features is None:
        with bar("trees", total=trees) as shown:
            return lgb.train(
                parameters, data, num_boost_round=trees, callbacks=[lambda env: shown.update()]
            ).model_to_string()

    def measure(scores: np.ndarray, _: object) -> list[tuple[str, float, bool]]:
        watch.add(scores)
        return [(name, values[-1], True) for name, values in watch.curve.items()]

    def stop(env: lgb.callback.CallbackEnv) -> None:
        shown.update()
        if watch.over:
            raise lgb.callback.EarlyStopException(env.iteration, env.evaluation_result_list or [])

    with bar("trees", total=trees) as shown:
        booster = lgb.train(
            parameters,
            data,
            num_boost_round=trees,
            valid_sets=[bin_documents(validation_features, watch.rows, binning, reference=data)],
            feval=measure,
            callbacks=[stop],
        )
    return booster.model_to_string(num_iteration=-1)


def train(
    features: np.ndarray | BinnedFeatures,
    lists: TrainingLists,
    *,
    objective: str,
    trees: int,
    leaves: int,
    learning_rate: float,
    min_data_in_leaf: int,
    seed: int,
    validation: Mapping[str, ValidationLists] | None = None,
    validation_features: np.ndarray | BinnedFeatures | None = None,
    patience: int = 0,
    cutoff: int = 10,
) -> Fit:
    """Train a ranker on target weights.

    Parameters
    ----------
    features : numpy.ndarray or BinnedFeatures
        float32 ``[documents of the split, features]``; only ``lists.rows`` are read.
    lists : TrainingLists
        What to train on.
    objective : {"softmax", "pairwise"}
        Name in `ultrbench.ranking.objectives.OBJECTIVES`.
    trees, leaves, learning_rate, min_data_in_leaf
        Size of the ensemble.
    seed : int
        Replicate seed.
    validation : mapping of ValidationLists, optional
        By name; without it all trees are kept.
    validation_features : numpy.ndarray or BinnedFeatures, optional
        float32 ``[documents of the validation split, features]``.
    patience : int
        Training ends when no validation value has improved for that many trees.
    cutoff : int
        Ranks that count in the validation values.

    Returns
    -------
    Fit
        Equal input gives equal text, whatever the number of cores.

    Examples
    --------
    >>> features = np.tile(np.arange(4.0), 30)[:, None]
    >>> clicked = TrainingLists(
    ...     np.arange(120), np.arange(0, 121, 4), np.tile([0.0, 1.0, 5.0, 9.0], 30)
    ... )
    >>> fit = train(
    ...     features, clicked, objective="softmax", trees=3, leaves=4, learning_rate=0.1,
    ...     min_data_in_leaf=1, seed=1, validation={"clicks": weighted_lists(clicked)},
    ...     validation_features=features, patience=2,
    ... )
    >>> fit.trees, len(fit.curve["clicks"])
    ({'clicks': 1}, 3)
    """
    weights = normalise_weights(lists.weights, lists.query_ptr)
    watch = _Watch(validation, patience, cutoff) if validation else None
    model = boost(
        features,
        lists.rows,
        OBJECTIVES[objective](weights, lists.query_ptr),
        trees=trees,
        leaves=leaves,
        learning_rate=learning_rate,
        min_data_in_leaf=min_data_in_leaf,
        seed=seed,
        watch=watch,
        validation_features=validation_features,
    )
    return watch.fit(model) if watch else Fit(model, {}, {"fixed": count_trees(model)})


def choose_trees(
    model: str,
    *,
    validation: Mapping[str, ValidationLists],
    validation_features: np.ndarray,
    patience: int,
    cutoff: int,
) -> Fit:
    """Choose the number of trees of a finished ensemble as `train` would have.

    Parameters
    ----------
    model : str
        LightGBM's text form.
    validation, validation_features, patience, cutoff
        As in `train`; trees beyond the end of patience are not looked at.

    Returns
    -------
    Fit
        With the model as it came.
    """
    import lightgbm as lgb

    if not validation:
        return Fit(model, {}, {"fixed": count_trees(model)})
    watch = _Watch(validation, patience, cutoff)
    booster = lgb.Booster(model_str=model)
    scores = np.zeros(len(watch.rows))
    leaves = booster.predict(validation_features[watch.rows], pred_leaf=True, num_threads=1)
    for tree, leaf in enumerate(np.asarray(leaves).reshape(len(scores), -1).T):
        values = [booster.get_leaf_output(tree, number) for number in range(leaf.max() + 1)]
        scores += np.array(values)[leaf]
        watch.add(scores)
        if watch.over:
            break
    return watch.fit(model)

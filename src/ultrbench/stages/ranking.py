"""Stage `ranking`: train a ranker on weighted clicks, or on true grades, and score the test set."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ultrbench.datasets.split import Split, read_split
from ultrbench.errors import UserError
from ultrbench.files import read_arrays, read_json, write_arrays, write_json, write_text
from ultrbench.propensity.estimate import read_propensity
from ultrbench.ranking import boosting, targets
from ultrbench.ranking.model import predict
from ultrbench.simulation.clicks import attraction
from ultrbench.simulation.log import ClickLog, read_rounds
from ultrbench.simulation.truth import read_truth


def _training_target(
    method: dict[str, Any], log: ClickLog, split: Split, ymax: int, eps: float,
    propensity: np.ndarray | None,
) -> targets.TrainingLists:  # fmt: skip
    if method["target"] == "clicks":
        shown = log.select(log.randomized) if method["lists"] == "randomized" else log
        return targets.ipw_weights(shown, propensity)
    if method["target"] == "grades":
        return targets.grade_gains(log, split.grades)
    gamma = attraction(split.grades, ymax, eps=eps)
    return targets.expected_clicks(log, gamma, propensity)


def train_ranker(
    dataset: Path,
    candidates: Path,
    logs: Sequence[Path],
    model: Path,
    report: Path,
    scores: Path,
    *,
    method: dict[str, Any],
    objective: str,
    training: dict[str, Any],
    eps: float,
    cutoff: int,
    seed: int,
    theta: Path | None = None,
    validation_theta: Path | None = None,
) -> None:
    """Train the ranker of a method on the logs of some rounds.

    Parameters
    ----------
    dataset, candidates : pathlib.Path
        Outputs of the stages before.
    logs : sequence of pathlib.Path
        Folders of the logging rounds to train on.
    model, report, scores : pathlib.Path
        To write: the ensemble as LightGBM text; ``.json`` with the validation curve and the trees
        to use by validation; ``.npz`` with the scores of all test documents by validation.
    method : dict
        ``target`` (``clicks``, ``grades``, ``relevance``, ``examined_relevance``) and ``lists``.
    objective : {"softmax", "pairwise"}
        The ranker's loss.
    training : dict
        Size of the ensemble and validation, from the config.
    eps : float
        Click noise of the setting, for the skylines of infinitely many sessions.
    cutoff : int
        Ranks that count when training is stopped.
    seed : int
        Replicate seed.
    theta : pathlib.Path, optional
        Propensities that weight the training clicks.
    validation_theta : pathlib.Path, optional
        Propensities that weight the validation clicks, the same for all methods; the simulator's
        own truth otherwise.
    """
    train, vali = read_split(dataset, "train"), read_split(dataset, "vali")
    ymax = read_json(dataset / "dataset.json")["ymax"]
    log = read_rounds(logs, "train")
    truth = read_truth([folder / "truth.csv" for folder in logs])
    propensity = read_propensity(theta) if theta else None
    if method["target"] == "examined_relevance":
        propensity = _required_truth(truth, "target examined_relevance")
    target = _training_target(method, log, train, ymax, eps, propensity)
    if not target.weights.sum() > 0:
        raise UserError(
            f"{logs[0]}: nothing to learn from: the {len(target.rows)} displayed documents have"
            f" no {'click' if method['target'] == 'clicks' else 'relevance'} in all"
        )
    validation = {}
    if "grades" in training["validation"]:
        documents = read_arrays(candidates)["vali_documents"]
        validation["grades"] = boosting.graded_lists(documents, vali.grades, cutoff)
    if "clicks" in training["validation"]:
        weights = (
            read_propensity(validation_theta)
            if validation_theta
            else _required_truth(truth, "training.validation_theta: truth")
        )
        clicked = targets.ipw_weights(read_rounds(logs, "vali"), weights)
        if not clicked.weights.sum() > 0:
            raise UserError(
                f"{logs[0]}: validation by clicks needs clicks on validation queries, and the log"
                " has none; leave `clicks` out of training.validation"
            )
        validation["clicks"] = boosting.weighted_lists(clicked)
    fit = boosting.train(
        train.features,
        target,
        objective=objective,
        **{key: training[key] for key in ("trees", "leaves", "learning_rate", "min_data_in_leaf")},
        seed=seed,
        validation=validation,
        validation_features=vali.features,
        patience=training["patience"],
        cutoff=cutoff,
    )
    write_text(model, fit.model)
    write_json(report, {"trees": fit.trees, "curve": fit.curve})
    test = read_split(dataset, "test")
    write_arrays(
        scores,
        {name: predict(fit.model, test.features, n) for name, n in fit.trees.items()},
    )


def _required_truth(truth: np.ndarray | None, key: str) -> np.ndarray:
    if truth is None:
        raise UserError(
            f"{key}: this click log has no truth.csv, as only simulated logs know their true"
            " propensities; name an estimator instead, or leave it out"
        )
    return truth

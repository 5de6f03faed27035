"""Stage `ranking`: train a ranker on weighted clicks, or on true grades, and score the test set."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np

from ultrbench.datasets.split import Split, read_split
from ultrbench.errors import UserError
from ultrbench.files import read_arrays, read_json, write_arrays, write_json, write_text
from ultrbench.propensity.estimate import read_propensity
from ultrbench.ranking import boosting, targets
from ultrbench.ranking.model import predict_staged
from ultrbench.ranking.weights import weighted_clicks
from ultrbench.simulation.clicks import attraction
from ultrbench.simulation.log import ClickLog, read_rounds
from ultrbench.simulation.truth import read_truth
from ultrbench.stages.features import candidate_features
from ultrbench.study import SIZE


def _training_target(
    method: dict[str, Any], log: ClickLog, split: Split, ymax: int, eps: float,
    theta: Path | None, truth: np.ndarray | None,
) -> targets.TrainingLists:  # fmt: skip
    shown = log.select(log.randomized) if method["lists"] == "randomized" else log
    if method["target"] == "clicks":
        return weighted_clicks(method["weights"], shown, cast(Path, theta))
    if method["target"] == "grades":
        return targets.grade_gains(log, split.grades)
    gamma = attraction(split.grades, ymax, eps=eps)
    if method["target"] == "relevance":
        return targets.expected_clicks(log, gamma, None)
    examination = _required_truth(truth, f"target {method['target']}")
    if method["target"] == "examined_relevance":
        return targets.expected_clicks(log, gamma, examination)
    relative = read_propensity(cast(Path, theta))
    return targets.expected_ipw_weights(shown, gamma, examination, relative)


def train_ranker(
    dataset: Path,
    candidates: Path | None,
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
    hidden_features: float = 0.0,
    theta: Path | None = None,
    joint_model: Path | None = None,
    validation_theta: Path | None = None,
) -> None:
    """Train the ranker of a method on the logs of some rounds, or take that of its estimator.

    Parameters
    ----------
    dataset, candidates : pathlib.Path
        Outputs of the stages before; bins beside the candidates are used. Without validation by
        grades `candidates` may be None.
    logs : sequence of pathlib.Path
        Folders of the logging rounds to train on.
    model, report, scores : pathlib.Path
        To write: the ensemble as LightGBM text; ``.json`` with the validation curve and the trees
        to use by validation; ``.npz`` with the scores of all test documents by validation.
    method : dict
        ``target`` (``clicks``, ``grades``, ``relevance``, ``examined_relevance``, or
        ``expected_clicks``, those of infinitely many sessions weighted by `theta`), ``weights``
        and ``lists``.
    objective : {"softmax", "pairwise", "joint"}
        The ranker's loss; ``joint`` fits nothing and chooses among the trees of `joint_model`.
    training : dict
        Size of the ensemble and validation, from the config.
    eps : float
        Click noise of the setting, for the skylines of infinitely many sessions.
    cutoff : int
        Ranks that count when training is stopped.
    seed : int
        Replicate seed.
    hidden_features : float
        Share of the features that are kept from the ranker; it splits on none of them, so that
        scoring needs to hide nothing.
    theta : pathlib.Path, optional
        Propensities that weight the training clicks.
    joint_model : pathlib.Path, optional
        The ranker that a joint estimator wrote with its propensities.
    validation_theta : pathlib.Path, optional
        Propensities that weight the validation clicks, the same for all methods; the simulator's
        own truth otherwise.
    """
    train, vali = read_split(dataset, "train"), read_split(dataset, "vali")
    ymax = read_json(dataset / "dataset.json")["ymax"]
    truth = read_truth([folder / "truth.csv" for folder in logs])
    target = None
    if objective != "joint":
        log = read_rounds(logs, "train")
        target = _training_target(method, log, train, ymax, eps, theta, truth)
        if not target.weights.sum() > 0:
            raise UserError(
                f"{logs[0]}: nothing to learn from: the {len(target.rows)} displayed documents have"
                f" no {'click' if method['target'] == 'clicks' else 'relevance'} in all"
            )
    validation = {}
    if "grades" in training["validation"]:
        documents = read_arrays(cast(Path, candidates))["vali_documents"]
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
                " has none; leave `clicks` out of training.validation (`fixed` needs neither clicks"
                " nor grades)"
            )
        validation["clicks"] = boosting.weighted_lists(clicked)
    features, validation_features = candidate_features(
        dataset, candidates, hidden_features=hidden_features, seed=seed
    )
    stopping = {
        "validation": validation,
        "validation_features": validation_features,
        "patience": training["patience"],
        "cutoff": cutoff,
    }
    if target is None:
        text = cast(Path, joint_model).read_text(encoding="utf-8")
        fit = boosting.choose_trees(text, **stopping)
    else:
        fit = boosting.train(
            features,
            target,
            objective=objective,
            **{key: training[key] for key in SIZE},
            seed=seed,
            **stopping,
        )
    write_text(model, fit.model)
    write_json(report, {"trees": fit.trees, "curve": fit.curve})
    test = read_split(dataset, "test")
    write_arrays(scores, predict_staged(fit.model, test.features, fit.trees))


def _required_truth(truth: np.ndarray | None, key: str) -> np.ndarray:
    if truth is None:
        raise UserError(
            f"{key}: this click log has no truth.csv, as only simulated logs know their true"
            " propensities; name an estimator instead, or leave it out"
        )
    return truth

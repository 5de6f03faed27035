"""Stage `propensity`: estimate theta from the click logs of some rounds."""

from collections.abc import Sequence
from dataclasses import replace
from inspect import signature
from pathlib import Path
from typing import Any

from ultrbench.files import write_text
from ultrbench.own_code import own_file
from ultrbench.propensity import naive
from ultrbench.propensity.estimate import (
    find_estimator,
    refuse_wrong_estimate,
    refuse_wrong_numbers,
    write_estimate,
)
from ultrbench.propensity.position_effects import UnmovedDocumentsError
from ultrbench.simulation.log import read_rounds
from ultrbench.simulation.truth import read_truth, read_truth_columns
from ultrbench.stages.features import candidate_features

NOT_YET = (
    "no document has been seen at two positions yet: clicks are taken at face value (naive, 1 at"
    " every position) to display the next round"
)


def estimate_propensity(
    dataset: Path | None,
    candidates: Path | None,
    logs: Sequence[Path],
    table: Path,
    report: Path,
    *,
    name: str,
    estimator: dict[str, Any],
    seed: int,
    hidden_features: float = 0.0,
    more_rounds: bool = False,
    training: dict[str, Any] | None = None,
    model: Path | None = None,
) -> None:
    """Estimate propensities by position, of a joint kind with a ranker.

    Parameters
    ----------
    dataset : pathlib.Path or None
        Folder of the prepared data set; None for an estimator that takes no features.
    candidates : pathlib.Path or None
        ``.npz`` of the logging policy, beside which bins are used.
    logs : sequence of pathlib.Path
        Folders of the logging rounds to use.
    table, report : pathlib.Path
        ``.csv`` and ``.json`` to write; see `ultrbench.propensity.estimate.write_estimate`.
    name : str
        Name of the estimator in the config.
    estimator : dict
        ``kind`` and the parameters of the kind.
    seed : int
        Replicate seed.
    hidden_features : float
        Share of the features that are kept from the estimator.
    more_rounds : bool
        The estimate serves to display a further round. Where the estimator compares documents
        that moved, and none has moved yet, it is the naive one then, marked as not identified, with
        a note; otherwise that is an error.
    training : dict, optional
        Size of the ensemble, from the config, for a joint kind.
    model : pathlib.Path, optional
        Where the ranker of a joint kind is written, as LightGBM text with all trees.
    """
    parameters = {key: value for key, value in estimator.items() if key != "kind"}
    truth = [folder / "truth.csv" for folder in logs]
    estimate_theta = find_estimator(estimator["kind"])
    own = own_file(estimator["kind"])
    features = None
    if dataset and (own or "features" in signature(estimate_theta).parameters):
        # Code of one's own may do with an array what bins cannot.
        features, _ = candidate_features(
            dataset, None if own else candidates, hidden_features=hidden_features, seed=seed
        )
    log = read_rounds(logs, "train")
    try:
        estimate = estimate_theta(
            log,
            features=features,
            truth=read_truth(truth),
            columns=read_truth_columns(truth),
            seed=seed,
            **parameters,
            **(training or {}),
        )
    except UnmovedDocumentsError:
        if not more_rounds:
            raise
        estimate = replace(naive.estimate(log), identified=False, notes=(NOT_YET,))
    refuse_wrong_estimate(estimate, estimator["kind"], log.documents.shape[1])
    if own:
        refuse_wrong_numbers(estimate, estimator["kind"])
    if model and estimate.model:
        write_text(model, estimate.model)
    write_estimate(estimate, table, report, estimator=name, **estimator)

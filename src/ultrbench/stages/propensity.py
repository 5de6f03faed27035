"""Stage `propensity`: estimate theta from the click logs of some rounds."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ultrbench.datasets.split import hide_features, read_split
from ultrbench.files import write_text
from ultrbench.propensity import naive
from ultrbench.propensity.estimate import find_estimator, write_estimate
from ultrbench.propensity.position_effects import UnmovedDocumentsError
from ultrbench.simulation.log import read_rounds
from ultrbench.simulation.truth import read_truth, read_truth_columns

NOT_YET = (
    "no document has been seen at two positions yet: clicks are taken at face value (naive, 1 at"
    " every position) to display the next round"
)


def estimate_propensity(
    dataset: Path,
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
    dataset : pathlib.Path
        Folder of the prepared data set.
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
    log = read_rounds(logs, "train")
    try:
        estimate = find_estimator(estimator["kind"])(
            log,
            features=hide_features(read_split(dataset, "train").features, hidden_features, seed),
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
    if model:
        write_text(model, estimate.model)
    write_estimate(estimate, table, report, estimator=name, **estimator)

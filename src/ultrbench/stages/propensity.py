"""Stage `propensity`: estimate theta from the click logs of some rounds."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ultrbench.datasets.split import read_split
from ultrbench.propensity.estimate import find_estimator, write_estimate
from ultrbench.simulation.log import read_rounds
from ultrbench.simulation.truth import read_truth


def estimate_propensity(
    dataset: Path,
    logs: Sequence[Path],
    table: Path,
    report: Path,
    *,
    name: str,
    estimator: dict[str, Any],
    seed: int,
) -> None:
    """Estimate propensities by position.

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
    """
    parameters = {key: value for key, value in estimator.items() if key != "kind"}
    estimate = find_estimator(estimator["kind"])(
        read_rounds(logs, "train"),
        features=read_split(dataset, "train").features,
        truth=read_truth([folder / "truth.csv" for folder in logs]),
        seed=seed,
        **parameters,
    )
    write_estimate(estimate, table, report, estimator=name, **estimator)

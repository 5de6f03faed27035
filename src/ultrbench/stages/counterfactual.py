"""Counterfactual evaluation of every ranker from the held-out click log of the test queries."""

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ultrbench.datasets.split import Split, read_split
from ultrbench.errors import UserError
from ultrbench.evaluation.counterfactual import (
    CounterfactualWarning,
    estimate_from_clicks,
    graded_dcg,
    new_ranks,
    true_worth,
)
from ultrbench.files import read_arrays, read_json, replacing
from ultrbench.propensity.estimate import read_by_position
from ultrbench.seeding import stream
from ultrbench.simulation.clicks import attraction
from ultrbench.simulation.log import ClickLog, log_files, read_log
from ultrbench.simulation.truth import read_truth

WEIGHTS = "DCG"
CLIP = 0.2  # of the first position's propensity: reaches the lower half of a page of ten
SELF_NORMALISED = "self-normalised"
UNKNOWN = "not known"
FORMS: dict[str, dict[str, Any]] = {
    "IPS": {},
    "clipped": {"clip": CLIP},
    SELF_NORMALISED: {"self_normalised": True},
}


def evaluate_counterfactually(
    dataset: Path,
    candidates: Mapping[int, Path],
    logs: Mapping[int, Path],
    scores: Mapping[tuple[str, int], Path],
    thetas: Mapping[tuple[str, int], Path],
    estimates: Path,
    *,
    validation: str,
    eps: float | None,
    bootstraps: int,
) -> None:
    """Estimate the worth of every ranker from clicks, with every propensity estimate.

    Parameters
    ----------
    dataset : pathlib.Path
        Folder of the prepared data set.
    candidates : mapping of int to pathlib.Path
        Candidate files by seed.
    logs : mapping of int to pathlib.Path
        Folders with the held-out log ``test.*.parquet`` and ``truth.csv``, by seed.
    scores : mapping of (str, int) to pathlib.Path
        Test scores of the last round by method and seed.
    thetas : mapping of (str, int) to pathlib.Path
        Propensities by the method that they weight, and seed.
    estimates : pathlib.Path
        ``.csv`` to write: a row a theta, form, seed and ranker, with estimate, truth, interval,
        effective sample size and warnings. A log or theta that cannot be evaluated leaves the
        numbers empty and says why under warnings.
    validation : str
        Whose rankers are evaluated, those that grades or that clicks stopped.
    eps : float or None
        Click noise of the setting. None for a click log of one's own, of which it is not known:
        estimates are on the scale of clicks, and there is no truth.
    bootstraps : int
        Resamples of sessions.

    Notes
    -----
    ``IPS`` and ``clipped`` estimate the mean DCG with gain 2^y - 1, and need absolute
    propensities: where an estimator knows them only relative to position 1, the first one is the
    simulator's, which ``scale`` says; without a simulator there is the self-normalised form alone,
    unless ``truth.csv`` gives it. ``self-normalised`` needs no scale and has none: its truth is
    the mean lambda of an examined click.
    """
    test = read_split(dataset, "test")
    ymax = read_json(dataset / "dataset.json")["ymax"]
    owner = "truth.csv" if eps is None else "the simulator's"
    rows: list[dict[str, Any]] = []
    for seed, folder in logs.items():
        log = read_log(*log_files(folder, "test"))
        truth = read_truth([folder / "truth.csv"])
        ranked = _ranked(log, test, candidates[seed], scores, seed, validation)
        ranks = np.array(list(ranked.values()))
        grades = np.where(log.shown, test.grades[log.documents], 0)
        gains = 2.0**grades - 1  # not exp2, which takes uint8 for half precision
        gamma = attraction(grades, ymax, eps=eps or 0)
        graded = true_worth(log, ranks, gains, WEIGHTS)
        normalised = true_worth(log, ranks, gamma, WEIGHTS, self_normalised=True)
        if eps is None:
            graded = normalised = np.full(len(ranks), np.nan)
        for method in dict.fromkeys(method for method, s in thetas if s == seed):
            theta, scale = _absolute(thetas[method, seed], truth, owner)
            for form, options in FORMS.items():
                own = form == SELF_NORMALISED
                if scale == UNKNOWN and not own:
                    continue
                key = {"theta": method, "form": form, "scale": "none" if own else scale}
                outcome = _estimate(
                    log, ranks, theta, options, eps=eps, ymax=ymax, bootstraps=bootstraps,
                    rng=stream(seed, "counterfactual", method, form),
                )  # fmt: skip
                for place, ranker in enumerate(ranked):
                    rows.append(
                        key
                        | {"seed": seed, "ranker": ranker}
                        | {"truth": (normalised if own else graded)[place]}
                        | {
                            name: value[place] if isinstance(value, np.ndarray) else value
                            for name, value in outcome.items()
                        }
                    )
    with replacing(estimates) as half:
        pd.DataFrame(rows).to_csv(half, index=False, lineterminator="\n")


def _ranked(
    log: ClickLog,
    test: Split,
    candidates: Path,
    scores: Mapping[tuple[str, int], Path],
    seed: int,
    validation: str,
) -> dict[str, np.ndarray]:
    """Return the rank of each logged document under every ranker."""
    ranked = {
        method: new_ranks(log, read_arrays(path)[validation])
        for (method, s), path in scores.items()
        if s == seed
    }
    ranked["logging_policy"] = new_ranks(log, read_arrays(candidates)["test_all_scores"])
    order = stream(seed, "random order").random(len(test.grades))
    return ranked | {"random_order": new_ranks(log, order)}


def _absolute(path: Path, truth: np.ndarray | None, owner: str) -> tuple[np.ndarray, str]:
    theta = read_by_position(path, "theta")
    if not np.isnan(theta).any():
        return theta, "its own"
    relative = read_by_position(path, "relative")
    return (relative, UNKNOWN) if truth is None else (relative * truth[0], owner)


def _estimate(
    log: ClickLog,
    ranks: np.ndarray,
    theta: np.ndarray,
    options: Mapping[str, Any],
    *,
    eps: float | None,
    ymax: int,
    bootstraps: int,
    rng: np.random.Generator,
) -> dict[str, Any]:
    options = {**options, "clip": options.get("clip", 0.0) * theta[0]}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CounterfactualWarning)  # they are a column
            found = estimate_from_clicks(
                log, ranks, theta, WEIGHTS, bootstraps=bootstraps, rng=rng, **options
            )
    except UserError as error:
        none = dict.fromkeys(("estimate", "low", "high", "effective_sample_size"), np.nan)
        return none | {"warnings": f"refused: {error}"}
    numbers: dict[str, Any] = {"estimate": found.value, "low": found.low, "high": found.high}
    if not found.up_to_scale and eps is not None:
        numbers = {
            name: graded_dcg(value, log, WEIGHTS, eps=eps, ymax=ymax)
            for name, value in numbers.items()
        }
    return numbers | {
        "effective_sample_size": found.effective_sample_size,
        "warnings": " ".join(found.warnings),
    }

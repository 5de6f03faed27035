"""What becomes of propensities in ``weight`` of LightGBM's lambdarank: the figures of docs/faq.md.

``python benchmarks/lightgbm_weight.py [RESULTS]`` takes the first replicate of a finished default
study, static logging, the simulator's propensities, and prints nDCG@10 of the candidates on true
grades. Each distinct (list, clicks) with a click is a LightGBM query, weighted by its count.
"""

import sys
from pathlib import Path

import lightgbm as lgb
import numpy as np

from ultrbench.datasets.split import read_split
from ultrbench.evaluation.metrics import ndcg
from ultrbench.files import read_arrays
from ultrbench.simulation.log import ClickLog, log_files, read_log
from ultrbench.simulation.truth import read_truth

TREES = 60


def training_rows(log: ClickLog, theta: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return document, click, count, propensity and LightGBM query of each displayed document."""
    clicked = log.mask > 0
    lists, count = log.click_list[clicked], log.count[clicked]
    bits = np.arange(log.positions, dtype=np.uint64)
    clicks = log.mask[clicked, None] >> bits & np.uint64(1)
    shown = log.documents[lists] >= 0
    query, position = np.nonzero(shown)
    return log.documents[lists][shown], clicks[shown], count[query], theta[position], query


def main(results: Path) -> None:
    """Print a line for each policy and way to weight."""
    data = results / "data/synthetic"
    train, test = read_split(data, "train"), read_split(data, "test")
    for policy in ("weak", "strong"):
        folder = results / f"runs/synthetic/{policy}/static/seed1/initial/round0"
        truth = read_truth([folder / "truth.csv"])
        rows, click, count, theta, query = training_rows(
            read_log(*log_files(folder, "train")), truth / truth[0]
        )
        candidates = read_arrays(results / f"policies/synthetic/{policy}/seed1.npz")
        # In canonical order: in the policy's, equal scores would keep its ranking.
        documents = np.sort(candidates["test_documents"])
        mask = documents >= 0
        grades = np.where(mask, test.grades[documents], 0)
        weights = {
            "clicks as they are": count,
            "1/p on clicks, 0 elsewhere": count * click / theta,
            "1/p on clicks, 1 elsewhere": count * np.where(click, 1 / theta, 1),
        }
        for name, weight in weights.items():
            data_set = lgb.Dataset(
                train.features[rows], click, weight=weight, group=np.bincount(query)
            )
            parameters = {"objective": "lambdarank", "num_leaves": 15, "num_threads": 1}
            model = lgb.train(parameters | {"seed": 1, "verbosity": -1}, data_set, TREES)
            scores = np.zeros(documents.shape)
            scores[mask] = model.predict(test.features[documents[mask]], num_threads=1)
            print(f"{policy}: {name}: {ndcg(scores, grades, mask, cutoff=10, mean=True):.3f}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "results"))

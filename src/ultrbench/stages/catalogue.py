"""Sampled metrics and exposure on a synthetic catalogue of items that all users share."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from ultrbench.evaluation import beyond_accuracy as beyond
from ultrbench.evaluation.catalogue import Catalogue, Taste, synthetic_catalogue
from ultrbench.evaluation.sampled import metric_of_rank, order_table
from ultrbench.files import replacing
from ultrbench.seeding import stream

METRIC = "nDCG@10"
TOP = 10
SAMPLES = (10, 30, 100, 300, 1000)
USERS = (100, 1000, 3000)
REPEATS = 100
# One that knows both, and two that swap: taste puts more users' items on top, popularity lets
# fewer of them sink to the bottom.
RANKERS = {
    "blend": Taste(personal=0.35, popular=1, noise=1.2),
    "personal": Taste(personal=1, popular=0, noise=1.4),
    "popular": Taste(personal=0.1, popular=1, noise=1),
}


def study_catalogue(
    orders: Path,
    exposure: Path,
    *,
    items: int,
    users: int,
    examination: Sequence[float],
    seed: int,
) -> None:
    """Measure what sampling does to the order of rankers, and how rankers expose the items.

    Parameters
    ----------
    orders : pathlib.Path
        ``.csv`` to write: as `ultrbench.evaluation.sampled.order_table` returns it.
    exposure : pathlib.Path
        ``.csv`` to write: a row a ranker, with users, items and the measures as columns.
    items, users : int
        Size of the catalogue.
    examination : sequence of float
        Examination probability by rank; the last value holds for the ranks behind.
    seed : int
        Of all draws.
    """
    made = synthetic_catalogue(users, items, RANKERS, top=TOP, rng=stream(seed, "catalogue"))
    table = order_table(
        made.ranks,
        made.names,
        items,
        METRIC,
        sample_sizes=[m for m in SAMPLES if m < items],
        user_counts=[count for count in USERS if count <= users],
        repeats=REPEATS,
        rng=stream(seed, "sampled metrics"),
    )
    for path, frame in ((orders, table), (exposure, _exposure(made, items, examination))):
        with replacing(path) as half:
            frame.to_csv(half, index=False, lineterminator="\n")


def _exposure(made: Catalogue, items: int, examination: Sequence[float]) -> pd.DataFrame:
    everything = np.array([0, items])
    theta = np.append(examination, np.full(TOP, examination[-1]))[:TOP]
    expected = np.argsort(-made.popularity, kind="stable")[:TOP]
    rows = []
    for name, ranks, shown in zip(made.names, made.ranks, made.top, strict=True):
        exposed = beyond.exposure(shown, theta, items)
        relevance = (shown == made.relevant[:, None]).astype(float)
        popular = np.broadcast_to(expected, shown.shape)
        rows.append(
            {
                "ranker": name,
                "items": items,
                "users": len(shown),
                METRIC: metric_of_rank(METRIC, ranks, items).mean(),
                "Coverage": beyond.coverage(exposed, everything)[0],
                "Gini": beyond.gini(exposed, everything)[0],
                "Diversity": beyond.intra_list_diversity(shown, made.features).mean(),
                "Novelty": beyond.novelty(shown, made.popularity, everything).mean(),
                "Serendipity": beyond.serendipity(shown, popular, relevance).mean(),
            }
        )
    return pd.DataFrame(rows)

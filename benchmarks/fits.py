"""Rankers and estimators beside a plain LightGBM lambdarank of the same documents and size.

``python benchmarks/fits.py [queries] [features] [trees] [leaves]``. One thread each; the reference
bins the features and boosts all trees on grades.
"""

import sys
from functools import partial
from pathlib import Path

import numpy as np
from measure import HEADER, measure, report

from ultrbench.configuration import read_config
from ultrbench.propensity.estimate import ESTIMATORS, find_estimator
from ultrbench.ranking import boosting, targets
from ultrbench.ranking.model import BASE_PARAMETERS
from ultrbench.simulation.behaviour import find_click_model
from ultrbench.simulation.clicks import JOACHIMS_EXAMINATION, attraction, simulate_sessions
from ultrbench.simulation.log import ClickLog
from ultrbench.yaml_files import read_yaml

ROOT = Path(__file__).resolve().parents[1]
POSITIONS = 10
SESSIONS = 20  # a query
SIZE = {"learning_rate": 0.1, "min_data_in_leaf": 20, "seed": 1}
# Kinds that fit rankers in turns with theta until it rests are reported without a goal.
GOALS = {"crossfit": "<= 3", "paird": "<= 1.5", "vectorization": "<= 1.5", "harvest": "<= 1.5"}
GOALS |= dict.fromkeys(("ctr", "randomization", "fixed_effects"), "<= 1.5")


def world(queries, features, randomized):
    """Features and grades by document, and a log of lists in the order of noisy scores."""
    rng = np.random.default_rng(1)
    documents = queries * POSITIONS
    x = rng.normal(size=(documents, features)).astype(np.float32)
    relevance = x[:, :10].sum(axis=1) / 3 + rng.normal(size=documents)
    grades = np.digitize(relevance, [0.5, 1.2, 1.8, 2.4]).astype(np.uint8)
    score = (relevance + rng.normal(size=documents)).reshape(queries, POSITIONS)
    each = 4 if randomized else 1
    query, lists = np.repeat(np.arange(queries), each), each * queries
    key = rng.random((lists, POSITIONS)) if randomized else -score
    order = np.argsort(key, axis=1) + query[:, None] * POSITIONS
    shown = ClickLog(
        order,
        query,
        score.ravel()[order],
        np.zeros(lists, np.uint8),
        np.full(lists, randomized),
        np.zeros(lists, np.uint8),
        *(np.empty(0, kind) for kind in (np.int64, np.uint64, np.int64)),
    )
    users = find_click_model("pbm")(
        attraction(grades[order], 4),
        contexts=shown.contexts,
        eta=1,
        examination=JOACHIMS_EXAMINATION,
    )
    sessions = np.full(lists, SESSIONS // each)
    return x, grades, shown.with_clicks(*simulate_sessions(sessions, users, rng))


def lambdarank(queries, features, trees, leaves):
    import lightgbm as lgb

    x, grades, _ = world(queries, features, False)
    group = np.full(queries, POSITIONS)
    own = {"objective": "lambdarank", "metric": "None", "num_leaves": leaves} | SIZE

    def work():
        data = lgb.Dataset(x, grades, group=group, params=BASE_PARAMETERS | own)
        return lgb.train(BASE_PARAMETERS | own, data, num_boost_round=trees)

    work()
    return work


def ranker(objective, queries, features, trees, leaves):
    x, _, log = world(queries, features, False)
    theta = np.array(JOACHIMS_EXAMINATION)
    return lambda: boosting.train(
        x,
        targets.ipw_weights(log, theta / theta[0]),
        objective=objective,
        trees=trees,
        leaves=leaves,
        **SIZE,
    )


def estimator(kind, queries, features, trees, leaves):
    import lightgbm  # noqa: F401 - kinds that fit import it

    randomized = kind in ("randomization", "harvest", "fixed_effects")
    x, _, log = world(queries, features, randomized)
    schema = read_yaml(ROOT / "workflow/schemas/config.schema.yaml")
    config = read_config(read_yaml(ROOT / "config/config.yaml"), schema)
    shipped = {key: value for key, value in config["estimators"][kind].items() if key != "kind"}
    size = SIZE | {"trees": trees, "leaves": leaves}
    return partial(find_estimator(kind), log, features=x, **shipped | size)


def main(queries=4_000, features=136, trees=100, leaves=15):
    print(HEADER)
    shape = queries, features, trees, leaves
    plain = measure(lambdarank, *shape, times=2).seconds
    for objective in ("softmax", "pairwise"):
        ours = measure(ranker, objective, *shape, times=2)
        report("fits", f"{objective} ranker", ours, plain, "<= 1.2")
    for kind in ESTIMATORS:
        if kind in ("naive", "oracle", "trust", "last_clicks"):
            continue
        ours = measure(estimator, kind, *shape, times=1)
        report("fits", f"estimator {kind}", ours, plain, GOALS.get(kind, "none"))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))

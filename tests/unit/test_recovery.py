"""Recovery of theta at full size: a million sessions, 3,000 logged queries, a random policy.

And of fixed effects on dynamic logs, which compare a document with itself.
"""

import numpy as np
import pytest

from ultrbench.datasets.split import read_split
from ultrbench.datasets.synthetic import write_synthetic
from ultrbench.files import write_json
from ultrbench.propensity.error import theta_error
from ultrbench.propensity.estimate import find_estimator
from ultrbench.ranking.boosting import train
from ultrbench.ranking.targets import ipw_weights
from ultrbench.simulation.clicks import examination
from ultrbench.simulation.log import read_rounds
from ultrbench.stages.clicks import simulate_clicks
from ultrbench.stages.policies import train_policy

pytestmark = pytest.mark.slow

TRUTH = examination(10)
RANKERS = {"folds": 2, "trees": 50, "leaves": 15, "learning_rate": 0.1}
TURNS = RANKERS | {"tolerance": 0.01, "max_iterations": 50}
TREES = {"trees": 100, "leaves": 15, "learning_rate": 0.1, "min_data_in_leaf": 20}
# kind, its log, its parameters as in the shipped configuration.
ESTIMATORS = [
    ("ctr", "initial", {}),
    ("randomization", "randomized", {}),
    ("dla", "initial", TURNS),
    ("rem", "initial", TURNS),
    ("upe_scaled", "initial", TURNS | {"tolerance": 0.02}),
    ("crossfit", "initial", RANKERS | {"tolerance": 0.35, "max_iterations": 10}),
    ("harvest", "randomized", {"pairs": "all"}),
    ("harvest", "randomized", {"pairs": "adjacent"}),
    ("fixed_effects", "randomized", {}),
    ("paird", "initial", TREES | {"regulariser": 1, "tolerance": 0.01}),
    ("paird", "initial", TREES | {"regulariser": 0, "tolerance": 0.01}),
]


def write_world(folder, queries, policy):
    """A data set with its candidates under a policy whose grades log no clicks."""
    data = folder / "data"
    entry = {"seed": 1, "documents": 30, "features": 40,
             "queries": {"train": queries, "vali": 5, "test": 5}}  # fmt: skip
    for split in entry["queries"]:
        write_synthetic(entry, split, data)
    write_json(data / "dataset.json", {"ymax": 4})
    mode = "shared" if policy["kind"] == "random" else "disjoint"
    train_policy(
        data, folder / "candidates.npz", folder / "policy.json", policy=policy,
        policy_queries={"mode": mode, "pool": 0.3}, list_size=10, seed=1,
    )  # fmt: skip
    return data


def simulate(folder, name, sessions, **about):
    setting = {
        "sessions": sessions, "eta": 1.0, "eps": 0.1, "examination": TRUTH.tolist(),
        "empty_sessions": "keep", "traffic_exponent": 0.0, "click_model": {"kind": "pbm"},
        "display": "policy", "temperature": 1.0, "randomized_share": 1.0, "lists_per_query": 8,
    }  # fmt: skip
    arguments = {"log": "initial", "round_": 0, "seed": 1, "splits": ["train"]} | about
    out = folder / name
    simulate_clicks(folder / "data", folder / "candidates.npz", out, setting=setting, **arguments)
    return out


@pytest.fixture(scope="module")
def random_logs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("random")
    data = write_world(folder, 3000, {"kind": "random"})
    logs = {
        name: read_rounds([simulate(folder, name, 1_000_000, log=name)], "train")
        for name in ("initial", "randomized")
    }
    return logs, read_split(data, "train").features


def estimated(kind, log, features, **parameters):
    result = find_estimator(kind)(log, features=features, truth=None, seed=1, **parameters)
    return result, theta_error(result.relative, TRUTH, log.clicks.sum(axis=0)).error


@pytest.mark.parametrize(("kind", "name", "parameters"), ESTIMATORS)
def test_every_theta_is_recovered_under_a_random_policy(random_logs, kind, name, parameters):
    logs, features = random_logs
    result, error = estimated(kind, logs[name], features, **parameters)
    assert result.converged
    assert error <= 0.05


def test_upe_takes_the_scale_of_random_scores_at_its_word(random_logs):
    """Its confounder is the policy's softmax, which here says nothing of clicks: a finding."""
    logs, features = random_logs
    result, error = estimated("upe", logs["initial"], features, **TURNS | {"tolerance": 0.02})
    assert result.converged
    assert 0.1 < error < 0.3
    assert (result.relative[1:] > (TRUTH / TRUTH[0])[1:]).all()


def test_fixed_effects_are_recovered_from_rounds_that_its_own_rankers_displayed(tmp_path):
    policy = {"kind": "lambdamart", "share": 0.3, "trees": 100, "leaves": 31, "learning_rate": 0.1}
    data = write_world(tmp_path, 1000, policy)
    features, rounds, ranker = read_split(data, "train").features, [], None
    for round_ in range(3):
        rounds.append(simulate(tmp_path, f"round{round_}", 333_333, round_=round_, ranker=ranker))
        log = read_rounds(rounds, "train")
        relative = np.ones(10)
        if round_:
            result, error = estimated("fixed_effects", log, features)
            relative = result.relative
        fit = train(features, ipw_weights(log, relative), objective="softmax", seed=1, **TREES)
        ranker = tmp_path / "ranker.txt", tmp_path / "ranker.json"
        ranker[0].write_text(fit.model)
        write_json(ranker[1], {"trees": fit.trees})
    assert result.converged and result.identified
    assert error <= 0.03
    within = np.abs(np.log(result.relative * TRUTH[0] / TRUTH)) <= 3 * result.standard_error + 1e-12
    assert within.all()

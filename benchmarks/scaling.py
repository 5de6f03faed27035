"""How the cost of a study grows with queries, features, sessions, rounds and methods.

``python benchmarks/scaling.py [queries]`` runs the stages of a small study, doubles one size at a
time, and draws docs/figures/scaling.svg. The ratio is the cost of eight times the size over the
cost of the size itself, at most 8 where growth is linear. Preparing the data set is not counted.
"""

import sys
import tempfile
import time
from pathlib import Path

from matplotlib import rc_context
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator
from measure import HEADER, Measured, report

from ultrbench.configuration import read_config
from ultrbench.reporting.figures import COLUMN, HOUSE, save_figure
from ultrbench.stages.clicks import simulate_clicks
from ultrbench.stages.data import prepare_dataset
from ultrbench.stages.evaluation import evaluate_rankers
from ultrbench.stages.policies import train_policy
from ultrbench.stages.propensity import estimate_propensity
from ultrbench.stages.ranking import train_ranker
from ultrbench.yaml_files import read_yaml

ROOT = Path(__file__).resolve().parents[1]
BASE = {"queries": 1000, "features": 30, "sessions": 100_000, "rounds": 1, "methods": 1}
FACTORS = (1, 2, 4, 8)
SIZE = {"trees": 50, "learning_rate": 0.1, "leaves": 15}


def shipped():
    """config.yaml with the schema's defaults."""
    schema = read_yaml(ROOT / "workflow/schemas/config.schema.yaml")
    return read_config(read_yaml(ROOT / "config/config.yaml"), schema)


def study(queries, features, sessions, rounds, methods):
    """Seconds of processor time of all stages after the data set."""
    config = shipped()
    setting = config["settings"]["static"] | {"sessions": sessions, "rounds": rounds}
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        data, candidates = root / "data", root / "seed1.npz"
        counts = {"train": queries, "vali": queries // 3, "test": queries}
        entry = {"kind": "synthetic", "version": 1, "seed": 1, "ymax": 4, "documents": 20}
        prepare_dataset(entry | {"features": features, "queries": counts}, "grown", root, data)
        start = time.process_time()
        train_policy(
            data,
            candidates,
            root / "policy.json",
            policy={"kind": "lambdamart", "share": 0.3} | SIZE,
            policy_queries={"mode": "disjoint", "pool": 0.3},
            list_size=10,
            seed=1,
        )
        scores = {}
        for method in map(str, range(methods)):
            ranker = None
            logs = []
            for round_ in range(rounds):
                out = root / method / f"round{round_}"
                logs.append(out)
                simulate_clicks(
                    data,
                    candidates,
                    out,
                    setting=setting,
                    log="initial",
                    round_=round_,
                    seed=1,
                    ranker=ranker,
                )
                theta, model = out / "theta.csv", out / "ranker.txt"
                estimate_propensity(
                    data,
                    candidates,
                    logs,
                    theta,
                    out / "theta.json",
                    name="crossfit",
                    estimator=config["estimators"]["crossfit"],
                    seed=1,
                )
                ranker = model, out / "ranker.json"
                scores[method, round_, 1] = out / "scores.npz"
                train_ranker(
                    data,
                    candidates,
                    logs,
                    *ranker,
                    scores[method, round_, 1],
                    method={"target": "clicks", "weights": "ipw", "lists": "all"},
                    objective="softmax",
                    training=SIZE
                    | {"min_data_in_leaf": 20, "validation": ["grades"], "patience": 50},
                    eps=0.1,
                    cutoff=10,
                    seed=1,
                    theta=theta,
                )
        evaluate_rankers(
            data,
            {1: candidates},
            scores,
            *(root / name for name in ("queries.parquet", "rounds.csv", "conventions.csv")),
            kinds=["truncated", "full"],
            metrics=["nDCG@10", "ERR@10"],
            headline="nDCG@10",
            without_relevant="zero",
        )
        return time.process_time() - start


def draw(seconds):
    with rc_context(HOUSE):
        figure = Figure(figsize=(COLUMN, 2.2), layout="constrained")
        axes = figure.subplots()
        for (name, values), marker in zip(seconds.items(), "os^Dv", strict=True):
            axes.plot(FACTORS, [v / values[0] for v in values], marker=marker, label=name)
        axes.plot(FACTORS, FACTORS, color="0.6", linestyle=":", label="linear")
        axes.set(xscale="log", yscale="log", xlabel="size", ylabel="processor time")
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_ticks(FACTORS, [f"x{factor}" for factor in FACTORS], minor=False)
            axis.set_minor_locator(NullLocator())
        figure.legend(loc="outside right center")
        return figure


def main(queries=BASE["queries"]):
    print(HEADER)
    base = BASE | {"queries": queries}
    study(**base | {"queries": 50})  # imports
    one = study(**base)
    seconds = {}
    for name in base:
        grown = [one]
        for factor in FACTORS[1:]:
            grown.append(study(**base | {name: base[name] * factor}))
        seconds[name] = grown
        report("scaling", f"{name} x 8", Measured(grown[-1], 0), one, "<= 8")
    save_figure(draw(seconds), *(ROOT / f"docs/figures/scaling.{end}" for end in ("svg", "png")))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))

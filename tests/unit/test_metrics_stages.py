"""Counterfactual evaluation, exposure, catalogue, power and TREC files, from files to files."""

import dataclasses
import shutil
import warnings
from math import log2

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from test_stages import SETTING, SPLITS, simulate, write_dataset

from ultrbench.datasets.split import write_split
from ultrbench.evaluation import counterfactual
from ultrbench.evaluation.metrics import compute_metrics, pad, padding_mask
from ultrbench.evaluation.trec import evaluate_run, read_qrels, read_run
from ultrbench.files import read_arrays, read_json, write_arrays, write_json
from ultrbench.propensity.estimate import Estimate, up_to_scale, write_estimate
from ultrbench.reporting.page import read_tables
from ultrbench.simulation.log import log_files, read_log
from ultrbench.simulation.truth import write_truth
from ultrbench.stages.catalogue import study_catalogue
from ultrbench.stages.counterfactual import evaluate_counterfactually
from ultrbench.stages.evaluation import POWER, compare_rankers
from ultrbench.stages.exposure import _standardised, measure_exposure
from ultrbench.stages.metrics_tables import (
    Rows,
    draw_counterfactual,
    draw_exposure,
    write_catalogue_tables,
    write_counterfactual_table,
    write_exposure_table,
    write_metrics_table,
    write_power_table,
)
from ultrbench.stages.policies import train_policy
from ultrbench.stages.trec import export_qrels, export_runs

TEST = SPLITS["test"]
THETA = np.array(SETTING["examination"])
SEEDS = (1, 2)
ROWS = Rows("here", {"Methods": ["good", "policy", "logging_policy"]}, {}, 4, "nDCG@5")


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """Two seeds of a random policy with its held-out log, and two rankers' scores."""
    root = tmp_path_factory.mktemp("world")
    data = write_dataset(root / "data")
    for seed in SEEDS:
        train_policy(
            data, root / f"{seed}.npz", root / f"{seed}.json", policy={"kind": "random"},
            policy_queries={"mode": "disjoint", "pool": 0.3}, list_size=4, seed=seed,
        )  # fmt: skip
        simulate_held_out(data, root, seed)
        policy = read_arrays(root / f"{seed}.npz")["test_all_scores"]
        write_arrays(root / f"policy{seed}.npz", {"grades": policy})
        write_arrays(root / f"good{seed}.npz", {"grades": TEST.grades.astype(float)})
    oracle = Estimate(THETA / THETA[0], THETA, np.zeros(4))
    for name, estimate in {
        "oracle": oracle, "naive": up_to_scale(np.ones(4)), "broken": up_to_scale(np.zeros(4)),
    }.items():  # fmt: skip
        write_estimate(estimate, root / f"{name}.csv", root / f"{name}.json")
    return data, root


def simulate_held_out(data, root, seed, folder="log", **setting):
    return simulate(
        data, root / f"{seed}.npz", root / f"{folder}{seed}", seed=seed,
        splits=["train", "vali", "test"], **setting,
    )  # fmt: skip


def by_seed(root, pattern):
    return {seed: root / pattern.format(seed) for seed in SEEDS}


def estimates(world, out, names=("naive", "oracle"), folder="log{}"):
    data, root = world
    scores = {(m, s): root / f"{m}{s}.npz" for m in ("good", "policy") for s in SEEDS}
    thetas = {(name, seed): root / f"{name}.csv" for name in names for seed in SEEDS}
    evaluate_counterfactually(
        data, by_seed(root, "{}.npz"), by_seed(root, folder), scores, thetas, out,
        validation="grades", eps=0.1, bootstraps=200,
    )  # fmt: skip
    return pd.read_csv(out)


def exposures(world, out, rounds=("policy", "policy")):
    data, root = world
    scores = {
        ("good", r, seed): root / f"{name}{seed}.npz"
        for r, name in enumerate(rounds)
        for seed in SEEDS
    }
    measure_exposure(
        data, by_seed(root, "{}.npz"), by_seed(root, "log{}"), scores, out, validation="grades"
    )
    return pd.read_csv(out)


def test_the_held_out_log_shows_test_queries_and_leaves_the_others_as_they_were(world, tmp_path):
    data, root = world
    simulate(data, root / "1.npz", tmp_path, seed=1)
    assert not (tmp_path / "test.lists.parquet").exists()
    for file in tmp_path.iterdir():
        assert file.read_bytes() == (root / "log1" / file.name).read_bytes()
    log = read_log(*log_files(root / "log1", "test"))
    assert log.documents.tolist() == read_arrays(root / "1.npz")["test_documents"].tolist()
    assert log.sessions.sum() == round(20_000 * len(TEST.query_ids) / 49)


def test_truths_are_the_mean_dcg_of_the_lists_by_session(world, tmp_path):
    frame = estimates(world, tmp_path / "e.csv")
    log = read_log(*log_files(world[1] / "log1", "test"))
    expected = []
    for documents, shown in zip(log.documents, log.shown, strict=True):
        grades = np.sort(TEST.grades[documents[shown]])[::-1]
        expected.append(sum((2.0**y - 1) / log2(j + 2) for j, y in enumerate(grades)))
    mean = np.average(expected, weights=log.sessions)
    rows = frame.query("ranker == 'good' and seed == 1 and form != 'self-normalised'")
    np.testing.assert_allclose(rows["truth"], mean)


def test_gains_of_the_highest_grades_do_not_overflow(world, tmp_path):
    data, root = world
    grades = (TEST.grades * 7 + 3).astype(np.uint8)  # up to 31
    data = shutil.copytree(data, tmp_path / "data")
    write_split(dataclasses.replace(TEST, grades=grades), data, "test")
    write_json(data / "dataset.json", read_json(data / "dataset.json") | {"ymax": 31})
    frame = estimates((data, root), tmp_path / "e.csv")
    log = read_log(*log_files(root / "log1", "test"))
    expected = []
    for documents, shown in zip(log.documents, log.shown, strict=True):
        best = sorted(grades[documents[shown]].tolist(), reverse=True)
        expected.append(sum((2**y - 1) / log2(j + 2) for j, y in enumerate(best)))
    rows = frame.query("ranker == 'good' and seed == 1 and form == 'IPS'")
    np.testing.assert_allclose(rows["truth"], np.average(expected, weights=log.sessions))
    assert frame.groupby("ranker").size().to_dict() == dict.fromkeys(
        ["good", "logging_policy", "policy", "random_order"], 2 * 3 * 2
    )


def test_the_true_theta_estimates_the_truth_and_a_wrong_one_does_not(world, tmp_path):
    frame = estimates(world, tmp_path / "e.csv").set_index(["theta", "form"])
    error = frame["estimate"] / frame["truth"] - 1
    assert error["oracle", "IPS"].abs().max() < 0.1
    assert (error["naive", "IPS"] < -0.1).all()
    missed = frame["high"] < frame["truth"]
    assert missed["naive", "IPS"].all() and not missed["oracle", "IPS"].any()
    # The scale of theta cancels; IPS borrows it from the simulator where there is none.
    assert frame["scale"]["oracle", "IPS"].unique().tolist() == ["its own"]
    assert frame["scale"]["naive", "clipped"].unique().tolist() == ["the simulator's"]
    assert frame["scale"]["naive", "self-normalised"].unique().tolist() == ["none"]
    assert frame["warnings"].str.contains("one order|deterministic").all()
    # No propensity is below a fifth of the first, so that clipping changes the draws alone.
    np.testing.assert_array_equal(
        frame.loc[("oracle", "IPS"), "estimate"], frame.loc[("oracle", "clipped"), "estimate"]
    )


def test_what_cannot_be_estimated_is_a_refusal_in_the_table(world, tmp_path):
    data, root = world
    for seed in SEEDS:
        simulate_held_out(data, root, seed, folder="dropped", empty_sessions="drop")
    frame = estimates(world, tmp_path / "e.csv", folder="dropped{}")
    assert frame["estimate"].isna().all()
    assert frame["warnings"].str.startswith("refused: The log has no session without a click").all()
    frame = estimates(world, tmp_path / "e.csv", names=("oracle", "broken"))
    broken = frame[frame["theta"] == "broken"]
    assert broken["warnings"].str.startswith("refused: theta is 0 at position 1").all()
    write_counterfactual_table(tmp_path / "e.csv", tmp_path / "table", ROWS)
    text = (tmp_path / "table.md").read_text()
    assert "refused: theta is 0" in text and "nan" not in text
    broken.to_csv(tmp_path / "broken.csv", index=False)
    draw_counterfactual({"weak": tmp_path / "broken.csv"}, [tmp_path / "b.png"], ["broken"], {})
    assert (tmp_path / "b.png").stat().st_size > 1000
    draw_counterfactual(
        {"weak": tmp_path / "e.csv"}, (tmp_path / "a.pdf", tmp_path / "a.png"), ["oracle"], {}
    )


def test_the_spread_is_that_of_the_error_where_policies_differ_in_worth():
    frame = pd.DataFrame({"theta": "a", "seed": [1, 1, 2, 2], "ranker": [*"xyxy"],
                          "truth": [1.0, 2.0, 5.0, 6.0], "low": 0.0, "high": 9.0})  # fmt: skip
    frame["estimate"] = frame["truth"] + [0.1, 0.3, 0.3, 0.5]
    # Each ranker's error moves by .2 between two seeds: variance .2^2 / 2.
    assert counterfactual.summarise_estimates(frame, ["theta"])["variance"][0] == pytest.approx(
        0.02
    )


def test_a_log_of_ones_own_has_estimates_without_a_truth(world, tmp_path):
    data, root = world
    keys = ["theta", "form", "seed", "ranker"]
    known = estimates(world, tmp_path / "e.csv").set_index(keys).sort_index()
    for seed in SEEDS:
        shutil.copytree(root / f"log{seed}", tmp_path / f"log{seed}")
        write_truth(tmp_path / f"log{seed}" / "truth.csv", np.empty(0))
    scores = {(m, s): root / f"{m}{s}.npz" for m in ("good", "policy") for s in SEEDS}
    thetas = {(name, seed): root / f"{name}.csv" for name in ("naive", "oracle") for seed in SEEDS}
    evaluate_counterfactually(
        data, by_seed(root, "{}.npz"), by_seed(tmp_path, "log{}"), scores, thetas,
        tmp_path / "own.csv", validation="grades", eps=None, bootstraps=200,
    )  # fmt: skip
    own = pd.read_csv(tmp_path / "own.csv").set_index(keys).sort_index()
    assert own["truth"].isna().all()
    # Without a simulator the scale of naive propensities is not known.
    assert set(own.index.droplevel([2, 3])) == {
        ("naive", "self-normalised"), ("oracle", "IPS"), ("oracle", "clipped"),
        ("oracle", "self-normalised"),
    }  # fmt: skip
    for name in ("naive", "oracle"):
        pd.testing.assert_series_equal(
            own["estimate"][name, "self-normalised"], known["estimate"][name, "self-normalised"]
        )
    write_counterfactual_table(tmp_path / "own.csv", tmp_path / "table", ROWS)
    text = (tmp_path / "table.md").read_text()
    assert "There is no truth" in text and "nan" not in text
    good = own["estimate"]["oracle", "IPS"].groupby("ranker").mean()["good"]
    assert f" {good:.3f} \\[" in text or f" {good:.3f} [" in text
    assert "| n/a | n/a |" in text


def test_counterfactual_numbers_repeat(world, tmp_path):
    estimates(world, tmp_path / "a.csv")
    estimates(world, tmp_path / "b.csv")
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()


def test_resampled_sums_of_many_groups_are_normal_in_the_limit(monkeypatch):
    rng = np.random.default_rng(0)
    count = rng.integers(1, 6, 3000)
    spread = rng.exponential(size=(3000, 2)) @ np.array([[1.0, 0.5], [0.0, 1.0]])
    poisson = counterfactual._resample_sessions(spread, count, 4000, rng)
    monkeypatch.setattr(counterfactual, "MANY", 0)
    limit = counterfactual._resample_sessions(spread, count, 4000, rng)
    covariance = (spread * count[:, None]).T @ spread
    for draws in (poisson, limit):
        np.testing.assert_allclose(np.cov(draws.T), covariance, rtol=0.12)
        z = draws / np.sqrt(np.diag(covariance))
        np.testing.assert_allclose(np.quantile(z, [0.025, 0.975], axis=0).T, 2 * [[-1.96, 1.96]],
                                   atol=0.15)  # fmt: skip


def test_exposure_of_a_policy_that_is_shown_again(world, tmp_path):
    frame = exposures(world, tmp_path / "x.csv").set_index(["method", "round", "seed"]).sort_index()
    first = frame.loc["logging_policy", 0].loc[1]
    lengths = np.diff(TEST.query_ptr)
    # Two places count of four; the Gini coefficient by its definition over pairs.
    assert first["Coverage"] == pytest.approx(np.mean(np.minimum(2, lengths) / lengths))
    pairs = []
    for n in lengths:
        x = np.append(THETA, np.zeros(20))[:n] * (np.arange(n) < 4)
        pairs.append(np.abs(x[:, None] - x).sum() / (2 * n * x.sum()))
    assert first["Gini"] == pytest.approx(np.mean(pairs))
    assert first["Serendipity"] == 0
    for round_ in (0, 1):
        np.testing.assert_allclose(frame.loc["good", round_].loc[1], first)


def test_another_order_spreads_exposure(world, tmp_path):
    frame = exposures(world, tmp_path / "x.csv", ("good", "policy"))
    frame = frame.groupby(["method", "round"]).mean()
    policy, first, second = (
        frame.loc[key] for key in (("logging_policy", 0), ("good", 0), ("good", 1))
    )
    assert first["Gini"] < policy["Gini"]
    assert first["Coverage"] > policy["Coverage"]
    assert first["Serendipity"] > 0 == second["Serendipity"]
    assert second["Coverage"] == first["Coverage"]
    assert second["Novelty"] == policy["Novelty"]  # of the last display alone
    write_exposure_table(tmp_path / "x.csv", tmp_path / "table", ROWS)
    assert "| Method | Gini@0 | Gini@1 | Coverage@0 |" in (tmp_path / "table.md").read_text()
    draw_exposure(
        {"weak": tmp_path / "x.csv"}, (tmp_path / "a.pdf", tmp_path / "a.png"), ["good"], {}
    )


def test_the_metrics_table_names_the_headline_and_its_user(tmp_path):
    rounds = pd.DataFrame(
        [("full", "grades", "good", r, s, 0.5 + r / 10 + s / 100) for r in (0, 1) for s in SEEDS],
        columns=["candidates", "validation", "method", "round", "seed", "RR@5"],
    )  # fmt: skip
    rounds.to_csv(tmp_path / "rounds.csv", index=False)
    write_metrics_table(
        tmp_path / "rounds.csv", tmp_path / "table",
        dataclasses.replace(ROWS, headline="RR@5"), ranking=("full", "grades"),
        metrics=["RR@5"],
    )  # fmt: skip
    text = (tmp_path / "table.md").read_text()
    assert "Headline metric: RR@5, whose assumed user reads down and stops at the first" in text
    assert "| Method | RR@5 |\n" in text
    numbers = pd.read_csv(tmp_path / "table.csv")
    assert numbers.loc[0, "RR@5"] == pytest.approx(0.615)  # of the last round
    assert numbers.loc[0, "RR@5 sd"] == pytest.approx(0.01 / np.sqrt(2))
    assert numbers.loc[0, "replicates"] == 2


def test_a_measure_that_is_not_known_is_a_column_without_numbers(tmp_path):
    # Of a single first place there is no diversity.
    frame = pd.DataFrame([
        {"method": m, "round": 0, "seed": s, "Gini": 0.5, "Coverage": 0.5, "Diversity": np.nan,
         "Novelty": 1.0, "Serendipity": 0.0} for m in ("good", "policy") for s in SEEDS
    ])  # fmt: skip
    frame.to_csv(tmp_path / "x.csv", index=False)
    write_exposure_table(tmp_path / "x.csv", tmp_path / "table", ROWS)
    text = (tmp_path / "table.md").read_text()
    assert "| Diversity@0 |" in text
    assert text.count("n/a") == 2
    assert "nan" not in text


def test_power_says_how_many_queries_a_difference_needs(tmp_path):
    rng = np.random.default_rng(0)
    base, noise = rng.random(50), rng.normal(0, 0.1, 50)
    values = {"naive": base, "good": base + noise, "policy": base, "aa": base + noise}
    parts = [
        pd.DataFrame({"candidates": "full", "validation": "grades", "method": m, "seed": 1,
                      "query": range(50), "nDCG@5": v, "AP": v})
        for m, v in values.items()
    ]  # fmt: skip
    pd.concat(parts).to_parquet(tmp_path / "q.parquet")
    compare_rankers(
        tmp_path / "q.parquet", tmp_path / "c.csv", tmp_path / "p.csv", reference="naive",
        metrics=["nDCG@5"], headline="nDCG@5", not_marked=["aa"], resamples=100, bootstraps=50,
    )  # fmt: skip
    power = pd.read_csv(tmp_path / "p.csv")
    assert list(power) == POWER
    assert power["method"].unique().tolist() == ["good"]  # policy never differs
    needed = power.set_index(["comparisons", "effect"])["queries"]
    for comparisons in (1, 2):
        z = norm.ppf(1 - 0.05 / comparisons / 2) + norm.ppf(0.8)
        assert needed[comparisons, 0.01] == np.ceil((z * noise.std(ddof=1) / 0.01) ** 2)
    write_power_table(tmp_path / "p.csv", tmp_path / "table", ROWS, ranking=("full", "grades"))
    assert f"{needed[1, 0.01]:,}" in (tmp_path / "table.md").read_text()


def test_where_no_method_differs_power_says_so(tmp_path):
    rows = [
        {"candidates": "full", "validation": "grades", "method": method, "seed": 1, "query": query,
         "nDCG@5": 0.1 * query}
        for method in ("naive", "good") for query in range(5)
    ]  # fmt: skip
    pd.DataFrame(rows).to_parquet(tmp_path / "q.parquet")
    compare_rankers(
        tmp_path / "q.parquet", tmp_path / "c.csv", tmp_path / "p.csv", reference="naive",
        metrics=["nDCG@5"], headline="nDCG@5", not_marked=[], resamples=100, bootstraps=50,
    )  # fmt: skip
    assert pd.read_csv(tmp_path / "c.csv")["p"].dropna().tolist() == [1.0]
    power = pd.read_csv(tmp_path / "p.csv")
    assert list(power) == POWER
    assert power.empty
    write_power_table(tmp_path / "p.csv", tmp_path / "table", ROWS, ranking=("full", "grades"))
    text = (tmp_path / "table.md").read_text()
    assert "No difference varies from query to query" in text
    [(caption, table)] = read_tables(text)
    assert caption.startswith("Power")
    assert table.blocks == ()


def test_the_catalogue_shows_a_swap_and_repeats(tmp_path):
    for name in ("a", "b"):
        study_catalogue(
            tmp_path / f"{name}.orders.csv", tmp_path / f"{name}.exposure.csv", items=1000,
            users=100, examination=[1.0, 0.5], seed=1,
        )  # fmt: skip
    for name in ("orders", "exposure"):
        one, other = (tmp_path / f"{run}.{name}.csv" for run in "ab")
        assert one.read_bytes() == other.read_bytes()
    orders = pd.read_csv(tmp_path / "a.orders.csv")
    assert sorted(orders["samples"].unique()) == [10, 30, 100, 300]
    assert orders["users"].unique().tolist() == [100]
    exposure = pd.read_csv(tmp_path / "a.exposure.csv").set_index("ranker")
    assert exposure.loc["popular", "Coverage"] < exposure.loc["personal", "Coverage"]
    assert exposure.loc["popular", "Gini"] > exposure.loc["personal", "Gini"]
    assert exposure.loc["popular", "Novelty"] < exposure.loc["personal", "Novelty"]
    write_catalogue_tables(
        tmp_path / "a.orders.csv", tmp_path / "a.exposure.csv", tmp_path / "sampled",
        tmp_path / "exposed", (tmp_path / "f.pdf", tmp_path / "f.png"),
    )  # fmt: skip
    assert "1,000 shared items and 100 users" in (tmp_path / "sampled.md").read_text()


def test_exported_runs_give_the_numbers_of_the_arrays(world, tmp_path):
    data, root = world
    export_qrels(data, tmp_path / "qrels.txt")
    export_runs(data, {("good.seed1", root / "policy1.npz", "grades"): tmp_path / "a" / "good.run"})
    names = ["nDCG@5", "ERR@5", "AP", "RR", "RBP(p=.8)@10"]
    ours = evaluate_run(
        read_run(tmp_path / "a" / "good.run"), read_qrels(tmp_path / "qrels.txt"), names, ymax=4
    )
    scores = read_arrays(root / "policy1.npz")["grades"]
    expected = compute_metrics(
        names, pad(scores, TEST.query_ptr, 0.0), pad(TEST.grades, TEST.query_ptr, 0),
        padding_mask(TEST.query_ptr), 4,
    )  # fmt: skip
    for name in names:
        np.testing.assert_allclose(ours[name], expected[name], atol=1e-12)


def test_features_are_standardised_where_they_are_huge_missing_or_constant():
    rng = np.random.default_rng(0)
    huge = (rng.normal(size=50) * 1e38).astype(np.float32)
    gone, constant = np.full(50, np.nan, np.float32), np.full(50, 3, np.float32)
    holed = np.where(np.arange(50) < 40, rng.normal(size=50), np.nan).astype(np.float32)
    rows = np.array([1, 45])
    with np.errstate(all="raise"), warnings.catch_warnings():
        warnings.simplefilter("error")
        scaled = _standardised(np.column_stack([huge, gone, constant, holed]), rows)
    expected = (huge.astype(float) - huge.mean(dtype=float)) / huge.std(dtype=float)
    np.testing.assert_allclose(scaled[rows, 0], expected[rows], rtol=1e-6)
    known = holed[:40].astype(float)
    np.testing.assert_allclose(scaled[1, 3], (known[1] - known.mean()) / known.std(), rtol=1e-6)
    assert not scaled[:, 1:3].any()
    assert scaled[45, 3] == 0
    assert not np.delete(scaled, rows, axis=0).any()

"""Errors of propensities, what logs can tell, and the gap ledger: from files to tables."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from toys import make_log

from ultrbench.errors import UserError
from ultrbench.evaluation.ledger import STEPS, ledger
from ultrbench.propensity.error import theta_error
from ultrbench.propensity.estimate import up_to_scale, write_estimate
from ultrbench.ranking.targets import expected_clicks, expected_ipw_weights, ipw_weights
from ultrbench.reporting.listing import Listing, listing_latex, listing_markdown
from ultrbench.simulation.log import log_files, write_log
from ultrbench.simulation.truth import write_truth
from ultrbench.stages.diagnosis import (
    NO_THETA,
    NO_TRUTH,
    UNKNOWN,
    EstimateFiles,
    LogFiles,
    error_frame,
    error_table,
    report_log,
    write_identifiability,
    write_propensity_errors,
)
from ultrbench.stages.ledger import PairOfTables, ledger_frame, write_ledger

THETA = np.array([0.8, 0.4, 0.2])
# 16 sessions of one list: 8, 3 and 1 clicks at its positions.
LOG = make_log([[0, 1, 2]], [(0, 0b001, 8), (0, 0b010, 3), (0, 0b100, 1), (0, 0, 4)])


def test_the_error_is_a_mean_over_positions_from_the_second_on():
    learned = np.array([0.5, 0.125, 0.25])  # ratios 1/4 and 1/2 against 1/2 and 1/4
    error = theta_error(learned, THETA, np.array([8, 3, 1]))
    half = np.log(2)
    assert error == pytest.approx((half, half, 0.0))
    assert theta_error(THETA * 7, THETA, np.ones(3)) == pytest.approx((0, 0, 0))


def test_an_estimate_that_is_too_small_below_the_top_has_a_negative_sign_and_clicks_weigh():
    learned = THETA * [1, np.exp(-0.4), 1]
    error = theta_error(learned, THETA, np.array([8, 3, 1]))
    assert error == pytest.approx((0.4 / 2, 0.4 * 3 / (3 + 1), -0.4 / 2))


def test_odd_propensities_have_odd_errors():
    clicks = np.array([8, 3, 0])
    assert theta_error(np.array([1, 0.5, 0]), THETA, clicks) == (np.inf, 0.0, -np.inf)
    assert np.isnan(theta_error(np.array([1.0]), THETA[:1], clicks[:1])).all()
    assert np.isnan(theta_error(THETA, THETA, np.array([8, 0, 0])).by_clicks)


def write_round(folder, *, by_position=True, truth=THETA, log=LOG):
    write_log(log, *log_files(folder, "train"))
    write_truth(folder / "truth.csv", truth, by_position=by_position)
    return folder


def estimated(root, relative, *, method="dla", seed=1, rounds, **outcome):
    files = [root / f"{method}.{seed}.{ending}" for ending in ("csv", "json")]
    write_estimate(up_to_scale(np.asarray(relative), **outcome), *files, kind=method)
    return EstimateFiles("weak", "static", method, seed, *files, rounds)


def test_replicates_are_averaged_with_their_standard_error(tmp_path):
    rounds = [write_round(tmp_path / "round0")]
    scored = [write_round(tmp_path / "scored", log=replace(LOG, scores=np.zeros((1, 3))))]
    true = [1, 0.5, 0.25]
    off = [1, 0.5 * np.exp(-0.2), 0.25 * np.exp(-0.2)]
    frame = error_frame(
        [
            estimated(tmp_path, true, rounds=rounds, trace=[[1, 1, 1], true]),
            estimated(tmp_path, off, seed=2, rounds=rounds, trace=[off], converged=False),
            estimated(tmp_path, off, method="ctr", rounds=rounds),
            estimated(tmp_path, off, method="upe_scaled", rounds=scored),
            estimated(tmp_path, off, method="upe_scaled", seed=2, rounds=rounds),
            estimated(tmp_path, off, method="crossfit", rounds=scored, identified=False),
        ]
    )
    assert frame["iteration"].tolist() == [1, 2, 1, 0, 0, 0, 0]
    assert frame["error"][0] == pytest.approx((np.log(2) + np.log(4)) / 2)
    dla, ctr, upe, crossfit = error_table(frame).to_dict("records")
    assert dla["error"] == pytest.approx(0.1)
    assert dla["error_se"] == pytest.approx(np.std([0, 0.2], ddof=1) / np.sqrt(2))
    assert dla["signed"] == pytest.approx(-0.1)
    assert (dla["converged"], dla["iterations"]) == (0.5, 1.5)
    assert ctr["error"] == pytest.approx(0.2)
    shares = [row["identified"] for row in (dla, ctr, upe, crossfit)]
    assert shares == [0, 0, 0.5, 0]  # scores are logged for one of the two replicates of UPE
    assert np.isnan(ctr["error_se"])


def test_no_error_is_printed_where_there_is_none(tmp_path):
    contextual = [write_round(tmp_path / "a", by_position=False)]
    own = [write_round(tmp_path / "b", truth=np.empty(0))]
    both = [write_round(tmp_path / "c"), tmp_path / "a"]
    nothing = np.full(3, np.nan)
    estimates = [
        estimated(tmp_path, THETA, method="ctr", rounds=contextual),
        estimated(tmp_path, THETA, method="dla", rounds=own, trace=[THETA.tolist()]),
        estimated(tmp_path, THETA, method="upe", rounds=both),
        estimated(tmp_path, nothing, method="vectorization", rounds=own, trace=[[1, 2, 3, 4]]),
    ]
    table = error_table(error_frame(estimates))
    assert table["note"].tolist() == [NO_TRUTH, UNKNOWN, NO_TRUTH, NO_THETA]
    assert table["error"].isna().all()
    assert table["iterations"].tolist() == [0, 1, 0, 1]
    order = ["ctr", "dla", "upe", "vectorization"]
    figure = [tmp_path / f"error.{ending}" for ending in ("pdf", "png")]
    write_propensity_errors(
        estimates, tmp_path / "error", figure, order=order, labels={}, dataset="mine"
    )
    text = (tmp_path / "error.md").read_text()
    assert "CTR \\[1\\] | - | - | - |" in text
    assert f"[3] {NO_THETA}" in text.replace("\\", "")
    assert "nan" not in text
    assert all(file.stat().st_size for file in figure)


def test_a_log_is_weighted_by_its_truth_or_by_its_click_rates(tmp_path):
    known = LogFiles("weak", "own", "initial", 1, [write_round(tmp_path / "a")])
    unknown = LogFiles(
        "weak", "own", "initial", 1, [write_round(tmp_path / "b", truth=np.empty(0))]
    )
    report = report_log(known)
    weighted = np.array([8, 3, 1]) / THETA
    assert report["weights"] == "truth"
    assert report["effective_clicks"] == pytest.approx(
        weighted.sum() ** 2 / (weighted / THETA).sum()
    )
    report = report_log(unknown)
    # Clicks over click rates are the 16 sessions at each of the three positions.
    assert report["weights"] == "click rates"
    assert report["effective_clicks"] == pytest.approx(48**2 / (16 * (16 / 8 + 16 / 3 + 16 / 1)))
    silent = make_log([[0, 1]], [(0, 0b01, 8), (0, 0, 8)])
    write_round(tmp_path / "c", truth=np.empty(0), log=silent)
    report = report_log(replace(unknown, rounds=[tmp_path / "c"]))
    assert report["effective_clicks"] == pytest.approx(8)


def test_the_report_says_which_estimators_can_work_and_takes_the_worst_replicate(tmp_path):
    swapped = make_log(
        [[0, 1, 2], [2, 1, 0], [1, 0, 2]],
        [(n, mask, 5) for n in range(3) for mask in (1, 2, 4, 0)],
        queries=[0, 0, 0],
        randomized=True,
    )
    logs = [
        LogFiles("weak", "static", "initial", 1, [write_round(tmp_path / "a")]),
        LogFiles("weak", "static", "randomized", 1, [write_round(tmp_path / "b", log=swapped)]),
        LogFiles("weak", "static", "randomized", 2, [write_round(tmp_path / "a")]),
        LogFiles("weak", "static", "shuffled", 1, [tmp_path / "b"]),
    ]
    write_identifiability(logs, tmp_path / "report.json", tmp_path / "table")
    assert len(json.loads((tmp_path / "report.json").read_text())) == 4
    table = pd.read_csv(tmp_path / "table.csv").set_index(["log", "estimator"])
    works = {log: table.loc[(log, "harvest, all"), "works"] for log in table.index.levels[0]}
    assert works == {"initial": "no", "randomized": "no", "shuffled": "yes"}
    assert table.loc[("randomized", "ctr"), "share_moved"] == pytest.approx((1 + 0) / 2)
    text = (tmp_path / "table.md").read_text()
    assert "no document was seen at two positions" in text
    assert "nan" not in text


def test_expected_weights_are_the_mean_of_weighted_clicks():
    gamma, learned = np.array([0.9, 0.1, 0.5]), np.array([1.0, 0.7, 0.2])
    lists = make_log([[0, 1, 2], [2, 1, 0]], queries=[0, 0])
    sessions = np.array([3000, 1000])
    clicks = sessions[:, None] * THETA * gamma[lists.documents]
    groups = [(n, 1 << k, round(clicks[n, k])) for n in range(2) for k in range(3)]
    empty = [(n, 0, sessions[n] - round(clicks[n].sum())) for n in range(2)]
    log = make_log(lists.documents, groups + empty, queries=[0, 0])
    expected = expected_ipw_weights(log, gamma, THETA, learned)
    assert expected.weights * 4000 == pytest.approx(ipw_weights(log, learned).weights)
    assert expected.rows.tolist() == [0, 1, 2]


def test_expected_weights_end_in_the_skylines_on_a_static_log():
    gamma = np.array([0.9, 0.1, 0.5])
    for learned, examination in ((np.ones(3), THETA), (THETA, None)):
        ours = expected_ipw_weights(LOG, gamma, THETA, learned)
        assert ours.weights == pytest.approx(expected_clicks(LOG, gamma, examination).weights)
    never = make_log([[0, 1, 2], [2, 1, 0]], queries=[0, 0])  # no session: lists count alike
    weights = expected_ipw_weights(never, gamma, THETA, np.ones(3)).weights
    assert weights == pytest.approx(gamma * [0.5, 0.4, 0.5])


def levels(seed=0, replicates=5, queries=40):
    rng = np.random.default_rng(seed)
    names = dict.fromkeys(name for step in STEPS.values() for name in step)
    return {name: rng.uniform(size=(replicates, queries)) for name in names}


def test_both_ways_of_the_ledger_lead_to_the_method():
    known = levels()
    steps = ledger(known, bootstraps=50, rng=np.random.default_rng(1)).set_index("step")
    value, end = steps["value"], known["method"].mean()
    up = known["policy"].mean() + value["clicks"] + value["correction"] + value["variance"]
    down = known["grades"].mean() + value["noise"] + value["theta"] + value["variance"]
    assert (up, down) == pytest.approx((end, end))
    assert (steps["low"] <= value).all()
    assert (value <= steps["high"]).all()


def test_a_step_that_is_the_same_everywhere_has_no_interval():
    known = levels()
    known["method"] = known["expected"] - 0.25
    steps = ledger(known, bootstraps=50, rng=np.random.default_rng(1)).set_index("step")
    assert steps.loc["variance", ["value", "low", "high"]].tolist() == pytest.approx([-0.25] * 3)


def per_query(path, values):
    rows = [
        {"candidates": "full", "validation": "grades", "method": method, "seed": seed}
        | {"query": f"q{q}", "nDCG@10": level[seed, q]}
        for method, level in values.items()
        for seed in range(level.shape[0])
        for q in range(level.shape[1])
    ]
    pd.DataFrame(rows).to_parquet(path)
    return path


def test_the_ledger_takes_each_level_from_its_table(tmp_path):
    known = levels(queries=6)
    finite = {"logging_policy": "policy", "dla": "method", "labeled": "grades", "naive": "policy"}
    infinite = {"naive": "naive", "dla": "expected", "oracle": "oracle"}
    tables = [
        per_query(tmp_path / name, {method: known[level] for method, level in part.items()})
        for name, part in (("finite", finite), ("infinite", infinite))
    ]
    pair = PairOfTables("weak", "static", [("dla", "naive", "oracle", "labeled")], *tables)
    frame = ledger_frame([pair], metric="nDCG@10", bootstraps=20).set_index("step")
    for step, (start, end) in STEPS.items():
        assert frame.loc[step, "value"] == pytest.approx((known[end] - known[start]).mean())
        assert frame.loc[step, "start"] == pytest.approx(known[start].mean())
    figure = [tmp_path / f"ledger.{ending}" for ending in ("pdf", "png")]
    more = {"metric": "nDCG@10", "bootstraps": 20, "order": ["dla"], "labels": {}}
    write_ledger([pair], tmp_path / "ledger", figure, **more, dataset="mine")
    row = (tmp_path / "ledger.md").read_text().splitlines()[-1]
    assert row.startswith(f"| DLA | {known['method'].mean():.3f} | ")
    assert "weak, static: policy" in (tmp_path / "ledger.tex").read_text()
    with pytest.raises(UserError, match="needs a setting with clicks of kind pbm"):
        write_ledger([], tmp_path / "ledger", figure, **more, dataset="mine")


def test_listings_escape_their_texts():
    listing = Listing(["a|b", "50 %"], [("my_block", [["x_1", "≥ 0"]])])
    assert "a\\|b" in listing_markdown(listing, "One_two.")
    latex = listing_latex(listing, "One_two.", "tab:one")
    for text in (r"\caption{One\_two.}", r"50 \%", r"x\_1 & $\ge$ 0 \\", r"\emph{my\_block}"):
        assert text in latex

"""The comparison table: its numbers, its mark, and what it refuses."""

import numpy as np
import pandas as pd
import pytest

from ultrbench.errors import UserError
from ultrbench.evaluation.compare import compare_methods
from ultrbench.evaluation.significance import fisher_randomization, holm
from ultrbench.reporting.tables import comparison_cells


def per_query(values):
    """Frame of ``{method: array [seeds, queries]}``, in scrambled row order."""
    frames = [
        pd.DataFrame(
            {
                "seed": np.repeat(np.arange(array.shape[0]) + 1, array.shape[1]),
                "method": method,
                "query": np.tile(np.arange(array.shape[1]) + 100, array.shape[0]),
                "nDCG@10": array.ravel(),
                "ERR@5": array.ravel() / 2,
            }
        )
        for method, array in values.items()
    ]
    return pd.concat(frames).reset_index(drop=True)


def compare(values, **options):
    settings = {"resamples": 2000, "bootstraps": 500, "seed": 3} | options
    table = compare_methods(per_query(values), "naive", ["ERR@5", "nDCG@10"], **settings)
    return table.set_index(["method", "metric"])


def noise(scale, seeds=5, queries=60, key=1):
    return np.random.default_rng(key).normal(0, scale, (seeds, queries))


BASE = noise(0.2, key=0)


def test_numbers_are_those_of_the_differences_averaged_over_seeds():
    values = {"naive": BASE, "better": BASE + 0.05 + noise(0.1), "copy": BASE}
    table = compare(values)
    row = table.loc[("better", "nDCG@10")]
    paired = (values["better"] - BASE).mean(axis=0)
    assert row["mean"] == pytest.approx(values["better"].mean())
    assert row["reference_mean"] == pytest.approx(BASE.mean())
    assert row["difference"] == pytest.approx(paired.mean())
    assert (row["wins"], row["ties"], row["losses"]) == ((paired > 0).sum(), 0, (paired < 0).sum())
    assert row["effect_size"] == pytest.approx(paired.mean() / paired.std(ddof=1))
    assert row["low"] < row["difference"] < row["high"]
    assert (row["queries"], row["replicates"], row["resamples"]) == (60, 5, 2000)
    expected = fisher_randomization(paired, resamples=2000, rng=np.random.default_rng(0)).p[0]
    assert row["p"] == pytest.approx(expected, abs=4 * 0.5 / np.sqrt(2000))
    copy = table.loc[("copy", "nDCG@10")]
    assert (copy["p"], copy["ties"], copy["low"], copy["high"]) == (1.0, 60, 0.0, 0.0)


def test_the_reference_has_no_test_and_the_family_is_one_metric_of_the_claimed_methods():
    table = compare(
        {"naive": BASE, "a": BASE + noise(0.1), "aa": BASE + noise(0.1, key=2), "b": BASE + 0.01},
        not_marked=["aa"],
    )
    untested = ["p", "p_holm", "p_max_t", "p_bh", "low", "high", "mde"]
    assert table.loc["naive", untested].isna().all(axis=None)
    assert table.loc[("aa", "nDCG@10"), "p"] <= 1
    adjusted = table[["p_holm", "p_max_t", "p_bh"]].notna().all(axis=1)
    assert list(table.index[adjusted]) == [("a", "nDCG@10"), ("b", "nDCG@10")]
    np.testing.assert_array_equal(
        table.loc[adjusted, "p_holm"], holm(table.loc[adjusted, "p"].to_numpy())
    )
    # Of two: the larger p as it is, the smaller doubled but never above the larger.
    small, large = sorted(table.loc[adjusted, "p"])
    np.testing.assert_allclose(sorted(table.loc[adjusted, "p_bh"]), [min(2 * small, large), large])


def test_a_mark_needs_p_and_interval_and_replicates():
    rows = np.linspace(-0.2, 0.2, 60)
    by_replicate = np.array([-0.3, -0.1, 0.1, 0.3, 0.4])[:, None]
    table = compare(
        {
            "naive": BASE,
            "better": BASE + 0.1 + noise(0.05),
            "worse": BASE - 0.1 + noise(0.05, key=2),
            # Small p on these logs, yet other logs may well say the opposite.
            "lucky": BASE + by_replicate + 0.05 * rows,
            "aa": BASE + 0.1 + noise(0.05, key=3),
        },
        not_marked=["aa"],
    ).xs("nDCG@10", level="metric")
    assert table["significant"].to_dict() == {
        "naive": False,
        "better": True,
        "worse": True,
        "lucky": False,
        "aa": False,
    }
    assert table.loc["lucky", "p"] <= 0.05
    assert table.loc["lucky", "low"] < 0 < table.loc["lucky", "high"]
    assert table.loc["aa", "p"] <= 0.05 and table.loc["aa", "low"] > 0

    four = compare({"naive": BASE[:4], "better": BASE[:4] + 0.1 + noise(0.05)[:4]})
    assert four.loc[("better", "nDCG@10"), "p"] <= 0.05
    assert four.loc[("better", "nDCG@10"), "low"] > 0
    assert not four["significant"].any()

    few = compare({"naive": BASE[:, :4], "better": BASE[:, :4] + 0.1})
    assert few.loc[("better", "nDCG@10"), "low"] > 0
    assert few.loc[("better", "nDCG@10"), "p"] == 2 / 16
    assert not few["significant"].any()


def test_row_order_and_reruns_change_nothing():
    frame = per_query({"naive": BASE, "better": BASE + noise(0.1)})
    options = {"resamples": 500, "bootstraps": 200, "seed": 1}
    first = compare_methods(frame, "naive", ["nDCG@10"], **options)
    order = np.random.default_rng(1).permutation(len(frame))
    shuffled = frame.iloc[order].sort_values("method", key=lambda m: m != "naive", kind="stable")
    pd.testing.assert_frame_equal(first, compare_methods(shuffled, "naive", ["nDCG@10"], **options))


def test_unequal_query_sets_and_other_mistakes_are_sentences():
    frame = per_query({"naive": BASE, "better": BASE + 0.1})
    with pytest.raises(UserError, match=r"better, seed 5 lacks 1 of the 60 queries .* 159"):
        compare_methods(frame.iloc[:-1], "naive", ["nDCG@10"])
    with pytest.raises(UserError, match=r"naive, seed 1, query 100 stands 2 times"):
        compare_methods(pd.concat([frame, frame.iloc[:1]]), "naive", ["nDCG@10"])
    with pytest.raises(
        UserError, match=r"reference 'oracle' is not among the methods: naive, better"
    ):
        compare_methods(frame, "oracle", ["nDCG@10"])
    with pytest.raises(UserError, match=r"no column nDCG@3"):
        compare_methods(frame, "naive", ["nDCG@3"], "nDCG@3")
    with pytest.raises(UserError, match=r"family, nDCG@10, is not among those compared: ERR@5"):
        compare_methods(frame, "naive", ["ERR@5"])
    frame.loc[3, "nDCG@10"] = np.nan
    with pytest.raises(UserError, match=r"naive, seed 1, query 103 is missing"):
        compare_methods(frame, "naive", ["nDCG@10"])


def test_the_reference_alone_makes_a_table_without_tests():
    table = compare({"naive": BASE})
    assert table["p"].isna().all() and not table["significant"].any()


def test_one_query_says_nothing_of_others():
    values = {"naive": noise(0.1, queries=1), "better": noise(0.1, queries=1) + 1}
    row = compare(values).reset_index().query("method == 'better' and metric == 'nDCG@10'")
    row = row.to_dict("records")[0]
    assert row["difference"] > 0.9
    assert np.isnan([row["low"], row["high"], row["mde"]]).all()
    assert (row["p"], row["significant"]) == (1.0, False)
    cells = comparison_cells(row)
    assert cells[3] == cells[-2] == "n/a"
    assert "nan" not in " ".join(cells)


def test_replicates_that_cancel_out_are_no_evidence():
    seeds = np.array([0.86, 0.54, 0.3, 0.42, 0.03])
    swapped = seeds[[2, 1, 3, 4, 0]]
    table = compare({"naive": np.tile(seeds, (12, 1)).T, "swapped": np.tile(swapped, (12, 1)).T})
    row = table.loc[("swapped", "nDCG@10")]
    assert row["p"] == 1
    assert np.isnan(row["effect_size"])


def test_differences_that_are_equal_but_for_rounding_have_no_effect_size():
    values = {"naive": BASE, "better": BASE + 0.1}
    row = compare(values).loc[("better", "nDCG@10")]
    assert np.isnan(row["effect_size"]) and row["mde"] == 0


def test_what_can_be_found_allows_for_the_spread_over_replicates():
    shifts = np.array([-0.2, -0.1, 0.0, 0.1, 0.3])
    row = compare({"naive": BASE, "better": BASE + shifts[:, None]}).loc[("better", "nDCG@10")]
    # (1.96 + .84) standard errors of a mean of five, as the bootstrap has them: over n, not n - 1
    assert row["mde"] == pytest.approx(2.8016 * shifts.std() / np.sqrt(5), rel=0.1)

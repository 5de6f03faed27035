"""Claims: what a file of them may say, each verdict, and that the shipped ones can be run."""

from copy import deepcopy

import numpy as np
import pandas as pd
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from key_tables import ROOT
from scipy.stats import t, ttest_1samp, ttest_rel

from ultrbench.configuration import read_config
from ultrbench.errors import UserError
from ultrbench.files import write_json
from ultrbench.propensity.error import theta_error
from ultrbench.propensity.estimate import up_to_scale, write_estimate
from ultrbench.reporting.claims import (
    RULES,
    claim_parts,
    load_claims,
    overall,
    seed_statistics,
    verdict,
)
from ultrbench.simulation.truth import write_truth
from ultrbench.stages.claims import judge_claims
from ultrbench.yaml_files import read_yaml

schema = read_yaml(ROOT / "workflow/schemas/claims.schema.yaml")
shipped = load_claims(ROOT / "config/claims.yaml", schema)
default = read_config(
    read_yaml(ROOT / "config/config.yaml"),
    read_yaml(ROOT / "workflow/schemas/config.schema.yaml"),
)
overlay = read_yaml(ROOT / "config/claims-study.yaml")

BETTER = {
    "statement": "UPE wins.",
    "source": "A paper",
    "kind": "better",
    "measure": "nDCG@10",
    "methods": ["upe"],
    "against": ["dla"],
    "where": {"policies": ["strong"], "settings": ["static"], "candidates": ["full"]},
    "margin": 0.005,
}
SIGNED = BETTER | {
    "measure": "signed_theta_error",
    "where": {"policies": ["strong"], "settings": ["static"]},
    "margin": 0.05,
}
ALONE = {key: value for key, value in SIGNED.items() if key != "against"}
CONFIG = {
    "interface": "result_page",
    "study": {"datasets": ["mine"], "policies": ["strong"], "settings": ["static"]},
    "settings": {"static": {"methods": ["dla", "upe", "naive", "vectors", "labeled"]}},
    "methods": {
        **{name: {"estimator": name} for name in ("dla", "upe", "naive", "vectors", "rem")},
        "labeled": {"target": "grades"},
    },
    "estimators": {
        **{name: {"kind": name} for name in ("dla", "upe", "naive", "rem")},
        "vectors": {"kind": "vectorization"},
    },
    "evaluation": {"candidates": ["truncated", "full"], "cutoffs": [1, 10]},
    "training": {"validation": ["grades", "clicks"]},
    "policy_queries": {"mode": "disjoint"},
}


def load(tmp_path, **changes):
    claim = {key: value for key, value in (BETTER | changes).items() if value is not None}
    (tmp_path / "claims.yaml").write_text(yaml.safe_dump({"mine": claim}))
    return load_claims(tmp_path / "claims.yaml", schema)["mine"]


WHERE = BETTER["where"]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"margin": -1}, "mine.margin: a number of at least 0 is wanted, got -1"),
        ({"margin": None}, "mine.margin is missing"),
        ({"kind": "betters"}, "Did you mean better"),
        ({"methods": []}, "mine.methods is empty"),
        ({"methods": "upe"}, "mine.methods: a list"),
        ({"where": WHERE | {"policy": ["weak"]}}, "Did you mean policies"),
        ({"where": WHERE | {"validation": ["grade"]}}, "mine.where.validation[0]: grades, clicks"),
        ({"where": {"policies": ["weak"]}}, "mine.where.settings is missing"),
        ({"measure": "ndcg"}, "mine.measure: a metric such as nDCG@10"),
        ({"measure": "nDCG@0"}, "mine.measure: a metric such as nDCG@10"),
        ({"against": None}, "mine.against is missing: a list is wanted for the kind better"),
        ({"against": ["dla", "upe"]}, "mine.against: upe is compared with itself"),
        ({"kind": "unbiased"}, "mine.against: without effect, as unbiased compares with the truth"),
        ({"kind": "too_small", "against": None}, "signed_theta_error is wanted for the kind too"),
        ({"kind": "larger"}, "signed_theta_error is wanted for the kind larger, got nDCG@10"),
        ({"measure": "signed_theta_error"}, "a metric or theta_error is wanted for the kind bett"),
        ({"measure": "theta_error"}, "mine.where.candidates: without effect"),
    ],
)
def test_a_file_of_claims_is_refused_in_a_sentence(tmp_path, changes, said) -> None:
    with pytest.raises(UserError) as caught:
        load(tmp_path, **changes)
    assert said in str(caught.value)
    assert str(tmp_path / "claims.yaml") in str(caught.value)


@pytest.mark.parametrize("text", ["[a, b]", "a: 1\na: 2", "a: {", "3"])
def test_what_is_no_mapping_of_claims_is_refused(tmp_path, text) -> None:
    (tmp_path / "claims.yaml").write_text(text)
    with pytest.raises(UserError, match=r"claims\.yaml"):
        load_claims(tmp_path / "claims.yaml", schema)


def test_a_sound_claim_is_read_as_it_is(tmp_path) -> None:
    assert load(tmp_path) == BETTER
    alone = ALONE | {"kind": "too_small"}
    assert load(tmp_path, **(alone | {"against": None})) == alone


def test_kinds_of_the_schema_are_those_with_a_rule() -> None:
    kinds = schema["additionalProperties"]["properties"]["kind"]["enum"]
    assert kinds == list(RULES)


def test_what_the_shipped_claims_name_is_defined_in_the_shipped_configs() -> None:
    settings = {**default["settings"], **overlay["settings"]}
    for claim in shipped.values():
        assert set(claim["methods"]) | set(claim.get("against", [])) <= set(default["methods"])
        assert set(claim["where"]["policies"]) <= set(default["policies"])
        assert set(claim["where"]["settings"]) <= set(settings)


def test_margins_are_those_fixed_beforehand() -> None:
    for claim in shipped.values():
        assert claim["margin"] == (0.005 if claim["measure"].startswith("nDCG") else 0.05)


def test_the_claims_study_makes_every_comparison() -> None:
    config = deepcopy(default) | {"interface": "result_page"}
    config["study"] |= overlay["study"]
    for name, setting in overlay["settings"].items():
        config["settings"][name] = config["settings"].get(name, {}) | setting
    parts = claim_parts(shipped, config)
    assert [part.absent for part in parts if part.absent] == []
    assert {part.claim for part in parts} == set(shipped)


def parts_of(**changes):
    return claim_parts({"mine": BETTER | changes}, CONFIG)


def test_every_combination_is_a_part_and_validations_are_those_of_the_study() -> None:
    where = WHERE | {"candidates": ["truncated", "full"]}
    parts = parts_of(where=where, methods=["upe", "naive"])
    assert len(parts) == len(set(parts)) == 2 * 2 * 2
    assert {part.validation for part in parts} == {"grades", "clicks"}
    assert not any(part.absent for part in parts)


@pytest.mark.parametrize(
    ("changes", "absent"),
    [
        ({"methods": ["rem"]}, "method rem in setting static"),
        ({"methods": ["upee"]}, "method upee, which no configuration defines"),
        ({"where": WHERE | {"policies": ["weak"]}}, "policy weak"),
        ({"where": WHERE | {"settings": ["dynamic"]}}, "setting dynamic"),
        ({"where": WHERE | {"policy_queries": "shared"}}, "policy_queries.mode shared"),
        ({"where": WHERE | {"validation": ["fixed"]}}, "validation by fixed"),
        ({"measure": "nDCG@5"}, "metric nDCG@5 among those it tests"),
        (SIGNED | {"against": ["vectors"]}, "propensities of vectors, which gives none"),
        (SIGNED | {"against": ["labeled"]}, "propensities of labeled, which gives none"),
        (SIGNED | {"against": ["logging_policy"]}, "method logging_policy in setting static"),
        ({"against": ["logging_policy"]}, ""),
        (
            {"where": {"policies": ["weak"], "settings": ["dynamic"]}},
            "policy weak; setting dynamic",
        ),
    ],
)
def test_what_the_study_lacks_is_said(changes, absent) -> None:
    assert {part.absent for part in parts_of(**changes)} == {absent}


@pytest.mark.parametrize(
    ("kind", "low", "high", "word"),
    [
        ("better", 0.051, 0.2, "holds"),
        ("better", 0.05, 0.2, "inconclusive"),  # on the margin is not beyond it
        ("better", -0.2, 0.049, "does not hold"),  # an advantage, but below the margin
        ("better", -0.2, 0.05, "inconclusive"),
        ("larger", 0.051, 0.2, "holds"),
        ("larger", -0.2, 0.04, "does not hold"),
        ("at_least_as_good", -0.049, -0.01, "holds"),  # worse, but not by the margin
        ("at_least_as_good", -0.05, 0.2, "inconclusive"),
        ("at_least_as_good", -0.2, -0.051, "does not hold"),
        ("too_small", -0.2, -0.051, "holds"),
        ("too_small", -0.2, -0.05, "inconclusive"),
        ("too_small", -0.049, 0.2, "does not hold"),
        ("unbiased", -0.049, 0.049, "holds"),
        ("unbiased", 0.01, 0.02, "holds"),
        ("unbiased", -0.05, 0.0, "inconclusive"),
        ("unbiased", -0.2, 0.2, "inconclusive"),
        ("unbiased", 0.051, 0.2, "does not hold"),
        ("unbiased", -0.2, -0.051, "does not hold"),
    ],
)
def test_verdict_by_interval_and_margin(kind, low, high, word) -> None:
    assert verdict(kind, low, high, 0.05, 5) == word
    assert verdict(kind, low, high, 0.05, 4) == "inconclusive"


@pytest.mark.parametrize("kind", RULES)
def test_an_interval_that_is_not_known_decides_nothing(kind) -> None:
    assert verdict(kind, np.nan, np.nan, 0.05, 5) == "inconclusive"
    assert verdict(kind, 0.5, np.nan, 0.05, 5) == "inconclusive"


@given(
    st.sampled_from(list(RULES)),
    st.floats(-1, 1),
    st.floats(0, 1),
    st.floats(0, 1),
    st.floats(0, 1),
)
def test_a_wider_interval_never_decides_what_a_narrow_one_does_not(
    kind, low, width, more, margin
) -> None:
    narrow = verdict(kind, low, low + width, margin, 5)
    wide = verdict(kind, low - more, low + width + more, margin, 5)
    assert wide in (narrow, "inconclusive")


@pytest.mark.parametrize(
    ("words", "word"),
    [
        ({"grades": ["holds", "holds"], "clicks": ["holds"]}, "holds"),
        ({"grades": ["holds", "does not hold"], "clicks": ["does not hold"]}, "does not hold"),
        ({"grades": ["inconclusive", "does not hold"]}, "does not hold"),
        ({"grades": ["not run", "does not hold"]}, "does not hold"),
        ({"grades": ["not run", "holds", "inconclusive"]}, "not run"),
        ({"grades": ["holds", "inconclusive"]}, "inconclusive"),
        ({"grades": ["holds"], "clicks": ["does not hold"]}, "depends on validation"),
        ({"grades": ["holds"], "clicks": ["holds", "inconclusive"]}, "depends on validation"),
        ({"grades": ["holds"], "clicks": ["not run"]}, "not run"),
        ({"": ["holds", "holds"]}, "holds"),
    ],
)
def test_a_claim_is_as_good_as_its_weakest_comparison(words, word) -> None:
    assert overall((v, w) for v, ws in words.items() for w in ws) == word


def test_seed_statistics_are_those_of_the_t_test() -> None:
    values = np.random.default_rng(1).normal(0.1, 0.2, 6)
    found, expected = seed_statistics(values), ttest_1samp(values, 0)
    interval = expected.confidence_interval(0.95)
    assert [found["low"], found["high"]] == pytest.approx([interval.low, interval.high])
    assert found["p"] == pytest.approx(expected.pvalue)
    factor = t.ppf(0.975, 5) + t.ppf(0.8, 5)
    assert found["mde"] == pytest.approx(factor * values.std(ddof=1) / 6**0.5)


def test_seed_statistics_of_one_seed_equal_seeds_and_a_missing_one() -> None:
    one = seed_statistics([0.3])
    assert one["effect"] == 0.3
    assert np.isnan([one["low"], one["high"], one["p"]]).all()
    for value in (0.25, 0.7):  # the mean of three .7 is off by rounding
        equal = seed_statistics([value] * 3)
        assert (equal["low"], equal["high"]) == (equal["effect"], equal["effect"])
        assert equal["effect"] == pytest.approx(value, abs=1e-15)
        assert np.isnan([equal["p"], equal["effect_size"]]).all()
    missing = seed_statistics([0.1, np.nan, 0.2])
    assert np.isnan([missing["effect"], missing["low"]]).all()


QUERIES, POSITIONS = 40, 4
TRUTH = 0.8 / np.arange(1, POSITIONS + 1)


def write_metrics(path, gaps, seeds=5):
    """Write per-query nDCG of `dla` and of methods that differ from it by a gap a validation."""
    rng = np.random.default_rng(5)
    base = rng.uniform(0.3, 0.7, (seeds, QUERIES))
    frames = []
    for method, by_validation in {"dla": {"grades": 0, "clicks": 0}, **gaps}.items():
        noise = rng.normal(0, 0.002, base.shape) * (method != "dla")
        for validation, gap in by_validation.items():
            frame = {
                "candidates": "full",
                "validation": validation,
                "method": method,
                "seed": np.repeat(np.arange(seeds), QUERIES),
                "query": np.tile(np.arange(QUERIES), seeds),
                "nDCG@10": (base + gap + noise).ravel(),
            }
            frames.append(pd.DataFrame(frame))
    pd.concat(frames).to_parquet(path, index=False)


def write_theta(folder, name, factors, *, by_position=True, converged=True):
    """Write estimates that are `factor` times too large below position 1, one a seed."""
    files = []
    for seed, factor in enumerate(factors):
        stem = folder / f"{name}{seed}"
        table, report, truth = (stem.with_suffix(e) for e in (".csv", ".json", ".truth.csv"))
        relative = TRUTH / TRUTH[0] * np.append(1, np.full(POSITIONS - 1, factor))
        write_estimate(up_to_scale(relative, converged=converged), table, report)
        write_truth(truth, TRUTH, by_position=by_position)
        files.append((table, report, truth))
    return files


def judge(tmp_path, claims, *, gaps=None, thetas=None, entry="letor", queries=1000, seeds=5):
    write_json(
        tmp_path / "dataset.json",
        {"entry": {"kind": entry}, "splits": {"test": {"queries": queries}}},
    )
    write_metrics(tmp_path / "q.parquet", gaps or {}, seeds)
    outputs = tmp_path / "claims.csv", tmp_path / "claims.md"
    estimates = {("mine", "strong", "static", name): made for name, made in (thetas or {}).items()}
    judge_claims(
        claims,
        claim_parts(claims, CONFIG),
        {"mine": tmp_path / "dataset.json"},
        {("mine", "strong", "static"): tmp_path / "q.parquet"},
        estimates,
        {place: [report for _, report, _ in files] for place, files in estimates.items()},
        *outputs,
        resamples=500,
        bootstraps=200,
        labels={"upe": "Mine"},
    )
    return pd.read_csv(outputs[0], keep_default_na=False), outputs[1].read_text()


@pytest.mark.parametrize(
    ("grades", "clicks", "word"),
    [
        (0.02, 0.02, "holds"),
        (0.0, 0.0, "does not hold"),
        (0.005, 0.005, "inconclusive"),
        (0.02, -0.02, "depends on validation"),
    ],
)
def test_each_verdict_on_a_metric_is_reached(tmp_path, grades, clicks, word) -> None:
    gaps = {"upe": {"grades": grades, "clicks": clicks}}
    table, page = judge(tmp_path, {"mine": BETTER}, gaps=gaps)
    assert set(table["claim_verdict"]) == {word}
    assert table["effect"].astype(float).tolist() == pytest.approx([grades, clicks], abs=5e-4)
    assert table["queries"].tolist() == [QUERIES] * 2
    assert f"| mine | {word} |" in page
    assert "Mine, DLA" in page
    assert "nan" not in page


def test_a_ranker_on_propensities_that_did_not_settle_is_remarked(tmp_path) -> None:
    gaps = {"upe": {"grades": 0.02, "clicks": 0.02}}
    thetas = {"upe": write_theta(tmp_path, "upe", [1.0] * 5, converged=False)}
    table, page = judge(tmp_path, {"mine": BETTER}, gaps=gaps, thetas=thetas)
    assert set(table["verdict"]) == {"holds"}
    assert set(table["note"]) == {"5 of 5 estimates of upe did not converge"}
    assert "2 of 2 hold; estimates of 2 did not converge" in page


def test_a_method_that_is_not_there_is_named(tmp_path) -> None:
    gaps = {"upe": {"grades": 0.02, "clicks": 0.02}}
    claim = BETTER | {"against": ["dla", "rem"]}
    table, page = judge(tmp_path, {"mine": claim}, gaps=gaps)
    assert table["verdict"].tolist() == ["holds", "not run"] * 2
    assert set(table["claim_verdict"]) == {"not run"}
    assert "the study lacks method rem in setting static" in page
    assert "| 2 of 4 hold, 2 not run |" in page


def test_a_comparison_is_judged_by_its_own_reference(tmp_path) -> None:
    gaps = {"upe": {"grades": 0.02, "clicks": 0.02}, "naive": {"grades": -0.03, "clicks": -0.03}}
    claims = {
        "mine": BETTER | {"against": ["dla", "naive"]},
        "other": BETTER | {"methods": ["naive"]},
    }
    table, _ = judge(tmp_path, claims, gaps=gaps)
    effects = table.set_index(["claim", "validation", "against"])["effect"].astype(float)
    assert effects["mine", "grades", "naive"] == pytest.approx(0.05, abs=1e-3)
    assert effects["other", "clicks", "dla"] == pytest.approx(-0.03, abs=1e-3)


def test_one_replicate_gives_no_verdict(tmp_path) -> None:
    table, page = judge(
        tmp_path,
        {"mine": BETTER, "theta": ALONE | {"kind": "unbiased"}},
        gaps={"upe": {"grades": 0.2, "clicks": 0.2}},
        thetas={"upe": write_theta(tmp_path, "upe", [1.0])},
        seeds=1,
    )
    assert set(table["verdict"]) == {"inconclusive"}
    assert set(table["note"]) == {"fewer than five replicates"}
    assert "nan" not in page


@pytest.mark.parametrize(
    ("kind", "upe", "word"),
    [
        ("too_small", 0.7, "holds"),
        ("too_small", 1.0, "does not hold"),
        ("unbiased", 1.01, "holds"),
        ("unbiased", 0.7, "does not hold"),
        ("unbiased", 0.95, "inconclusive"),  # log .95 = -.051
    ],
)
def test_each_verdict_on_a_signed_error_is_reached(tmp_path, kind, upe, word) -> None:
    factors = upe * np.exp([-0.01, -0.005, 0, 0.005, 0.01])
    thetas = {"upe": write_theta(tmp_path, "upe", factors)}
    table, _ = judge(tmp_path, {"mine": ALONE | {"kind": kind}}, thetas=thetas)
    assert table["verdict"].tolist() == [word]
    assert float(table["effect"][0]) == pytest.approx(np.log(upe))


@pytest.mark.parametrize(
    ("kind", "measure", "upe", "effect", "word"),
    [
        ("better", "theta_error", 0.9, np.log(0.9 / 0.6), "holds"),
        ("better", "theta_error", 1 / 0.5, np.log(0.5 / 0.6), "does not hold"),
        ("larger", "signed_theta_error", 1 / 0.5, np.log(2 / 0.6), "holds"),
        ("at_least_as_good", "theta_error", 0.6, 0, "holds"),
    ],
)
def test_two_thetas_are_compared_by_seed(tmp_path, kind, measure, upe, effect, word) -> None:
    jitter = np.exp([-0.2, -0.1, 0, 0.1, 0.2])
    thetas = {"dla": write_theta(tmp_path, "dla", 0.6 * np.exp([-0.02, -0.01, 0, 0.01, 0.02]))}
    thetas["upe"] = write_theta(tmp_path, "upe", upe * jitter**0.05)
    claim = SIGNED | {"kind": kind, "measure": measure}
    table, _ = judge(tmp_path, {"mine": claim}, thetas=thetas)
    assert float(table["effect"][0]) == pytest.approx(effect, abs=1e-9)
    assert table["verdict"].tolist() == [word]

    def errors(name):
        for file, *_ in thetas[name]:
            found = theta_error(pd.read_csv(file)["relative"].to_numpy(), TRUTH, np.ones(POSITIONS))
            yield found.error if measure == "theta_error" else found.signed

    paired = [list(errors(name)) for name in ("upe", "dla")]
    assert float(table["p"][0]) == pytest.approx(ttest_rel(*paired).pvalue)


def test_no_error_is_printed_where_examination_is_no_function_of_position(tmp_path) -> None:
    thetas = {"upe": write_theta(tmp_path, "upe", [1] * 5, by_position=False)}
    table, _ = judge(tmp_path, {"mine": ALONE | {"kind": "unbiased"}}, thetas=thetas)
    assert table[["verdict", "effect"]].to_numpy().tolist() == [["not run", ""]]
    assert "no function of position" in table["note"][0]


def test_estimates_that_did_not_converge_or_are_unusable_are_said(tmp_path) -> None:
    thetas = {"upe": write_theta(tmp_path, "upe", [1, 1, 1, 1, 0], converged=False)}
    table, _ = judge(tmp_path, {"mine": ALONE | {"kind": "unbiased"}}, thetas=thetas)
    assert table["verdict"].tolist() == ["inconclusive"]
    assert "5 of 5 estimates of upe did not converge" in table["note"][0]
    assert "not above 0" in table["note"][0]


@pytest.mark.parametrize(
    ("entry", "queries", "marked"),
    [("letor", 500, False), ("letor", 43, True), ("synthetic", 6562, True)],
)
def test_generated_and_small_data_illustrate(tmp_path, entry, queries, marked) -> None:
    gaps = {"upe": {"grades": 0.02, "clicks": 0.02}}
    table, page = judge(tmp_path, {"mine": BETTER}, gaps=gaps, entry=entry, queries=queries)
    assert set(table["illustration"].astype(str)) == {str(marked)}
    assert ("holds (illustration)" in page) is marked


def test_the_same_results_give_the_same_bytes(tmp_path) -> None:
    gaps = {"upe": {"grades": 0.02, "clicks": 0.0}}
    written = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        judge(tmp_path / name, {"mine": BETTER}, gaps=gaps)
        written.append([(tmp_path / name / f"claims.{e}").read_bytes() for e in ("csv", "md")])
    assert written[0] == written[1]

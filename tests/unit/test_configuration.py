"""The configuration: refusals, defaults, the shipped files, and the schema against README."""

import re
from collections.abc import Iterator
from copy import deepcopy
from functools import reduce
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from key_tables import BLOCK, README, ROOT, SCHEMA, objects, table, tables

from ultrbench.configuration import read_config
from ultrbench.datasets.registry import load_registry
from ultrbench.errors import UserError
from ultrbench.evaluation.interfaces import INTERFACES
from ultrbench.evaluation.metrics import parse_metric
from ultrbench.simulation.behaviour import CLICK_MODELS
from ultrbench.study import (
    described_metrics,
    final_round,
    headline_metric,
    measured_metrics,
    method_log,
    metric_names,
    stopping_cutoff,
    study_methods,
)
from ultrbench.yaml_files import (
    duplicate_keys,
    misreadings,
    parse_yaml,
    read_yaml,
    refuse_endless_aliases,
)

schema = read_yaml(SCHEMA)
default = read_yaml(ROOT / "config/config.yaml")
registry = {
    name: {"ymax": 4}
    for name in ["synthetic", "istella-s", "yahoo", "mslr-web30k", "mslr-web10k-slice"]
}


def overlaid(base: dict, over: dict) -> dict:
    """Merge as Snakemake's --configfile does."""
    merged = deepcopy(base)
    for key, value in over.items():
        inner = merged.get(key)
        both = isinstance(value, dict) and isinstance(inner, dict)
        merged[key] = overlaid(inner, value) if both else deepcopy(value)
    return merged


def problems(over: dict, base: dict = default) -> list[str]:
    """The sentences that refuse the default configuration with something laid over it."""
    with pytest.raises(UserError) as caught:
        read_config(overlaid(base, over), schema, registry)
    first, *sentences = str(caught.value).split("\n- ")
    plural = "s" if len(sentences) > 1 else ""
    assert first == f"The configuration has {len(sentences)} problem{plural}:"
    return sentences


def accepted(over: dict) -> dict:
    return read_config(overlaid(default, over), schema, registry)


def test_harvesting_is_accepted_where_documents_move() -> None:
    harvested = {"methods": {"ctr": {"estimator": "harvest"}}}
    accepted(overlaid(harvested, {"settings": {"static": {"display": "plackett_luce"}}}))
    accepted({"settings": {"static": {"methods": ["naive", "harvest", "fixed_effects"]}}})
    own = {"methods": {"harvest": {"log": "initial"}}}
    accepted(own | {"settings": {"dynamic": {"methods": ["naive", "harvest"]}}})


def test_schema_is_a_json_schema_that_describes_and_closes_every_mapping() -> None:
    Draft202012Validator.check_schema(schema)
    for name, part in objects(schema):
        # A function of one's own has arguments that only it knows.
        assert part["additionalProperties"] == ({} if name.endswith(", own") else False), name
        for key, value in part["properties"].items():
            assert value.get("description", "").endswith("."), (name, key)


@pytest.mark.parametrize("file", ["config.yaml", "paper.yaml", "slice.yaml", "claims-study.yaml"])
def test_shipped_configs_are_valid(file: str) -> None:
    path = ROOT / "config" / file
    config = overlaid(default, read_yaml(path))
    sound = read_config(config, schema, registry, [ROOT / "config/config.yaml", path])
    assert read_config(sound, schema, registry) == sound
    assert len(sound["study"]["seeds"]) >= 5


def test_the_paper_grid_has_both_budgets_and_every_method() -> None:
    sound = accepted(read_yaml(ROOT / "config/paper.yaml"))
    static, dynamic = sound["settings"]["static"], sound["settings"]["dynamic"]
    assert static["sessions"] == dynamic["rounds"] * dynamic["sessions"] == 10_000 * 256
    assert set(static["methods"]) == set(sound["methods"])
    assert {method["ranker"] for method in sound["methods"].values()} == set(sound["rankers"])


def test_default_config_says_what_the_schema_says() -> None:
    for section in ("policy_queries", "training", "evaluation"):
        for key, value in default[section].items():
            assert value == schema["properties"][section]["properties"][key]["default"], key
    for key in ("list_size", "registry", "downloads"):
        assert default[key] == schema["properties"][key]["default"]


def test_nested_defaults_are_filled_and_types_settled() -> None:
    config = {key: default[key] for key in schema["required"]}
    config = overlaid(config, {"settings": {"static": {"sessions": 3e5, "eta": 2}}})
    before = deepcopy(config)
    sound = read_config(config, schema, registry)
    assert config == before
    assert sound["list_size"] == 10
    assert sound["policy_queries"] == {"mode": "disjoint", "pool": 0.3}
    assert sound["policies"]["weak"] == {"kind": "ranking_svm", "share": 0.01, "cost": 200}
    assert sound["estimators"]["dla"] == {
        "kind": "dla",
        "folds": 2,
        "trees": 150,
        "leaves": 4,
        "learning_rate": 0.3,
        "tolerance": 0.01,
        "max_iterations": 50,
    }
    static = sound["settings"]["static"]
    assert static["examination"] == [0.68, 0.61, 0.48, 0.34, 0.28, 0.2, 0.11, 0.1, 0.08, 0.06]
    assert [type(static[key]) for key in ("sessions", "rounds", "eta", "eps")] == [
        int,
        int,
        float,
        float,
    ]
    assert sound["methods"]["naive"]["lists"] == "all"
    assert sound["methods"]["labeled"] == {"target": "grades", "ranker": "softmax"}
    assert sound["training"]["min_data_in_leaf"] == 20
    assert sound["evaluation"]["resamples"] == 100_000


def test_defaults_are_not_shared_between_readings() -> None:
    accepted({})["settings"]["static"]["examination"].append(1)
    assert len(accepted({})["settings"]["static"]["examination"]) == 10


def test_derived_values() -> None:
    sound = accepted({"evaluation": {"cutoffs": [3, 5]}})
    assert study_methods(sound, "dynamic") == ["naive", "oracle", "crossfit", "naive_aa", "labeled"]
    assert [method_log(sound, m) for m in ("dla", "randomization", "naive_aa", "labeled")] == [
        "initial",
        "randomized",
        "replica",
        "initial",
    ]
    assert [final_round(sound, "dynamic", m) for m in ("crossfit", "labeled")] == [3 - 1, 0]
    assert final_round(sound, "static", "dla") == 0
    assert headline_metric(sound) == "nDCG@5"
    assert headline_metric(accepted({})) == "nDCG@10"
    assert metric_names(sound) == ["nDCG@3", "nDCG@5", "ERR@3", "ERR@5"]


@pytest.mark.parametrize(
    ("interface", "headline"),
    {
        "result_page": "nDCG@10",
        "feed": "RBP(p=.8)@10",
        "navigation": "ERR@10",
        "single_answer": "RR@10",
        "carousel": "Hit@5",
        "exhaustive": "AP",
    }.items(),
)
def test_the_interface_chooses_the_headline_and_not_what_stops_training(
    interface: str, headline: str
) -> None:
    sound = accepted({"interface": interface})
    assert headline_metric(sound) == headline
    assert headline in metric_names(sound)
    assert described_metrics(sound)[0] == headline
    assert stopping_cutoff(sound) == 10
    named = [*metric_names(sound), *measured_metrics(sound), *described_metrics(sound)]
    assert all(parse_metric(name).name == name for name in named)


def test_the_schema_knows_every_interface() -> None:
    assert schema["properties"]["interface"]["enum"] == list(INTERFACES)


def own_log(**keys: object) -> dict:
    """A study of one setting with a click log of one's own."""
    own = {"click_log": "/nowhere", "methods": ["naive", "labeled"]} | keys
    return {"study": {"settings": ["own"]}, "settings": {"own": own}}


REFUSALS = [
    # unknown keys, with a suggestion
    (
        {"settings": {"static": {"session": 5}}},
        "settings.static.session is not a key of the configuration. Did you mean sessions?",
    ),
    (
        {"seeds": [1, 2]},
        "seeds is not a key of the configuration. "
        "Did you mean study.seeds, in a file given to --configfile?",
    ),
    (
        {"rankers": {"softmax": {"zzz": 1}}},
        "rankers.softmax.zzz is not a key of the configuration. There is: objective.",
    ),
    (
        {"policies": {"weak": {"trees": 5}}},
        "policies.weak.trees is not a key of the configuration. There is: kind, share, cost, "
        "policy_queries, list_size.",
    ),
    # wrong types
    (
        {"settings": {"static": {"eta": "abc"}}},
        "settings.static.eta: a number from 0 to 100 is wanted, got the text 'abc'.",
    ),
    (
        {"settings": {"static": {"eta": "1e-3"}}},
        "settings.static.eta: a number from 0 to 100 is wanted, got the text '1e-3'. Write a "
        "number without quotes, a power of ten as 1.0e-3 or 2.5e+6, and a list of numbers into a "
        "file for --configfile, as --config passes them as text.",
    ),
    (
        {"study": {"seeds": "[1,2]"}},
        "study.seeds: a list, each item a whole number from 0 to 2147483647 is wanted, got the "
        "text '[1,2]'. --config passes a list or mapping as text: write it into a file and give "
        "that to --configfile.",
    ),
    ({"list_size": True}, "list_size: a whole number from 1 to 63 is wanted, got true."),
    ({"list_size": 2.5}, "list_size: a whole number from 1 to 63 is wanted, got 2.5."),
    ({"training": None}, "training: a mapping is wanted, got nothing."),
    ({"policies": {"weak": [1]}}, "policies.weak: a mapping is wanted, got a list."),
    (
        {"settings": {"static": {"eta": float("nan")}}},
        "settings.static.eta: a number from 0 to 100 is wanted, got nan.",
    ),
    # ranges and choices
    ({"list_size": 64}, "list_size: a whole number from 1 to 63 is wanted, got 64."),
    (
        {"list_size": 10**400},
        f"list_size: a whole number from 1 to 63 is wanted, got 1{'0' * 59}.",
    ),
    (
        {"settings": {"static": {"rounds": 1e300}}},
        "settings.static.rounds: a whole number from 1 to 256 is wanted, got 1e+300.",
    ),
    (
        {"settings": {"static": {"eps": 1}}},
        "settings.static.eps: a number of at least 0 and below 1 is wanted, got 1.",
    ),
    (
        {"settings": {"static": {"examination": [0.5, 0]}}},
        "settings.static.examination[1]: a number above 0 and up to 1 is wanted, got 0.",
    ),
    (
        {"study": {"seeds": [1, -1]}},
        "study.seeds[1]: a whole number from 0 to 2147483647 is wanted, got -1.",
    ),
    ({"study": {"seeds": [3, 1, 3]}}, "study.seeds lists 3 twice; name each once."),
    (
        {"evaluation": {"candidates": []}},
        "evaluation.candidates is empty: a list, each item truncated or full is wanted.",
    ),
    ({"downloads": ""}, "downloads is empty: a text is wanted."),
    (
        {"settings": {"static": {"empty_sessions": "dropp"}}},
        "settings.static.empty_sessions: keep, drop or resample is wanted, got the text 'dropp'. "
        "Did you mean drop?",
    ),
    (
        {"policies": {"weak": {"kind": "rankingsvm"}}},
        "policies.weak.kind: random, ranking_svm, lambdamart or a function in a file "
        "(mine.py:estimate) is wanted, got the text "
        "'rankingsvm'. Did you mean ranking_svm?",
    ),
    # names
    (
        {"policies": {"Weak 2": {"kind": "random"}}},
        "policies.Weak 2: a name becomes a folder and takes up to 64 lower-case letters, digits, "
        "- and _, a letter or digit first.",
    ),
    (
        {"rankers": {False: {"objective": "softmax"}}},
        "rankers.False: a name becomes a folder and takes up to 64 lower-case letters, digits, "
        "- and _, a letter or digit first.",
    ),
    (
        {"study": {"policies": ["weak\n"]}},
        "study.policies[0]: a name becomes a folder and takes up to 64 lower-case letters, "
        "digits, - and _, a letter or digit first, got the text 'weak\\n'.",
    ),
    (
        {"study": {"datasets": ["../x"]}},
        "study.datasets[0]: a name becomes a folder and takes up to 64 lower-case letters, "
        "digits, - and _, a letter or digit first, got the text '../x'.",
    ),
    (
        {"policies": {"a" * 65: {"kind": "random"}}},
        f"policies.{'a' * 65}: a name becomes a folder and takes up to 64 lower-case letters, "
        "digits, - and _, a letter or digit first.",
    ),
    (
        {"settings": {"a" + 20 * "p": {"sessions": 1, "methods": ["naive"]}}},
        f"settings.a{20 * 'p'}: a name must not end in 20 times the same; take another.",
    ),
    (
        {"policies": {21 * "3-a": {"kind": "random"}}},
        f"policies.{21 * '3-a'}: a name must not end in 20 times the same; take another.",
    ),
    (
        {"tuning": {"seeds": [9], "setting": "static", "grids": {}}},
        "tuning.grids is empty: a mapping is wanted.",
    ),
    (
        {"study": {"reference": "dlaa"}},
        "study.reference: no method dlaa is defined. Did you mean dla?",
    ),
    # labels
    (
        {"methods": {"dla": {"label": " Naive  clicks "}}, "study": {"settings": ["static"]}},
        "methods.dla.label: Naive clicks is also what naive is called in the tables of static; "
        "take another.",
    ),
    *(
        (
            {"methods": {"dla": {"label": label}}},
            "methods.dla.label: a line of characters that can be printed is wanted, got "
            f"{label!r}.",
        )
        for label in ("\ufeffDLA", "D\nLA", "D\x00", "\u202eDLA", " ")
    ),
    (
        {"methods": {"dla": {"label": "Naive clicks"}}, "study": {"settings": ["static"]}},
        "methods.dla.label: Naive clicks is also what naive is called in the tables of static; "
        "take another.",
    ),
    (
        {"methods": {"dla": {"label": "d" * 41}}},
        f"methods.dla.label: a text of up to 40 characters is wanted, got the text '{'d' * 41}'.",
    ),
    # what LightGBM and the solver of the ranking SVM cannot take
    (
        {"training": {"leaves": 131073}},
        "training.leaves: a whole number from 2 to 131072 is wanted, got 131073.",
    ),
    (
        {"policies": {"weak": {"cost": 1e-300}}},
        "policies.weak.cost: a number from 0.0001 to 1000000000 is wanted, got 1e-300.",
    ),
    (
        {"training": {"min_data_in_leaf": 2**32 + 5}},
        "training.min_data_in_leaf: a whole number from 1 to 1000000000 is wanted, got 4294967301.",
    ),
    (
        {"estimators": {"truth": {"kind": "oracle"}}},
        "estimators.truth: the name is kept for training.validation_theta; take another.",
    ),
    # names that nothing bears
    (
        {"study": {"datasets": ["synthetc"]}},
        "study.datasets: no data set synthetc is defined. Did you mean synthetic?",
    ),
    (
        {"study": {"policies": ["perfect"]}},
        "study.policies: no policy perfect is defined. There is: random, weak, strong.",
    ),
    (
        {"study": {"settings": ["static", "dynamics"]}},
        "study.settings: no setting dynamics is defined. Did you mean dynamic?",
    ),
    (
        {"settings": {"static": {"methods": ["naive", "orcle"]}}},
        "settings.static.methods: no method orcle is defined. Did you mean oracle?",
    ),
    (
        {"methods": {"naive": {"estimator": "nave"}}},
        "methods.naive.estimator: no estimator nave is defined. Did you mean naive?",
    ),
    (
        {"methods": {"labeled": {"ranker": "hinge"}}},
        "methods.labeled.ranker: no ranker hinge is defined. There is: softmax, pairwise, joint.",
    ),
    (
        {"training": {"validation_theta": "known"}},
        "training.validation_theta: no estimator known is defined. "
        f"There is: {', '.join(default['estimators'])}.",
    ),
    # what is missing
    (
        {"policies": {"weak2": {}}, "study": {"policies": ["weak2"]}},
        "policies.weak2.kind is missing: random, ranking_svm, lambdamart or a function in a file "
        "(mine.py:estimate) is wanted.",
    ),
    (
        {"policies": {"weak2": {"kind": "ranking_svm"}}, "study": {"policies": ["weak2"]}},
        "policies.weak2.share is missing: a number above 0 and up to 1 is wanted.",
    ),
    (
        {"settings": {"own": {"methods": ["naive"]}}, "study": {"settings": ["own"]}},
        "settings.own needs sessions or click_log.",
    ),
    (
        {"methods": {"new": {}}, "settings": {"static": {"methods": ["naive", "new"]}}},
        "methods.new needs estimator or target.",
    ),
    # combinations
    (
        {"settings": {"static": {"click_log": "mine"}}},
        "settings.static has sessions and click_log, which exclude each other. A file laid over "
        "another takes no key away: give the new definition a name of its own.",
    ),
    (
        {"methods": {"naive": {"target": "grades"}}},
        "methods.naive has estimator and target, which exclude each other. A file laid over "
        "another takes no key away: give the new definition a name of its own.",
    ),
    (
        {"study": {"reference": "ctr"}},
        "study.reference: ctr is not in settings.dynamic.methods, where the others are tested "
        "against it; add it there or choose another reference.",
    ),
    (
        {"policy_queries": {"pool": 0.2}},
        "policies.strong.share: at most policy_queries.pool (0.2) is wanted while "
        "policy_queries.mode is disjoint, got 0.3.",
    ),
    (
        {"methods": {"dla": {"estimator": "randomization"}}},
        "methods.dla.log: randomized is wanted, got initial: the estimator randomization is of "
        "kind randomization and needs shuffled lists.",
    ),
    (
        {"methods": {"naive_aa": {"lists": "randomized"}}},
        "methods.naive_aa.lists: randomized needs `log: randomized`, as there are no shuffled "
        "lists in the replica log.",
    ),
    (
        {"methods": {"ctr": {"estimator": "harvest"}}},
        "settings.static.methods: ctr has an estimator of kind harvest and needs documents that "
        "were seen at several positions, and the initial log shows one list a query in the one "
        "round; give the method `log: randomized`, or the setting `display: plackett_luce`.",
    ),
    (
        {
            "settings": {"dynamic": {"methods": ["naive", "rem"], "training_rounds": "last"}},
            "methods": {"rem": {"estimator": "fixed_effects"}},
        },
        "settings.dynamic.methods: rem has an estimator of kind fixed_effects and needs documents "
        "that were seen at several positions, and the initial log shows one list a query in a "
        "round, and `training_rounds: last` uses no other; give the method `log: randomized`, or "
        "the setting `display: plackett_luce`.",
    ),
    (
        {"training": {"validation": ["fixed", "grades"]}},
        "training.validation: fixed stands alone, as it keeps all trees; got fixed, grades.",
    ),
    (
        {"training": {"validation_theta": "randomization"}},
        "training.validation_theta: randomization is of kind randomization and needs shuffled "
        "lists, which the validation clicks do not have; take truth or another estimator.",
    ),
    (
        {"methods": {"paird": {"ranker": "softmax"}}},
        "methods.paird.ranker: an estimator of kind paird trains its own ranker; take one of "
        "objective joint.",
    ),
    (
        {"methods": {"dla": {"ranker": "joint"}}},
        "methods.dla.ranker: joint is the ranker of an estimator of kind paird, vectorization or "
        "lightgbm_position, and dla is of kind dla; take another ranker.",
    ),
    (
        {"methods": {"labeled": {"ranker": "joint"}}},
        "methods.labeled.ranker: joint is the ranker of an estimator, and a target has none.",
    ),
    (
        {"methods": {"paird": {"weights": "affine"}}},
        "methods.paird.weights: without effect, as a joint ranker is trained already; leave it "
        "out.",
    ),
    (
        {"methods": {"dla": {"weights": "affine"}}},
        "methods.dla.weights: affine needs an estimator of kind trust or oracle, and dla is of "
        "kind dla.",
    ),
    (
        {"methods": {"ips_dcm": {"weights": "ipw"}}},
        "methods.ips_dcm.weights: dcm is wanted, got ipw: an estimator of kind last_clicks gives "
        "no propensities.",
    ),
    (
        {"methods": {"affine": {"log": "initial"}}},
        "methods.affine.log: randomized is wanted, got initial: the estimator trust is of kind "
        "trust and needs shuffled lists.",
    ),
    (
        {"methods": {"affine": {"weights": "policy_aware"}}},
        "methods.affine.weights: affine is wanted, got policy_aware: an estimator of kind trust "
        "gives no propensities.",
    ),
    (
        {"training": {"validation_theta": "vectorization"}},
        "training.validation_theta: vectorization is of kind vectorization, which gives no "
        "propensities; take truth or another estimator.",
    ),
    (
        {"evaluation": {"metrics": ["AP", "MRR@10"]}},
        "evaluation.metrics: write RR@10 for MRR@10, as the tables do.",
    ),
    (
        {"evaluation": {"metrics": ["NDCG@10"]}},
        "evaluation.metrics: There is no metric 'NDCG'; there are nDCG, DCG, ERR, P, R, AP, RR, "
        "RBP, RBPresidual, Hit; is nDCG meant?",
    ),
    (
        {"list_size": 5},
        "evaluation.cutoffs: at most list_size (5) is wanted for the truncated candidates, got 10.",
    ),
]


@pytest.mark.parametrize(("over", "sentence"), REFUSALS, ids=[s[:50] for _, s in REFUSALS])
def test_refusals_are_one_sentence_each(over: dict, sentence: str) -> None:
    assert problems(over) == [sentence]


def test_all_mistakes_are_listed_at_once() -> None:
    listed = problems(
        {
            "study": {"seeds": [1, 1], "policies": ["wek"]},
            "settings": {"static": {"eta": -1, "session": 5}},
            "training": {"trees": 0, "validation": ["fixed", "clicks"]},
            "list_size": 7,
        }
    )
    starts = [
        "study.seeds",
        "study.policies",
        "settings.static.eta",
        "settings.static.session",
        "training.trees",
        "training.validation",
        "evaluation.cutoffs",
    ]
    assert sorted(s.split(" ")[0].rstrip(":") for s in listed) == sorted(starts)


@pytest.mark.parametrize("section", ["study", "policies", "settings", "methods", "estimators"])
def test_one_broken_section_gives_no_second_complaint(section: str) -> None:
    assert problems({section: 3}) == [f"{section}: a mapping is wanted, got 3."]
    without = {key: value for key, value in default.items() if key != section}
    assert problems({}, without) == [f"{section} is missing: a mapping is wanted."]


def test_a_broken_definition_is_not_called_undefined() -> None:
    assert problems({"methods": {"naive": 3}}) == ["methods.naive: a mapping is wanted, got 3."]
    assert len(problems({"settings": {"static": {"sessions": "many"}}})) == 1


@pytest.mark.parametrize("config", [None, [], "text", 3])
def test_a_config_that_is_no_mapping_is_refused(config: object) -> None:
    with pytest.raises(UserError, match=r"the configuration: a mapping is wanted"):
        read_config(config, schema)


def test_unused_definitions_may_be_incomplete_but_not_wrong() -> None:
    over = {"policies": {"later": {}}, "settings": {"later": {"methods": ["naive"]}}}
    over |= {"methods": {"later": {"ranker": "softmax"}}, "rankers": {"later": {}}}
    accepted(over)
    accepted({"policies": {"later": {"kind": "lambdamart"}}})
    assert len(problems({"policies": {"later": {"kind": "lambdamart", "share": 2}}})) == 1
    assert len(problems(overlaid(over, {"study": {"policies": ["later"]}}))) == 1


def test_a_share_beyond_the_pool_is_fine_when_queries_are_shared() -> None:
    accepted({"policy_queries": {"mode": "shared", "pool": 0.2}})


def test_cutoffs_beyond_the_list_are_fine_on_full_candidates() -> None:
    accepted({"list_size": 5, "evaluation": {"candidates": ["full"]}})


def test_a_click_log_needs_its_files(tmp_path: Path) -> None:
    over = own_log(click_log=str(tmp_path))
    over["training"] = {"validation": ["grades"]}
    wanted = ["train.lists.parquet", "train.clicks.parquet"]
    tail = f"not found in {tmp_path}; config/README.md says what each file holds and when it is"
    assert problems(over) == [
        f"settings.own.click_log: {', '.join(wanted)} {tail} needed.",
    ]
    for file in wanted:
        (tmp_path / file).touch()
    accepted(over)

    over["settings"]["own"]["methods"] = ["naive", "oracle"]
    assert problems(over) == [
        f"settings.own.click_log: truth.csv (wanted by the estimator oracle) {tail} needed."
    ]
    over["training"] = {"validation": ["clicks"], "validation_theta": "naive"}
    over["settings"]["own"]["methods"] = ["naive"]
    assert problems(over) == [
        "settings.own.click_log: vali.lists.parquet (wanted by training.validation: clicks), "
        f"vali.clicks.parquet (wanted by training.validation: clicks) {tail} needed."
    ]
    for split in ("lists", "clicks"):
        (tmp_path / f"vali.{split}.parquet").touch()
    over["training"]["validation_theta"] = "truth"
    assert problems(over) == [
        "settings.own.click_log: truth.csv (wanted by training.validation_theta: truth) "
        f"{tail} needed."
    ]


def test_a_click_log_rules_out_what_only_a_simulation_has(tmp_path: Path) -> None:
    for file in ("train.lists", "train.clicks"):
        (tmp_path / f"{file}.parquet").touch()
    methods = ["naive", "naive_aa", "labeled", "examined_skyline"]
    over = own_log(click_log=str(tmp_path), methods=methods, rounds=2, eps=0.2, eta=1)
    over["study"]["datasets"] = ["synthetic", "yahoo"]
    over["training"] = {"validation": ["grades"]}
    assert problems(over) == [
        "settings.own.rounds: a click_log has 1 round, got 2.",
        "settings.own.eps: without effect, as click_log replaces the simulation; leave it out.",
        "settings.own.methods: naive_aa wants a second draw, and a click_log is one.",
        "settings.own.methods: examined_skyline has a target that only a simulation knows.",
        "settings.own.click_log: it belongs to one data set, and study.datasets has synthetic, "
        "yahoo; run them apart.",
    ]


def test_every_click_model_of_the_registry_can_be_configured() -> None:
    settings = schema["properties"]["settings"]["additionalProperties"]["properties"]
    options = settings["click_model"]["oneOf"]
    kinds = [kind for option in options for kind in option["properties"]["kind"].get("enum", [])]
    assert sorted(kinds) == sorted(CLICK_MODELS)
    for kind in kinds:
        accepted({"settings": {"static": {"click_model": {"kind": kind}}}})


def test_a_setting_is_position_based_unless_it_says_otherwise() -> None:
    assert accepted({})["settings"]["static"]["click_model"] == {"kind": "pbm"}
    over = {"settings": {"static": {"click_model": {"kind": "dcm", "continuation": [1, 0]}}}}
    assert accepted(over)["settings"]["static"]["click_model"]["continuation"] == [1.0, 0.0]


@pytest.mark.parametrize(
    "setting, sentence",
    [
        (
            {"click_model": {"kind": "cascade"}, "eta": 2},
            "eta: without effect, as click_model is cascade; leave it out.",
        ),
        (
            {"click_model": {"kind": "ubm"}, "examination": [1]},
            "examination: without effect, as click_model is ubm; leave it out.",
        ),
        (
            {"temperature": 2},
            "temperature: without effect, as display is policy; leave it out.",
        ),
        (
            {"click_model": {"kind": "pbm", "continuation": [1]}},
            "click_model.continuation is not a key of the configuration. There is: kind.",
        ),
        (
            {"click_model": {"kind": "dbn"}},
            "click_model.kind: pbm, ubm, cascade, additive, dcm, trust, contextual or a function "
            "in a file (mine.py:estimate) is wanted, "
            "got the text 'dbn'.",
        ),
        (
            {"click_model": {"kind": "contextual", "etas": [0, -1]}},
            "click_model.etas[1]: a number from 0 to 100 is wanted, got -1.",
        ),
        (
            {"click_model": "ubm"},
            "click_model: a mapping is wanted, got the text 'ubm'.",
        ),
    ],
)
def test_keys_of_a_click_model(setting: dict, sentence: str) -> None:
    assert problems({"settings": {"static": setting}})[0].startswith(f"settings.static.{sentence}")


def test_keys_that_stand_twice_are_named_with_file_and_line(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("settings:\n  static: {eta: 1, eta: 2}\n\n  dynamic: {}\nsettings: {}\n")
    listed = [
        f"{path}:5: the key settings stands twice, first in line 1; keep one of them.",
        f"{path}:2: the key eta stands twice, first in line 2; keep one of them.",
    ]
    assert duplicate_keys(path) == listed
    with pytest.raises(UserError) as caught:
        read_config(default, schema, registry, [path])
    assert str(caught.value).split("\n- ")[1:] == listed
    with pytest.raises(UserError, match=r"mine.yaml:5"):
        read_yaml(path)


def test_what_is_not_yaml_is_named_with_file_and_line(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("study:\n  seeds: [1\nlist_size: 3\n")
    assert duplicate_keys(path)[0].startswith(f"{path}:3: this is not YAML: ")
    path.write_bytes(b"a: \xff")
    assert len(duplicate_keys(path)) == 1
    path.write_text("a: &x [*x, *x]\nb: *x\n")
    assert duplicate_keys(path) == []
    path.write_text("")
    assert duplicate_keys(path) == []
    assert duplicate_keys(tmp_path / "none.yaml") == [
        f"{tmp_path / 'none.yaml'} cannot be read: No such file or directory."
    ]


def test_bytes_that_are_no_text_are_no_yaml() -> None:
    [sentence] = misreadings("\udcff", "--set")
    assert sentence.startswith("--set: this is not YAML: ")


def test_readme_and_schema_are_in_step() -> None:
    blocks = {match[2]: match[0] for match in BLOCK.finditer(README.read_text(encoding="utf-8"))}
    assert list(blocks) == list(tables()), "a table is missing in config/README.md or too many"
    for name, text in tables().items():
        assert f"<!-- keys: {name} -->\n{text}<!-- end -->" == blocks[name], (
            "run `python tests/unit/key_tables.py`"
        )


def test_the_tables_show_every_key_and_default() -> None:
    for name, part in objects(schema):
        text = table(part)
        for key, value in part["properties"].items():
            (row,) = [line for line in text.splitlines() if line.startswith(f"| `{key}` |")]
            assert row.count("|") == 5, (name, key)
            changed = deepcopy(part)
            changed["properties"][key]["default"] = "changed"
            assert table(changed) != text
            del changed["properties"][key]
            assert table(changed) != text
            assert value.get("default", {}) == {} or "`" in row.split("|")[3], (name, key)


def places(value: object, path: tuple = ()) -> Iterator[tuple]:
    """Every path into nested mappings and lists."""
    yield path
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from places(value[key], (*path, key))


def test_every_problem_has_one_line_whatever_the_keys_are() -> None:
    with pytest.raises(UserError) as caught:
        read_config({**default, None: None, "\n-": None}, schema, registry)
    assert str(caught.value).count("\n- ") == 2


names = st.sampled_from(sorted({str(key) for path in places(default) for key in path}))
scalars = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | names
) | st.sampled_from([10**400, -1, 0, 1, float("inf"), "1e-3", "[1]"])
keys = names | st.text(max_size=4) | st.none() | st.booleans() | st.integers()
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=6,
)
mutations = st.lists(
    st.tuples(
        st.sampled_from(list(places(default))),
        st.sampled_from(["set", "remove", "add"]),
        keys,
        values,
    ),
    min_size=1,
    max_size=4,
)


@settings(max_examples=400)
@given(mutations)
def test_a_mutated_config_is_read_or_refused_in_sentences(steps: list) -> None:
    config = deepcopy(default)
    for path, action, key, value in steps:
        try:
            holder = reduce(lambda part, step: part[step], path[:-1], config)
            if action == "set" and path:
                holder[path[-1]] = value
            elif action == "remove" and path:
                del holder[path[-1]]
            else:
                target = holder[path[-1]] if path else config
                target[key] = value
        except (KeyError, IndexError, TypeError):
            continue  # an earlier mutation took the place away
    try:
        sound = read_config(config, schema, registry)
    except UserError as error:
        assert all(line.endswith((".", "?")) for line in str(error).split("\n- ")[1:])
    else:
        assert read_config(sound, schema, registry) == sound


@pytest.mark.parametrize(
    "text",
    [
        *("2020-13-45", "0000-01-01", "!!bool maybe", "!!int x", "!!timestamp x", "!foo 1", "0x_"),
        *("=", "!!python/name:os.system", "{[1]: 2}", "{<<: 3}", "!!str [1]", "1" * 5000),
    ],
)
def test_a_value_that_is_not_of_its_kind_is_a_sentence(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(f"a: {text}\n")
    with pytest.raises(UserError, match=r"a\.yaml(:1)?: this is not YAML: "):
        read_yaml(path)
    with pytest.raises(UserError, match=r"a\.yaml(:1)?: this is not YAML: "):
        load_registry(path, {})
    with pytest.raises(UserError, match=r"--set eta(:1)?: this is not YAML: "):
        parse_yaml(text, "--set eta")


@pytest.mark.parametrize(
    ("text", "taken"),
    [("010", 8), ("[1, 017]", 15), ("0_4", 4), ("1:30", 90), ("1:30.5", 90.5), ("-010", -8)],
)
def test_a_number_that_yaml_takes_for_another_is_refused(tmp_path, text: str, taken: float) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(f"x: {{}}\na: {text}\n")
    said = rf":2: YAML takes \S+ for {taken}; write"
    with pytest.raises(UserError, match=said):
        read_yaml(path)
    with pytest.raises(UserError, match=said):
        read_config(default, schema, registry, [path])
    with pytest.raises(UserError, match=rf"YAML takes .* for {taken}; write"):
        load_registry(path, {})


def test_numbers_that_are_what_they_look_like_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("[0, 00, 07, 01.5, 1_000, 0x10, -0, 0.1, 1.0e-3, .inf, '010']\n")
    assert read_yaml(path)[:6] == [0, 0, 7, 1.5, 1000, 16]


def test_aliases_that_have_no_end_are_a_sentence(tmp_path: Path) -> None:
    bomb = "a: &a [1,1,1,1,1,1,1,1,1,1]\n"
    for above, name in zip("abcdefg", "bcdefgh", strict=True):
        bomb += f"{name}: &{name} [{','.join([f'*{above}'] * 10)}]\n"
    cases = {
        bomb: "its aliases stand for 123,456,797 values; write out what you mean.",
        "a: 1\nb: &b [1, *b]\n": ":2: the value that begins here contains itself by an alias;",
        "[" * 5000 + "]" * 5000: "nest",  # by the parser or by us
    }
    path = tmp_path / "a.yaml"
    for text, words in cases.items():
        path.write_text(text)
        with pytest.raises(UserError, match=re.escape(words)):
            read_yaml(path)
    path.write_text("a: &a [1, 2]\nb: *a\nc: *a\n")
    assert refuse_endless_aliases(path) is None
    assert read_yaml(path) == {"a": [1, 2], "b": [1, 2], "c": [1, 2]}

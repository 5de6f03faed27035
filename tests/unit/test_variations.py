"""What sweeps and tuning derive, and what they refuse."""

import pytest
from key_tables import ROOT, SCHEMA
from test_configuration import overlaid, registry

from ultrbench.configuration import read_config
from ultrbench.errors import UserError
from ultrbench.study import list_size, policy_queries
from ultrbench.variations import configurations, derive, sweep_points
from ultrbench.yaml_files import read_yaml

schema = read_yaml(SCHEMA)
default = read_yaml(ROOT / "config/config.yaml")
sweeps = read_yaml(ROOT / "config/sweeps.yaml")
tuning = read_yaml(ROOT / "config/tuning.yaml")
STATIC = {"section": "settings", "base": "static"}


def derived(*over: dict) -> dict:
    """The default configuration with something laid over it, as the workflow reads it."""
    config = default
    for part in over:
        config = overlaid(config, part)
    config = read_config(config, schema, registry)
    return read_config(derive(config), schema, registry)


def refusal(*over: dict) -> str:
    with pytest.raises(UserError) as caught:
        derived(*over)
    return str(caught.value)


def test_a_configuration_without_sweeps_and_tuning_stays_as_it_is() -> None:
    assert derived() == read_config(default, schema, registry)


def test_a_point_differs_from_its_base_in_the_swept_key_alone() -> None:
    config = derived({"sweeps": {"eta": {**STATIC, "key": "eta", "values": [0.5, 1, 2]}}})
    points = sweep_points(config, "eta")
    assert [(p.value, p.panel, p.policy, p.setting) for p in points] == [
        (value, policy, policy, setting)
        for policy in ("weak", "strong")
        for value, setting in (("0.5", "eta-0_5"), ("1", "static"), ("2", "eta-2"))
    ]
    base = config["settings"]["static"]
    assert config["settings"]["eta-2"] == {**base, "eta": 2.0}
    assert config["study"]["settings"] == default["study"]["settings"]


def test_the_shipped_sweeps_cover_what_they_are_to_cover() -> None:
    config = derived(sweeps)
    about = config["sweeps"]
    assert {(part["section"], part["key"]) for part in about.values()} == {
        ("settings", "eta"),
        ("settings", "eps"),
        ("settings", "sessions"),
        ("settings", "traffic_exponent"),
        ("settings", "click_model"),
        ("settings", "hidden_features"),
        ("policies", "share"),
        ("policies", "policy_queries"),
        ("policies", "list_size"),
    }
    for sweep in about:  # the base belongs to every sweep, so that they have a point in common
        points = {(point.policy, point.setting) for point in sweep_points(config, sweep)}
        assert ("strong", "usual") in points
        assert len(points) == len(about[sweep]["values"])
    assert about["positions"]["values"] == [5, 10, 20]
    assert not set(config["study"]["seeds"]) & set(default["study"]["seeds"])


def test_a_policy_has_a_list_size_and_queries_of_its_own() -> None:
    config = derived(sweeps)
    assert list_size(config, "positions-20") == 20
    assert list_size(config, "strong") == 10
    assert policy_queries(config, "queries-shared") == {"mode": "shared", "pool": 0.3}
    assert policy_queries(config, "strong") == {"mode": "disjoint", "pool": 0.3}


def test_a_policy_with_shared_queries_may_take_more_than_the_pool() -> None:
    whole = {"kind": "lambdamart", "share": 1, "policy_queries": "shared"}
    assert derived({"policies": {"whole": whole}})["policies"]["whole"]["share"] == 1
    with pytest.raises(UserError, match=r"policies\.whole\.share: at most policy_queries\.pool"):
        derived({"policies": {"whole": {**whole, "policy_queries": "disjoint"}}})


@pytest.mark.parametrize(
    ("sweep", "sentence"),
    [
        ({"key": "etta", "values": [1, 2]}, "settings.s-1.etta is not a key"),
        ({"key": "eta", "values": [1, -2]}, "settings.s--2.eta: a number from 0 to 100 is wanted"),
        ({"base": "statik", "key": "eta", "values": [1, 2]}, "sweeps.s.base: no statik is defined"),
        (
            {
                "key": "click_model",
                "values": [{"kind": "dcm"}, {"kind": "dcm", "continuation": [1]}],
            },
            "sweeps.s.values: two values are called dcm",
        ),
        ({"key": "eta", "values": [2]}, "sweeps.s.values is empty"),
    ],
)
def test_a_wrong_sweep_is_refused(sweep: dict, sentence: str) -> None:
    assert sentence in refusal({"sweeps": {"s": STATIC | sweep}})


def test_an_entry_of_ones_own_is_not_replaced() -> None:
    own = {"settings": {"eta-2": default["settings"]["static"]}}
    sweep = {"sweeps": {"eta": {**STATIC, "key": "eta", "values": [1, 2]}}}
    assert "eta-2 is defined there already" in refusal(own, sweep)


def test_tuning_runs_as_many_configurations_for_every_method() -> None:
    config = derived(tuning)
    grids = configurations(config)
    assert {len(found) for found in grids.values()} == {4}
    assert config["study"]["seeds"] == tuning["tuning"]["seeds"]
    assert config["study"]["settings"] == ["tuning"]
    rows = ["naive", *(name for found in grids.values() for name in found)]
    assert config["settings"]["tuning"]["methods"] == rows
    assert config["methods"]["paird-1"]["ranker"] == "joint"


def test_the_first_configuration_is_the_shipped_one() -> None:
    config = derived(tuning)
    for method, found in configurations(config).items():
        shipped = config["estimators"][config["methods"][method]["estimator"]]
        assert config["estimators"][next(iter(found))] == shipped, method


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"seeds": [101, 3, 1]}, "tuning.seeds: 1, 3 also in study.seeds"),
        ({"grids": {"dla": {"leaves": [5]}}}, "got dla 2, rem 4"),
        ({"grids": {"dla": {"leaves": [50, 0]}}}, "estimators.dla-3.leaves"),
        ({"grids": {"dal": {"trees": [5]}}}, "tuning.grids: no dal is defined"),
        (
            {"grids": {"labeled": {"trees": [1, 2, 3, 4]}}},
            "tuning.grids.labeled: it has no",
        ),
        ({"setting": "statik"}, "tuning.setting: no statik is defined"),
    ],
)
def test_a_wrong_tuning_is_refused(change: dict, sentence: str) -> None:
    assert sentence in refusal(tuning, {"tuning": change})

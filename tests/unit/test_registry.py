"""The registry: the shipped one is sound, and each mistake has its sentence."""

from pathlib import Path

import pytest
import yaml

from ultrbench.datasets.registry import load_registry
from ultrbench.datasets.split import SPLITS
from ultrbench.errors import UserError

ROOT = Path(__file__).parents[2]
SCHEMA = yaml.safe_load((ROOT / "workflow/schemas/datasets.schema.yaml").read_text())
LETOR = "kind: letor, ymax: 2, features: 46, path: mine.zip"


def load(folder: Path, text: str):
    path = folder / "datasets.yaml"
    path.write_text(text)
    return load_registry(path, SCHEMA)


def test_the_shipped_registry_is_sound():
    registry = load_registry(ROOT / "config/datasets.yaml", SCHEMA)
    assert {"synthetic", "istella-s", "mslr-web10k", "mslr-web30k", "yahoo"} <= set(registry)
    assert registry["yahoo"]["files"]["vali"] == "set1.valid.txt"
    assert sum(registry["istella-s"]["counts"][s]["queries"] for s in SPLITS) == 33_018


def test_defaults_are_filled(tmp_path):
    entry = load(tmp_path, f"mine: {{{LETOR}}}")["mine"]
    assert entry["path"] == ["mine.zip"]
    assert entry["files"] == {"train": "train.txt", "vali": "vali.txt", "test": "test.txt"}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "a mapping from data set names to entries is wanted"),
        ("[]", "a mapping from data set names to entries is wanted"),
        ("a: [", "is not a YAML file"),
        ("My_Set: {kind: letor}", "'My_Set' is no name for a data set"),
        ("../a: {kind: letor}", "'../a' is no name for a data set"),
        ("1: {kind: letor}", "1 is no name for a data set"),
        (f"{'a' * 65}: {{kind: letor}}", "digits and hyphens, at most 64"),
        ("a: 3", "a.kind: got None; wanted: synthetic or letor"),
        ("a: {kind: csv}", "a.kind: got 'csv'; wanted: synthetic or letor"),
        (f"a: {{{LETOR}, colour: red}}", "a: there is no key colour here; the keys are kind, ymax"),
        (f"a: {{{LETOR}, kind: letor}}", "the key kind in line 1 stands there twice"),
        ("a: {kind: letor, ymax: 2, path: b}", "a: the key features is missing (width"),
        ("a: {kind: letor, ymax: 0, features: 3, path: b}", "a.ymax: got 0; wanted: highest grade"),
        ("a: {kind: letor, ymax: 2, features: true, path: b}", "a.features: got True; wanted"),
        (f"a: {{{LETOR}, sha256: {{b.zip: abc}}}}", "a.sha256.b.zip: got 'abc'; wanted: a sha256"),
        (f"a: {{{LETOR}, urls: [{{url: 'ftp://b'}}]}}", "a.urls.0.url: got 'ftp://b'; wanted"),
        (f"a: {{{LETOR}, counts: {{train: {{rows: 1}}}}}}", "a.counts.train: there is no key rows"),
        (
            f"a: {{{LETOR}, files: {{train: 'F{{fold}}', vali: b, test: c}}}}",
            "a.files.train: F{fold} needs the key fold",
        ),
        ("a: {kind: synthetic, version: 2}", "a.version: got 2; wanted: version of the generator"),
    ],
)
def test_a_mistake_has_a_sentence(tmp_path, text, sentence):
    with pytest.raises(UserError) as raised:
        load(tmp_path, text)
    assert sentence in str(raised.value)
    assert all(line.startswith(str(tmp_path)) for line in str(raised.value).splitlines()[:1])


def test_a_missing_registry_is_named(tmp_path):
    with pytest.raises(UserError, match=r"nothing.yaml cannot be read: No such file"):
        load_registry(tmp_path / "nothing.yaml", SCHEMA)


@pytest.mark.parametrize("path", [None, 5, ["datasets.yaml"], {"a": 1}])
def test_a_registry_that_is_no_path_is_refused(path):
    with pytest.raises(UserError, match=r"^registry: the path of a YAML file is wanted, got"):
        load_registry(path, SCHEMA)


def test_every_key_is_described():
    def check(schema, where):
        if not isinstance(schema, dict) or "$ref" in schema:
            return
        assert schema.get("description"), where
        for key, value in schema.get("properties", {}).items():
            check(value, f"{where}.{key}")

    for name, schema in SCHEMA["$defs"].items():
        check(schema, name)

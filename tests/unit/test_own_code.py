"""Functions in a file of one's own: what is refused, and in which words."""

import inspect
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from test_configuration import accepted, problems
from toys import make_split

from ultrbench.errors import UserError
from ultrbench.own_code import find_function
from ultrbench.propensity.estimate import (
    refuse_wrong_estimate,
    refuse_wrong_numbers,
    up_to_scale,
)
from ultrbench.simulation.behaviour import Behaviour, refuse_wrong_behaviour
from ultrbench.simulation.policies import score_documents
from ultrbench.stages.diagnosis import _can_work
from ultrbench.stages.sources import imports

USED = {"settings": {"static": {"methods": ["naive", "mine"]}}}
MINE = {"methods": {"mine": {"estimator": "mine", "ranker": "softmax"}}}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text("def estimate(log, *, depth, **_):\n    return depth\n")
    return tmp_path


def estimator(**keys: object) -> dict:
    return USED | MINE | {"estimators": {"mine": {"kind": "mine.py:estimate"} | keys}}


def test_the_function_is_found_and_its_arguments_are_free(folder: Path) -> None:
    config = accepted(estimator(depth=3, names=["a", {"b": 1}]))
    assert config["estimators"]["mine"]["names"] == ["a", {"b": 1}]
    assert find_function({}, "mine.py:estimate")(None, depth=3) == 3


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"kind": "other.py:estimate"}, "kind: there is no file other.py in "),
        ({"kind": "mine.py:fit"}, "mine.py defines no function fit; functions there: estimate."),
        ({"seed": 1}, "estimators.mine.seed: the study passes this itself; take another name."),
        ({"kind": "mine:estimate"}, "or a function in a file (mine.py:estimate) is wanted, got"),
    ],
)
def test_a_mistake_is_a_sentence_before_any_job(folder: Path, keys: dict, words: str) -> None:
    (sentence,) = problems(estimator(**keys))
    assert words in sentence


def test_a_file_that_is_no_python_is_refused_with_its_line(folder: Path) -> None:
    (folder / "mine.py").write_text("\ndef estimate(:\n")
    (sentence,) = problems(estimator())
    assert sentence.startswith("estimators.mine.kind: mine.py:2: ")


def test_a_definition_that_no_setting_uses_may_lack_its_file(folder: Path) -> None:
    accepted({"estimators": {"later": {"kind": "later.py:estimate"}}})


def test_click_models_and_policies_are_checked_alike(folder: Path) -> None:
    assert problems({"settings": {"static": {"click_model": {"kind": "mine.py:users"}}}}) == [
        "settings.static.click_model.kind: mine.py defines no function users; functions there: "
        "estimate."
    ]
    assert problems({"policies": {"weak2": {"kind": "mine.py:estimate", "ymax": 1}}}) == [
        "policies.weak2.ymax: the study passes this itself; take another name."
    ]
    # `share` is an argument of the function here, and no share of the queries put aside.
    accepted({"policies": {"weak2": {"kind": "mine.py:estimate", "share": "all"}}})


def test_an_import_that_fails_names_the_line(folder: Path) -> None:
    (folder / "mine.py").write_text("x = 1\nimport absent\ndef estimate():\n    pass\n")
    with pytest.raises(UserError, match=r"mine\.py:2: .*ModuleNotFoundError: No module named"):
        find_function({}, "mine.py:estimate")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("raise ValueError('no\\nsuch')", r"mine\.py:4: ValueError: no such$"),
        ("return helper(log)", r"mine\.py:4 > mine\.py:2: ZeroDivisionError: "),
        ("return estimate(log)", r"mine\.py:4: RecursionError: "),
        ("import sys; sys.exit(0)", r"mine\.py:4: SystemExit: 0"),
        ("return log.absent", r"mine\.py:4: AttributeError: 'int' object has no attribute"),
        ("return np.ones(2) @ np.ones(3)", r"mine\.py:4: ValueError: matmul"),
    ],
)
def test_an_error_names_the_lines_that_led_to_it(folder: Path, body: str, words: str) -> None:
    source = f"def helper(x):\n    return x / 0\ndef estimate(log, **_):\n    {body}\n"
    source += "import numpy as np\n"
    (folder / "mine.py").write_text(source)
    function = find_function({}, "mine.py:estimate")
    assert list(inspect.signature(function).parameters) == ["log", "_"]
    with pytest.raises(UserError, match=words):
        function(1)


def test_a_file_may_begin_with_a_byte_order_mark(folder: Path) -> None:
    source = "import ultrbench.seeding\ndef estimate():\n    return 1\n"
    (folder / "mine.py").write_text(source, encoding="utf-8-sig")
    assert imports(folder / "mine.py") == {"ultrbench.seeding"}
    assert find_function({}, "mine.py:estimate")() == 1


def test_an_import_that_leaves_is_refused(folder: Path) -> None:
    (folder / "mine.py").write_text("import sys\nsys.exit(0)\ndef estimate():\n    pass\n")
    with pytest.raises(UserError, match=r"mine\.py:2: the file cannot be imported: SystemExit"):
        find_function({}, "mine.py:estimate")


def test_arguments_that_the_function_does_not_take_are_a_sentence(folder: Path) -> None:
    with pytest.raises(UserError, match=r"mine\.py: TypeError: .*unexpected keyword argument"):
        (folder / "mine.py").write_text("def estimate(log):\n    pass\n")
        find_function({}, "mine.py:estimate")(1, features=2)


@pytest.mark.parametrize("content", [b"x = " + b"-" * 10**6 + b"1\n", b"x = " + b"(" * 500])
def test_a_file_that_python_cannot_hold_is_refused(folder: Path, content: bytes) -> None:
    (folder / "mine.py").write_bytes(content)
    (sentence,) = problems(estimator())
    assert "mine.py:1: " in sentence and "nested" in sentence


@pytest.mark.parametrize("end", ["del estimate", "estimate = 3"])
def test_a_function_that_does_not_stay_is_refused(folder: Path, end: str) -> None:
    (folder / "mine.py").write_text(f"def estimate(log):\n    pass\n{end}\n")
    with pytest.raises(UserError, match=r"mine\.py:estimate: .* no function any more"):
        find_function({}, "mine.py:estimate")


def test_what_it_sets_for_the_process_does_not_stay(folder: Path) -> None:
    source = "import os, warnings\nimport numpy as np\ndef reset():\n    os.chdir('/')\n"
    source += "    np.seterr(all='raise')\n    warnings.simplefilter('error')\nreset()\n"
    (folder / "mine.py").write_text(source + "def estimate(log):\n    reset()\n    return 1\n")
    before = np.geterr(), list(warnings.filters)
    for _ in range(2):
        assert find_function({}, "mine.py:estimate")(None) == 1
        assert (Path.cwd(), np.geterr(), list(warnings.filters)) == (folder, *before)


def test_lists_and_mappings_are_lent_in_copies(folder: Path) -> None:
    source = "def estimate(log, *, depth, etas):\n    depth.append(1)\n    etas['b'][0] = 5\n"
    (folder / "mine.py").write_text(source)
    depth, etas = [0], {"b": [1]}
    find_function({}, "mine.py:estimate")(None, depth=depth, etas=etas)
    assert (depth, etas) == ([0], {"b": [1]})


@pytest.mark.parametrize("error", ["GeneratorExit", "BaseException", "SystemExit"])
def test_whatever_a_function_raises_is_told_by_its_line(folder: Path, error: str) -> None:
    (folder / "mine.py").write_text(f"def estimate(log):\n    raise {error}('mine')\n")
    with pytest.raises(UserError, match=rf"mine\.py:2: {error}: mine"):
        find_function({}, "mine.py:estimate")(None)


def test_an_exception_without_a_text_is_told_by_its_line(folder: Path) -> None:
    source = "class Mute(Exception):\n    def __str__(self):\n        raise ValueError\n"
    (folder / "mine.py").write_text(f"{source}def estimate(log):\n    raise Mute\n")
    with pytest.raises(UserError, match=r"mine\.py:5: Mute: \(it has no text\)"):
        find_function({}, "mine.py:estimate")(None)


@pytest.mark.parametrize(
    ("relative", "words"),
    [
        (np.ones((2, 1)), r"shape \[2, 1\]"),
        (np.ones(3), r"shape \[3\] and type float64; one number"),
    ],
)
def test_an_estimate_has_a_number_for_each_position(relative: np.ndarray, words: str) -> None:
    with pytest.raises(UserError, match=words):
        refuse_wrong_estimate(up_to_scale(relative), "mine.py:estimate", 2)


def test_an_estimate_that_lost_an_attribute_is_refused() -> None:
    estimate = up_to_scale(np.ones(2))
    object.__delattr__(estimate, "trace")
    with pytest.raises(UserError, match="returned an Estimate without trace"):
        refuse_wrong_estimate(estimate, "mine.py:estimate", 2)


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        ({"theta": np.ma.masked_less(np.array([0.5, 1]), 1)}, r"`theta` of shape \[2\]"),
        ({"converged": "maybe"}, "`converged` as str; True or False is wanted"),
        ({"identified": np.bool_(True)}, "`identified` as bool"),
        ({"notes": "a sentence"}, "`notes` as str; a tuple of sentences"),
        ({"notes": [1]}, "`notes` as list; a tuple of sentences"),
        ({"notes": ("a\n| b |",)}, "`notes` as tuple; a tuple of sentences, each in one line"),
        ({"notes": ("\ud800",)}, "`notes` as tuple; a tuple of sentences, each in one line"),
        ({"trace": [[1.0, float("nan")]]}, "`trace` as list; a list of lists of finite"),
        ({"trace": [[1.0, 10**400]]}, "`trace` as list; a list of lists of finite"),
        ({"columns": {"theta": np.ones(2)}}, "`columns` as dict; a dict of arrays, under other"),
        ({"columns": {"x,y\n": np.ones(2)}}, "`columns` as dict; a dict of arrays, under other"),
        ({"columns": {"": np.ones(2)}}, "`columns` as dict; a dict of arrays, under other"),
        ({"columns": {3: np.ones(2)}}, "`columns` as dict; a dict of arrays, under other"),
        ({"trace": np.ones((3, 2))}, "`trace` as ndarray; a list of lists"),
        ({"trace": [np.ones(2)]}, "`trace` as list; a list of lists"),
        ({"columns": np.ones(2)}, "`columns` as ndarray; a dict"),
        ({"columns": {"alpha": np.ones(3)}}, r"`alpha` of shape \[3\] and type float64"),
        ({"standard_error": np.ones(2) * 1j}, r"`standard_error` of shape \[2\] and type complex"),
    ],
)
def test_what_an_estimate_says_of_itself_has_a_form(outcome: dict, words: str) -> None:
    estimate = replace(up_to_scale(np.ones(2)), **outcome)
    with pytest.raises(UserError, match=rf"mine\.py:estimate returned {words}"):
        refuse_wrong_estimate(estimate, "mine.py:estimate", 2)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"relative": np.array([1, 0.0])}, "`relative` 0 at position 2; a number above 0"),
        ({"relative": np.array([1, -0.5])}, "`relative` -0.5 at position 2"),
        ({"relative": np.array([1, np.inf])}, "`relative` inf at position 2"),
        ({"relative": np.array([1, np.nan])}, "`relative` nan at position 2"),
        (
            {"relative": up_to_scale(np.ma.masked_less([1.0, 0.5], 1)).relative},
            "`relative` nan at position 2",
        ),
        ({"relative": np.array([1, 1e-300])}, "`relative` 1e-300 at position 2"),
        ({"relative": np.array([0.8, 0.4])}, "`relative` 0.8 at position 1; 1 is wanted"),
        ({"theta": np.array([2.0, 1.0])}, "`theta` 2 at position 1; a probability"),
        ({"theta": np.array([0.5, 0.0])}, "`theta` 0 at position 2; a probability"),
        ({"theta": np.array([0.5, 0.5])}, "`theta` 0.5 at position 2; it is not `relative` times"),
        ({"standard_error": np.array([0, -1.0])}, "`standard_error` -1 at position 2"),
        ({"trace": [[1.0, 0.5], [1.0]]}, "a `trace` whose steps are not 2 numbers"),
        ({"trace": [[1.0, -0.5]]}, "a `trace` with numbers that are not above 0"),
        ({"trace": [[1.0, 0.0]]}, "a `trace` with numbers that are not above 0"),
        ({"columns": {"a": np.array([1, np.inf])}}, "an infinite number in the column `a`"),
        ({"standard_error": np.array([0, np.inf])}, "`standard_error` inf at position 2"),
    ],
)
def test_an_estimate_of_ones_own_is_made_of_propensities(change: dict, words: str) -> None:
    sound = replace(up_to_scale(np.array([1, 0.5])), theta=np.array([0.6, 0.3]))
    refuse_wrong_numbers(sound, "mine.py:estimate")
    refuse_wrong_numbers(up_to_scale(np.ones(2), np.zeros(2)), "mine.py:estimate")
    with pytest.raises(UserError, match=rf"mine\.py:estimate returned {words}"):
        refuse_wrong_numbers(replace(sound, **change), "mine.py:estimate")


@pytest.mark.parametrize(
    ("users", "words"),
    [
        (Behaviour(np.full((3, 2), 1.5)), "`attraction` has values that are no probabilities"),
        (Behaviour(np.ones((3, 2)), np.ones((1, 3, 1))), "arrays whose shapes do not fit"),
        (Behaviour(np.ones((2, 2))), r"shape \[2, 2\]; lists and positions are \[3, 2\]"),
        (Behaviour(np.full((3, 2), np.nan)), "no probabilities"),
        (Behaviour(np.ma.masked_greater(np.full((3, 2), 1.5), 1)), "no probabilities"),
        (Behaviour(np.ma.masked_less(np.full((3, 2), 0.5), 1)), "no probabilities"),
        (
            Behaviour(np.ones((3, 2)), parameters={"continuation": np.array([0.5, 7])}),
            "parameter `continuation` has values that are no probabilities",
        ),
        *(
            (Behaviour(np.ones((3, 2)), parameters={name: np.array([0.5, value])}), f"{name}` has")
            for name, value in (("alpha", -1.1), ("alpha", 1.1), ("beta", -7), ("beta", 1.1))
        ),
        (Behaviour(np.full((3, 2), -0.5)), "no probabilities"),
        (Behaviour(np.array([[0.5, 0.5], [0.5, 0.5], [0.5, 1.5]])), "no probabilities"),
        (Behaviour(np.ones((3, 2)), np.array("often")), "`examination` has values that are no"),
        (
            Behaviour(np.ones((3, 2)), np.arange(6).reshape(3, 2, 1) / 9, by_position=True),
            "`examination` differs between lists",
        ),
        (
            Behaviour(np.ones((3, 2)), np.arange(6).reshape(1, 2, 3) / 9, by_position=True),
            "or with clicks",
        ),
        (
            Behaviour(np.ones((3, 2)), np.array([[[1.0], [0.0]]]), by_position=True),
            "position 2 is never examined",
        ),
        (
            Behaviour(np.ones((3, 2)), parameters={"alpha": np.ones(3)}),
            r"parameter `alpha` has shape \[3\]; one number for each of the 2 positions",
        ),
        *(
            (Behaviour(np.ones((3, 2)), parameters={"alpha": values}), "no array of finite numbers")
            for values in (np.array([1, np.nan]), np.array(["a", "b"]), [1.0, 0.5])
        ),
        (Behaviour(np.ones((3, 2)), parameters={"theta": np.ones(2)}), "may have alpha, beta, con"),
        (Behaviour(np.ones((3, 2)), parameters=[1.0]), "may have alpha, beta, con"),
        (Behaviour(np.ones((3, 2)), by_position="no"), "`by_position` is 'no'; True or False"),
        (
            Behaviour(np.ones((3, 2)), continuation=np.full((1, 1), 0.5), by_position=True),
            "by `continuation` some users do not go on after a click",
        ),
    ],
)
def test_a_behaviour_is_made_of_probabilities(users: Behaviour, words: str) -> None:
    with pytest.raises(UserError, match=words):
        refuse_wrong_behaviour(users, "mine.py:behaviour", (3, 2))


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("{'train': [1.0] * 6}", "a dict is wanted with the scores of the documents of train, t"),
        ("{'train': [1.0] * 6, 'test': [1.0]}", "each of the 3 documents of test is wanted"),
        ("{'train': [1.0] * 6, 'test': [float('nan')] * 3}", "one finite score"),
        ("[1.0] * 9", "a dict is wanted"),
        ("{'train': [1j] * 6, 'test': [1j] * 3}", "a dict is wanted"),
        ("{'train': ['1'] * 6, 'test': ['1'] * 3}", "a dict is wanted"),
        ("{'train': [10**400] * 6, 'test': [10**400] * 3}", "a dict is wanted"),
        ("splits['train'].grades.fill(0)", r"mine\.py:2: ValueError: .*read-only"),
        ("order.sort()", r"mine\.py:2: ValueError: .*read-only"),
        ("splits['train'].features.fill(0)", r"mine\.py:2: ValueError: .*read-only"),
        ("splits['train'].query_ptr.fill(0)", r"mine\.py:2: ValueError: .*read-only"),
        ("splits['test'].query_ids.fill('')", r"mine\.py:2: ValueError: .*read-only"),
        (
            "{n: __import__('numpy').ma.masked_equal(s.grades, 0) for n, s in splits.items()}",
            "one finite score",
        ),
        ("type('', (dict,), {'__getitem__': lambda *_: 1 / 0})()", "a dict is wanted"),
        ("splits.clear()", "a dict is wanted with the scores of the documents of train, test"),
    ],
)
def test_a_policy_must_score_every_document(folder: Path, body: str, words: str) -> None:
    (folder / "mine.py").write_text(f"def score(splits, order, **_):\n    return {body}\n")
    splits = {"train": make_split([3, 3]), "test": make_split([3])}
    with pytest.raises(UserError, match=words):
        score_documents({"kind": "mine.py:score"}, splits, np.array([1, 0]), ymax=4, seed=1)


def test_what_an_own_estimator_identifies_only_it_can_say() -> None:
    log = {"estimators": [{"estimator": "ctr", "works": "assumption"}]}
    assert _can_work({"kind": "mine.py:estimate"}, log)
    assert not _can_work({"kind": "ctr"}, log)

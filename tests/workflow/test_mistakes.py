"""Mistakes in a study, and results that were changed by hand, end with a sentence."""

import os

import pytest

from .conftest import Study


def test_a_mistake_in_the_config_is_a_sentence_and_no_traceback(study: Study) -> None:
    study.configure({"settings": {"static": {"eta": "abc"}}})
    output = study.run("-n", ok=False)
    assert "settings.static.eta" in output
    assert "Traceback" not in output


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"registry": 5}, "registry: the path of a YAML file is wanted"),
        ({"downloads": "data {2020}"}, "data {2020}: the path of a file must not hold a brace"),
        ({"registry": "x" * 300}, "File name too long"),
        ({"claims": "x" * 300}, "File name too long"),
        (
            {
                "study": {"settings": ["own"]},
                "settings": {"own": {"click_log": "x" * 300, "methods": ["naive"]}},
            },
            "File name too long; put the configuration right",
        ),
    ],
)
def test_a_path_that_cannot_be_is_a_sentence(study: Study, change: dict, words: str) -> None:
    study.configure(change)
    output = study.run("-n", ok=False)
    assert words in output
    assert "Traceback" not in output and "Error in file" not in output


def test_a_folder_without_the_default_config_is_a_sentence(study: Study) -> None:
    (study.folder / "config").rename(study.folder / "elsewhere")
    assert "there is no config/config.yaml in" in study.run("-n", ok=False)


def test_a_file_in_place_of_the_results_is_a_sentence(study: Study) -> None:
    (study.folder / "results").write_text("mine")
    printed = study.run("--cores", "1", ok=False)
    assert "ultrbench: results is a file" in printed
    assert "Traceback" not in printed
    assert (study.folder / "results").read_text() == "mine"
    (study.folder / "results").unlink()
    (study.folder / "results").mkdir()
    (study.folder / "results/runs").write_text("mine")
    assert "ultrbench: results/runs is a file" in study.run("-n", ok=False)


def test_a_digit_that_changed_in_a_result_stops_what_reads_it(rerun: Study) -> None:
    """Bits flip without a word to the clock, and a digit is as good as another to a reader."""
    model = rerun.folder / "results/runs/tiny/weak/dynamic/seed1/naive/round0/ranker.txt"
    text, times = model.read_text(), model.stat()
    at = text.index("leaf_value=") + len("leaf_value=") + 5
    model.write_text(text[:at] + str((int(text[at]) + 1) % 10) + text[at + 1 :])
    os.utime(model, ns=(times.st_atime_ns, times.st_mtime_ns))
    arguments = ("--cores", "1", "--forcerun", "simulate_clicks", "--until", "simulate_clicks")
    printed = rerun.run(*arguments, ok=False)
    assert "naive/round0/ranker.txt is not what its job wrote" in printed
    assert "Traceback" not in printed


def test_a_finished_study_whose_claims_were_touched_up_is_no_finished_study(rerun: Study) -> None:
    claims = rerun.folder / "results/claims.csv"
    made = claims.read_text()
    claims.write_text(made.replace("fewer than five replicates", "fewer than two replicates"))
    os.utime(claims)
    printed = rerun.run("-n", ok=False)
    assert "ultrbench: results/claims.csv is not what its job wrote" in printed
    assert "Traceback" not in printed
    claims.unlink()
    rerun.run("--cores", "1")
    assert claims.read_text() == made


def test_a_mistake_in_a_log_is_a_sentence_and_no_traceback(rerun: Study) -> None:
    (rerun.folder / "empty").mkdir()
    for name in ("train.lists.parquet", "train.clicks.parquet"):
        (rerun.folder / "empty" / name).write_bytes(b"not parquet")
    rerun.configure(
        {
            "study": {"settings": ["own"]},
            "settings": {"own": {"click_log": "empty", "methods": ["naive"]}},
            "training": {"validation": ["grades"]},
        }
    )
    output = rerun.run("--cores", "1", ok=False)
    assert "not a readable parquet file" in output
    assert "import_clicks failed, see results/logs/clicks/" in output
    assert "Put right what the last line says" in output
    assert "Traceback" not in output

"""The command line beside a finished study: the same bytes, exports, and scores of one's own."""

import re
import shlex
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ultrbench.__main__ import main
from ultrbench.files import read_arrays, read_json
from ultrbench.stages.trec import export_runs

from .conftest import REPOSITORY, Study

ROUND = "results/runs/tiny/weak/static/seed1/initial/round0"
KEYS = ["candidates", "validation", "method", "metric"]


def run(*arguments: object) -> None:
    assert main([str(argument) for argument in arguments]) == 0, arguments


def documented(heading: str) -> list[list[str]]:
    """The commands below a heading of docs/command-line.md, on the names of the tiny study."""
    text = (REPOSITORY / "docs/command-line.md").read_text()
    part = text.split(f"## {heading}\n")[1].split("\n## ")[0]
    lines = re.findall(r"^python -m ultrbench (.*)$", part, flags=re.MULTILINE)
    names = {"synthetic": "tiny", "strong": "weak"}
    return [[names.get(word, word) for word in shlex.split(line)] for line in lines]


def runs_of(method: str, folder: Path) -> list[str]:
    """A run of each replicate of a method, as somebody else would bring them."""
    paths = [folder / f"mine.seed{seed}.txt" for seed in (1, 2)]
    for seed, path in enumerate(paths, start=1):
        scores = Path(f"results/runs/tiny/weak/static/seed{seed}/{method}/round0/test_scores.npz")
        export_runs(Path("results/data/tiny"), {("mine", scores, "grades"): path})
    return [str(path) for path in paths]


def test_the_commands_give_the_bytes_of_the_workflow(finished: Study, tmp_path, monkeypatch):
    monkeypatch.chdir(finished.folder)
    config = ("--configfile", "tiny.yaml", "--output")
    data, candidates, log = (tmp_path / name for name in ("data", "weak.npz", "log"))
    run("data", "--dataset", "tiny", *config, data)
    run("policies", data, "--policy", "weak", *config, candidates)
    run("clicks", data, candidates, *config, log)
    run("clicks", data, candidates, "--log", "randomized", *config, tmp_path / "randomized")
    run("propensity", log, "--estimator", "dla", *config, tmp_path / "dla.csv")
    run("ranking", log, "--theta", tmp_path / "dla.csv", *config, tmp_path / "ranker")
    seed, folder = Path("results/runs/tiny/weak/static/seed1"), Path(ROUND)
    theirs = {
        data / "train.features.npy": Path("results/data/tiny/train.features.npy"),
        candidates: Path("results/policies/tiny/weak/seed1.npz"),
        tmp_path / "randomized/train.clicks.parquet": seed
        / "randomized/round0/train.clicks.parquet",
        tmp_path / "dla.csv": folder / "theta/dla.csv",
        tmp_path / "dla.json": folder / "theta/dla.json",
        tmp_path / "ranker/ranker.txt": seed / "dla/round0/ranker.txt",
        tmp_path / "ranker/test_scores.npz": seed / "dla/round0/test_scores.npz",
    } | {log / file.name: file for file in folder.iterdir() if file.is_file()}
    for mine, its in theirs.items():
        assert mine.read_bytes() == its.read_bytes(), its


def test_the_documented_exports_and_scores_leave_the_study_as_it_is(
    rerun: Study, monkeypatch, capsys
):
    before = rerun.hashes()
    monkeypatch.chdir(rerun.folder)
    for arguments in documented("Frozen click logs"):
        run(*arguments)
    about = read_json("exported/export.json")
    assert about["config"]["setting"]["sessions"] == 6000
    assert about["config"]["policy"]["kind"] == "ranking_svm"
    assert set(about["logged"]) == {"train", "vali", "test"}
    for name in ("train.lists.parquet", "test.clicks.parquet", "truth.csv"):
        assert Path("exported", name).read_bytes() == Path(ROUND, name).read_bytes()

    shutil.copy(f"{ROUND}/theta/dla.csv", "my.csv")
    shutil.move(runs_of("dla", rerun.folder)[0], "my.txt")
    capsys.readouterr()
    for arguments in documented("A method of one's own beside those of a study"):
        run(*arguments)
    assert "my (truncated, grades): nDCG@5" in capsys.readouterr().out
    page = Path("results/scored/my/tiny.weak.static/score.md").read_text()
    assert "no verdict, as fewer than five replicates" in page
    assert page.count("\n| my | ") == 5  # four tables of rankers, one of theta
    assert "| refit\\_ipw | " in Path("results/scored/refit/tiny.weak.static/score.md").read_text()
    assert "nan" not in page
    after = {k: v for k, v in rerun.hashes().items() if not k.startswith("results/scored")}
    assert after == before
    # A copy of a study notes its new folder; nothing else is to do.
    assert set(rerun.jobs()) <= {"all", "total", "write_provenance"}


def test_a_study_method_that_comes_as_files_gets_its_own_row_again(
    finished: Study, tmp_path, monkeypatch
):
    monkeypatch.chdir(finished.folder)
    thetas = []
    for seed in (1, 2):
        thetas.append(tmp_path / f"mine.seed{seed}.csv")
        shutil.copy(ROUND.replace("seed1", f"seed{seed}") + "/theta/dla.csv", thetas[-1])
    files = ["--run", *runs_of("dla", tmp_path), "--theta", *thetas]
    out = tmp_path / "scored"
    run("score", "--setting", "static", *files, "--ranker", "softmax", "--output", out)

    theirs = pd.read_csv("results/evaluation/tiny/weak/static/comparisons.csv").set_index(KEYS)
    found = pd.read_csv(out / "comparisons.csv").set_index(KEYS)
    exact = ["mean", "difference", "p", "mde", "wins", "ties", "losses"]
    rest = found.drop(index=["mine", "mine_ipw"], level="method")
    pd.testing.assert_frame_equal(rest[exact], theirs[exact])
    assert not rest["p_holm"].equals(theirs["p_holm"])  # the family has grown by two
    # The ranker trained with the theta of DLA is DLA's, whichever validation stopped it.
    dla, refit = (found.xs(method, level="method") for method in ("dla", "mine_ipw"))
    pd.testing.assert_frame_equal(refit[exact], dla[exact])
    # The run of the ranker that grades stopped is that of this table.
    mine = found.xs("mine", level="method").xs("grades", level="validation")
    pd.testing.assert_frame_equal(mine[exact], dla.xs("grades", level="validation")[exact])

    # Against itself it differs by nothing, and the A/A row is none.
    other = tmp_path / "other"
    own = ("--reference", "dla", "--output", other)
    run("score", "--setting", "static", "--run", *runs_of("dla", tmp_path), *own)
    found = pd.read_csv(other / "comparisons.csv").set_index(KEYS).sort_index()
    found = found.loc[("truncated", "grades")]
    assert (found.loc["mine", "difference"] == 0).all()
    assert found.loc[("naive_aa", "nDCG@5"), "p_holm"] > 0
    assert "A/A row" not in (other / "truncated.grades.md").read_text()

    errors = pd.read_csv(out / "propensity_error.csv").set_index("method")
    assert set(errors["setting"]) == {"static"}
    numbers = ["error", "error_se", "by_clicks", "by_clicks_se", "signed", "signed_se"]
    mine, dla = (errors.loc[name, numbers].to_numpy(dtype=float) for name in ("mine", "dla"))
    assert mine == pytest.approx(dla)
    assert np.isnan(errors.loc["mine", "converged"])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("export results --output new", "choose one with --setting"),
        ("export results --setting static --output new", "has several: 1, 2; choose one with"),
        ("export results --setting static --seed 9 --output new", "no seed `9`"),
        ("export results --setting static --seed 1 --track nada --output new", "no track `nada`"),
        ("score --setting statik --run naive.run", "do you mean static"),
        ("score --setting static --run naive.run", "method naive already; give another name"),
        ("score --setting static --run naive.run --name Mine!", "no name for a row"),
        ("score --setting static --run naive.run naive.run --name a", "must name its replicate"),
        ("score --setting static --run short.run --reference rem", "no method `rem` in this"),
        ("score --setting static --run short.run", "it lacks 29 of the 30 test queries"),
        ("score --setting static --run one.run", "leaves documents out"),
        ("score --setting static --theta short.csv", "it has 2 positions"),
        ("score --setting static --theta wrong.csv", "position, and relative or theta"),
        ("score --setting static --theta zero.csv", "relative at position 5 is 0.0"),
        ("score --setting dynamic --theta zero.csv --ranker softmax", "is 0.0"),
        ("score --setting dynamic --theta good.csv --ranker softmax", "has 2 rounds"),
        ("score --setting static --theta good.csv --ranker lambda", "no ranker `lambda`"),
    ],
)
def test_what_does_not_fit_the_study_ends_with_a_sentence(
    finished: Study, tmp_path, monkeypatch, capsys, arguments, words
):
    folder = tmp_path / "beside"
    folder.mkdir()
    monkeypatch.chdir(folder)
    (folder / "results").symlink_to(finished.folder / "results")
    scores = Path("results/runs/tiny/weak/static/seed1/naive/round0/test_scores.npz")
    export_runs(Path("results/data/tiny"), {("naive", scores, "grades"): folder / "naive.run"})
    lines = Path("naive.run").read_text().splitlines()
    first = lines[0].split()[0]
    Path("short.run").write_text("\n".join(line for line in lines if line.split()[0] == first))
    tops = {line.split()[0]: line for line in lines}
    Path("one.run").write_text("\n".join(tops.values()))
    Path("good.csv").write_text("position,relative\n1,1\n2,.9\n3,.7\n4,.5\n5,.4\n")
    Path("zero.csv").write_text("position,relative\n1,1\n2,.9\n3,.7\n4,.5\n5,0\n")
    Path("short.csv").write_text("position,relative\n1,1\n2,.9\n")
    Path("wrong.csv").write_text("rank,propensity\n1,1\n2,.9\n")
    before = sorted(str(path) for path in finished.folder.rglob("*"))
    assert main(arguments.split()) == 2
    said = capsys.readouterr().err
    assert said.startswith("ultrbench: ")
    assert words in said
    assert not Path("new").exists()
    assert sorted(str(path) for path in finished.folder.rglob("*")) == before


def test_a_study_that_has_not_ended_exports_but_scores_nothing(rerun: Study, monkeypatch, capsys):
    monkeypatch.chdir(rerun.folder)
    for name in ("results/provenance.json", "results/evaluation", "results/tables"):
        path = Path(name)
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    run("export", "--setting", "dynamic", "--seed", "2", "--track", "dla", "--output", "exported")
    assert "The study has not ended" in capsys.readouterr().out
    about = read_json("exported/export.json")
    assert (about["rounds"], about["config"]["setting"]) == ([1], None)
    assert set(read_arrays("exported/train.log.npz")["rounds"]) == {1}
    shutil.copy("exported/truth.csv", "my.csv")
    assert main(["score", "--setting", "static", "--theta", "my.csv"]) == 2
    assert "is not finished" in capsys.readouterr().err


def test_damaged_results_are_neither_exported_nor_scored(rerun: Study, monkeypatch, capsys):
    monkeypatch.chdir(rerun.folder)
    last = "results/runs/tiny/weak/dynamic/seed1/dla/round1"
    export = "export --setting dynamic --track dla --seed 1 --output new"
    score = f"score --setting static --theta {ROUND}/theta/dla.csv --name mine --output new --run "
    score += runs_of("dla", rerun.folder)[0]
    named = {
        export: [
            "results/policies/tiny/weak/seed1.npz",
            "results/policies/tiny/weak/seed1.json",
            "results/data/tiny/dataset.json",
            "results/data/tiny/test.lists.npz",
            "results/provenance.json",
            *(f"{last}/{name}" for name in ("truth.csv", "train.lists.parquet")),
        ],
        score: [
            "results/provenance.json",
            "results/evaluation/tiny/weak/static/per_query.parquet",
            "results/evaluation/tiny/weak/static/conventions.csv",
            "results/tables/tiny/propensity_error.csv",
            "results/tables/tiny/weak.static.truncated.grades.csv",
            f"{ROUND}/truth.csv",
        ],
    }
    for command, files in named.items():
        for path in map(Path, files):
            whole = path.read_bytes()
            for content in (b"", whole[: len(whole) // 2], b"<html>404</html>", b"[1, 2]\n"):
                path.write_bytes(content)
                assert main(command.split()) == 2
                assert path.name in capsys.readouterr().err, (path, content)
            path.write_bytes(whole)
    Path(last, "vali.clicks.parquet").unlink()
    assert main(export.split()) == 2
    assert "vali.clicks.parquet is not there" in capsys.readouterr().err
    assert not Path("new").exists()

"""The commands of python -m ultrbench, on a repository whose study is small."""

import ast
import re
import shlex
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from ultrbench.__main__ import COMMANDS, main
from ultrbench.cli import shared
from ultrbench.datasets.split import read_split
from ultrbench.files import read_arrays, read_json
from ultrbench.stages.export import FILES, export_log
from ultrbench.stages.score import by_replicate, complete_kinds, read_run_scores, verdict

REPOSITORY = Path(__file__).parents[2]
DOCUMENT = (REPOSITORY / "docs/command-line.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", DOCUMENT, flags=re.DOTALL)


def commands(heading: str) -> list[list[str]]:
    """The arguments of each command below a heading."""
    part = DOCUMENT.split(f"## {heading}\n")[1].split("\n## ")[0]
    lines = re.findall(r"^python -m ultrbench (.*)$", part, flags=re.MULTILINE)
    assert lines
    return [shlex.split(line) for line in lines]


def run(*arguments: object) -> None:
    assert main([str(argument) for argument in arguments]) == 0, arguments


@pytest.fixture(scope="session")
def repository(tmp_path_factory):
    """The shipped configuration, with a smaller data set and fewer trees and sessions."""
    root = tmp_path_factory.mktemp("repository")
    shutil.copytree(REPOSITORY / "workflow/schemas", root / "workflow/schemas")
    (root / "config").mkdir()
    config = yaml.safe_load((REPOSITORY / "config/config.yaml").read_text())
    config["policies"]["strong"]["trees"] = 5
    config["settings"]["static"]["sessions"] = 4000
    config["training"] |= {"trees": 8, "leaves": 4, "min_data_in_leaf": 5}
    for name in ("crossfit", "dla"):
        config["estimators"][name] |= {"trees": 5, "leaves": 4}
    config["estimators"]["dla"]["max_iterations"] = 2
    registry = yaml.safe_load((REPOSITORY / "config/datasets.yaml").read_text())
    registry["synthetic"] |= {
        "features": 12,
        "documents": 12,
        "queries": {"train": 60, "vali": 15, "test": 20},
    }
    for name, content in (("config", config), ("datasets", registry)):
        (root / f"config/{name}.yaml").write_text(yaml.safe_dump(content))
    return root


@pytest.fixture(scope="session")
def made(repository, tmp_path_factory):
    """A folder in which the commands of docs/command-line.md have run."""
    folder = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shared, "ROOT", repository)
        patch.chdir(folder)
        for arguments in commands("From data to a measured ranker"):
            run(*arguments)
        Path("mylog").mkdir()
        for name in ("train.lists.parquet", "train.clicks.parquet"):
            shutil.copy(Path("log", name), "mylog")
        for arguments in commands("A click log of one's own"):
            run(*arguments)
    return folder


@pytest.fixture
def inside(made, repository, monkeypatch, tmp_path):
    """A copy of that folder to work in."""
    folder = tmp_path / "work"
    shutil.copytree(made, folder)
    monkeypatch.setattr(shared, "ROOT", repository)
    monkeypatch.chdir(folder)
    return folder


def refused(capsys, *arguments: object) -> str:
    """The sentence that ends a command."""
    capsys.readouterr()
    assert main([str(argument) for argument in arguments]) == 2, arguments
    said = capsys.readouterr().err
    assert said.startswith("ultrbench: ")
    assert "Traceback" not in said
    return said


def test_no_arguments_show_the_help(capsys):
    assert main([]) == 2
    shown = capsys.readouterr().err
    assert all(f"\n    {name}" in shown for name in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_shows_an_example_that_its_parser_takes(command, capsys):
    with pytest.raises(SystemExit) as done:
        main([command, "--help"])
    assert done.value.code == 0
    shown = capsys.readouterr().out
    example = shown.split("example:")[1].replace("\\\n", " ")
    lines = [line for line in example.splitlines() if line.strip()]
    assert lines
    for line in lines:
        with pytest.raises(SystemExit) as done:
            main([*shlex.split(line)[3:], "--help"])
        assert done.value.code == 0
        assert shlex.split(line)[:4] == ["python", "-m", "ultrbench", command]


def test_an_unknown_command_is_refused_with_those_there_are(capsys):
    assert main(["propensty"]) == 2
    assert capsys.readouterr().err == (
        "ultrbench: There is no command `propensty`; do you mean propensity?\n"
    )


@pytest.mark.parametrize("seed", ["-1", "1.0", "x", "٣", "9" * 5000, str(2**31)])
def test_a_seed_is_a_whole_number_that_lightgbm_takes(seed, capsys):
    with pytest.raises(SystemExit) as done:
        main(["clicks", "data", "c.npz", "--output", "log", f"--seed={seed}"])
    assert done.value.code == 2
    assert "a whole number from 0 to 2147483647 is wanted" in capsys.readouterr().err


def test_the_commands_of_the_documentation_leave_what_it_says(made):
    assert read_json(made / "log/log.json")["dataset"] == "../synthetic"
    assert {path.name for path in (made / "ranker").iterdir()} == {
        "theta.csv",
        "ranker.txt",
        "ranker.json",
        "test_scores.npz",
        "grades.run",
        "clicks.run",
        "qrels.txt",
    }
    assert pd.read_csv(made / "theta.csv")["relative"][0] == 1
    assert not list(made.rglob("*.partial*"))


def test_what_a_command_prints_is_what_it_writes(inside, capsys):
    run("propensity", "log", "--estimator", "ctr", "--output", "ctr.csv")
    capsys.readouterr()
    run("propensity", "log", "--estimator", "ctr")
    assert capsys.readouterr().out == Path("ctr.csv").read_text()


def test_letor_text_of_the_documentation_becomes_a_data_set(inside, capsys):
    folder = Path("MSLR-WEB10K/Fold1")
    folder.mkdir(parents=True)
    for split, query in (("train", 1), ("vali", 2), ("test", 3)):
        lines = [f"{grade} qid:{query} 1:{grade} 136:0.5\n" for grade in range(4)]
        (folder / f"{split}.txt").write_text("".join(lines))
    [command] = re.findall(r"`python -m ultrbench (data MSLR.*?)`", DOCUMENT)
    run(*shlex.split(command))
    assert read_split("mslr", "test").query_ids.tolist() == ["3"]
    narrow = ("data", folder, "--features", "135", "--output", "narrow")
    assert "Fold1/train.txt:1" in refused(capsys, *narrow)
    (folder / "vali.txt").rename(folder / "valid.txt")
    again = ("data", folder, "--features", "136", "--output", "again")
    assert "Name the files by --files" in refused(capsys, *again)
    run(*again, "--files", "train.txt", "valid.txt", "test.txt")
    assert Path("again/vali.lists.npz").read_bytes() == Path("mslr/vali.lists.npz").read_bytes()


def test_set_changes_a_key_and_is_checked(inside, capsys):
    run("clicks", "synthetic", "strong.npz", "--set", "eta=0", "sessions=500", "--output", "flat")
    assert set(pd.read_csv("flat/truth.csv")["theta"]) == {1.0}
    assert read_json("flat/log.json")["setting"]["sessions"] == 500
    new = ("clicks", "synthetic", "strong.npz", "--output", "new", "--set")
    assert "settings.static.eta: a number from 0" in refused(capsys, *new, "eta=two")
    assert "Did you mean eta?" in refused(capsys, *new, "etta=2")
    assert "KEY=VALUE is wanted" in refused(capsys, *new, "eta", "2")
    assert not Path("new").exists()


def test_a_definition_of_ones_own_is_checked_though_no_study_uses_it(inside, capsys):
    Path("mine.yaml").write_text("policies: {mine: {kind: ranking_svm}}\n")
    arguments = ("policies", "synthetic", "--policy", "mine", "--configfile", "mine.yaml")
    assert "share" in refused(capsys, *arguments, "--output", "mine.npz")
    run(*arguments, "--set", "share=0.1", "--output", "mine.npz")
    assert read_json("mine.json")["policy"]["share"] == 0.1


def test_nothing_is_overwritten(inside, capsys):
    before = {path: path.read_bytes() for path in inside.rglob("*") if path.is_file()}
    for arguments in commands("From data to a measured ranker"):
        if "--output" in arguments:
            assert "is not overwritten" in refused(capsys, *arguments)
    assert {path: path.read_bytes() for path in inside.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("data nowhere --features 3 --output new", "nowhere: no such folder"),
        ("data log --output new", "needs --features"),
        ("data log --features 3 --output new", "no file matches train.txt"),
        ("data --dataset synthetc --output new", "do you mean synthetic"),
        ("data --output new", "either"),
        ("data --dataset synthetic --configfile no.yaml --output new", "no.yaml cannot be read"),
        ("policies log --policy strong --output new.npz", "no folder of a prepared data set"),
        ("policies synthetic --policy stronger --output new.npz", "no policy `stronger`"),
        ("policies synthetic --policy strong --output new", "ends in .npz"),
        ("clicks synthetic theta.csv --output new", "theta.csv cannot be read as arrays"),
        ("clicks synthetic nowhere.npz --output new", "nowhere.npz: no such file"),
        ("clicks synthetic strong.npz --setting statik --output new", "do you mean static"),
        ("propensity synthetic --estimator ctr", "no folder of a click log"),
        ("propensity log --estimator crosfit", "do you mean crossfit"),
        ("propensity log --estimator harvest", "no document of this log was seen at two"),
        ("propensity log --estimator ctr --output new.txt", "ends in .csv"),
        ("data mylog --features 4611686018427387904 --output new", "up to 100,000"),
        ("data --dataset synthetic --output .", "the name of a new folder is wanted"),
        ("data --dataset synthetic --output=--", "a value is wanted after ="),
        ("propensity log --estimator dla --set folds=2 folds=3", "folds is set twice"),
        ("propensity mylog --estimator crossfit", "add --dataset"),
        ("propensity log log/. --estimator ctr --output new.csv", "log is given twice"),
        ("clicks synthetic strong.npz --set sessions=010 --output new", "YAML takes 010 for 8"),
        ("propensity mylog --estimator oracle", "truth"),
        ("identifiability theta.csv", "no folder of a click log"),
        ("ranking mylog --theta theta.csv --output new", "add --dataset"),
        ("ranking log --theta ranker/ranker.txt --output new", "columns position, and relative"),
        ("ranking log --theta theta.csv --ranker joint --output new", "joint estimator"),
        ("ranking mylog --dataset synthetic --theta theta.csv --output new", "--candidates"),
        ("evaluation ranker/qrels.txt ranker/grades.run", "qrels.txt:1: 4 columns"),
        ("export --output new", "results/runs has no click logs"),
        ("export log --output new", "log/runs has no click logs"),
        ("score", "nothing to score"),
        ("score --theta theta.csv log", "log is a folder, and a file is wanted"),
        ("score --theta nowhere.csv", "nowhere.csv: no such file"),
        ("score --theta theta.csv", "results/runs has no click logs"),
        ("score --run ranker/grades.run --ranker softmax", "give --theta"),
    ],
)
def test_what_does_not_fit_ends_with_a_sentence(inside, capsys, arguments, words):
    assert words in refused(capsys, *arguments.split())
    assert not list(inside.glob("new*"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("estimators: 5", "estimators: a mapping of keys is wanted, got 5"),
        ("estimators: null", "estimators: a mapping of keys is wanted, got None"),
        ("estimators: {dla: []}", "estimators.dla: a mapping of keys is wanted, got []"),
        ('registry: "a\\0b"', "cannot be read: embedded null byte. See the key registry."),
        ("[1]", "mine.yaml: a mapping of keys is wanted, got [1]"),
    ],
)
def test_a_configuration_of_another_shape_ends_with_a_sentence(inside, capsys, text, words):
    Path("mine.yaml").write_text(text)
    command = ["propensity", "log", "--estimator", "dla", "--configfile", "mine.yaml"]
    assert words in refused(capsys, *command, "--set", "folds=2")


def test_a_mistake_in_a_log_names_its_own_file(inside, capsys):
    clicks = pd.read_parquet("mylog/train.clicks.parquet")
    clicks.assign(mask=2**40).to_parquet("mylog/train.clicks.parquet")
    said = refused(capsys, "propensity", "mylog", "--estimator", "ctr")
    assert "mylog/train.clicks.parquet: row 0" in said
    documents = pd.read_parquet("mylog/train.lists.parquet").assign(document=10**6)
    documents.to_parquet("mylog/train.lists.parquet")
    said = refused(capsys, "identifiability", "mylog", "--dataset", "synthetic")
    assert "mylog/train.lists.parquet: row 0 (the first is 0): document 1000000 is unknown" in said


def test_candidates_of_another_data_set_are_refused(inside, capsys):
    arrays = read_arrays("strong.npz")
    for changed in (
        {"test_all_scores": arrays["test_all_scores"][1:]},
        {"train_documents": arrays["train_documents"] + 10**6},
    ):
        np.savez("strong.npz", **(arrays | changed))
        said = refused(capsys, "clicks", "synthetic", "strong.npz", "--output", "new")
        assert "of another data set" in said


def test_validation_clicks_of_a_log_without_truth_are_weighted_by_theta(inside, capsys):
    shutil.copytree("log", "blind")
    Path("blind/truth.csv").unlink()
    run("ranking", "blind", "--theta", "theta.csv", "--output", "own")
    assert "validation clicks are weighted by theta.csv" in capsys.readouterr().err
    assert set(read_json("own/ranker.json")["trees"]) == {"grades", "clicks"}


def test_an_output_in_a_circle_of_links_is_refused(inside, capsys):
    Path("loop").symlink_to("loop")
    assert "loop" in refused(capsys, "data", "log", "--features", "3", "--output", "loop/new")


def test_the_name_of_a_folder_is_one_column_of_a_run(inside):
    folder = Path("my\tnew\nranker \udcff")
    run("ranking", "log", "--theta", "theta.csv", "--set", "trees=1", "--output", str(folder))
    rows = [line.split() for line in (folder / "grades.run").read_text("utf-8").splitlines()]
    assert {(len(row), row[-1]) for row in rows} == {(6, "my-new-ranker-\ufffd")}


def damage(content: bytes) -> dict[str, bytes]:
    return {
        "empty": b"",
        "half": content[: len(content) // 2],
        "cut": content[:-3],
        "page": b"<html>404</html>",
        "latin-1": "é,ü\n".encode("latin-1"),
        "list": b"[1, 2]",
        "nul": bytes(len(content)),
    }


@pytest.mark.parametrize(
    ("arguments", "files"),
    [
        ("policies synthetic --policy strong --output new.npz", "synthetic/*"),
        ("clicks synthetic strong.npz --output new", "synthetic/* strong.npz"),
        ("identifiability log --dataset synthetic", "log/*.parquet synthetic/*"),
        ("propensity log --estimator crossfit", "log/* synthetic/* strong.*n*"),
        ("ranking log --theta theta.csv --output new", "log/* synthetic/* strong.*n* theta.csv"),
        ("evaluation ranker/grades.run ranker/qrels.txt", "ranker/grades.run ranker/qrels.txt"),
    ],
)
def test_damaged_files_end_with_a_sentence(inside, capsys, arguments, files):
    by_text = ("truth.csv", "theta.csv", "grades.run", "qrels.txt")  # a digit less is a number too
    paths = [path for pattern in files.split() for path in inside.glob(pattern)]
    for path in paths:
        if path.name == "strong.json":
            continue
        whole = path.read_bytes()
        for how, content in damage(whole).items():
            if how == "cut" and path.name in by_text:
                continue
            path.write_bytes(content)
            assert path.name in refused(capsys, *arguments.split()), (path, how)
        path.write_bytes(whole)
    assert paths
    assert not list(inside.glob("new*"))


def test_a_flipped_bit_in_bins_or_a_log_is_found(inside, capsys):
    command = ["propensity", "log", "--estimator", "crossfit"]
    for name in ("strong.train.bin", "strong.vali.bin", "log/train.clicks.parquet"):
        whole = Path(name).read_bytes()
        for place in (0.1, 0.4):
            flipped = bytearray(whole)
            flipped[int(place * len(whole))] ^= 4
            Path(name).write_bytes(flipped)
            assert Path(name).name in refused(capsys, *command)
        Path(name).write_bytes(whole)
    for split in ("train", "vali", "test"):
        features = Path(f"synthetic/{split}.features.npy")
        whole = features.read_bytes()
        features.write_bytes(whole[:-9] + bytes([whole[-9] ^ 1]) + whole[-8:])
        assert f"the features of {split} have changed since" in refused(capsys, *command)
        features.write_bytes(whole.replace(b"\n", b"\r\n", 1))
        assert f"{split}.features.npy" in refused(capsys, *command)
        features.write_bytes(whole)
    Path("strong.vali.bin").unlink()
    assert "strong.vali.bin: these are not the binned features" in refused(capsys, *command)


def test_sizes_that_do_not_fit_each_other_are_refused(inside, capsys):
    features = Path("synthetic/train.features.npy")
    matrix = np.load(features)
    for wrong in (matrix[1:], matrix[:, 0], matrix.astype(np.float64)):
        np.save(features, wrong)
        said = refused(capsys, "policies", "synthetic", "--policy", "strong", "--output", "n.npz")
        assert "train.lists.npz cannot be read as the lists of train.features.npy" in said
    np.save(features, matrix)
    about = Path("synthetic/dataset.json")
    about.write_text(about.read_text().replace('"documents": 261', '"documents": 262'))
    said = refused(capsys, *["clicks", "synthetic", "strong.npz", "--output", "new"])
    assert "test has 261 documents, not 262" in said
    about.write_text(about.read_text().replace("features_sha256", "sha"))
    said = refused(capsys, *["clicks", "synthetic", "strong.npz", "--output", "new"])
    assert "no checksums of the features, as an older version" in said


@pytest.fixture
def exported(inside):
    folder = inside / "exported"
    place = {"dataset": "synthetic", "policy": "strong", "setting": "static", "track": "initial"}
    about = {**place, "seed": 1, "licence": "None."}
    export_log(inside / "synthetic", inside / "strong.npz", [inside / "log"], folder, about=about)
    return folder


def test_an_export_has_the_log_in_both_forms(exported):
    log = np.load(exported / "train.log.npz", allow_pickle=False)
    lists = pd.read_parquet(exported / "train.lists.parquet")
    clicks = pd.read_parquet(exported / "train.clicks.parquet")
    row, column = lists["list_id"].to_numpy(), lists["position"].to_numpy() - 1
    assert (log["documents"][row, column] == lists["document"]).all()
    assert log["sessions"].tolist() == clicks.groupby("list_id")["count"].sum().tolist()
    for k in range(log["clicks"].shape[1]):
        hit = (clicks["mask"].to_numpy() >> np.uint64(k)) & np.uint64(1) == 1
        assert log["clicks"][:, k].sum() == clicks["count"][hit].sum()
    split = read_split(exported, "test")
    table = pd.read_parquet(exported / "test.documents.parquet")
    assert (table["grade"] == split.grades).all()
    assert (table["query_id"] == split.query_ids[table["query"]]).all()
    assert np.array_equal(table.filter(like="feature_").to_numpy(), split.features)


def test_an_export_describes_every_file_and_column(exported):
    sums = dict(line.split()[::-1] for line in (exported / "SHA256SUMS").open())
    described = {name.format(split=split) for name in FILES for split in ("train", "vali", "test")}
    assert described | {"README.md", "export.json"} == set(sums)
    assert set(sums) | {"SHA256SUMS"} == {path.name for path in exported.iterdir()}
    for split in ("train", "vali", "test"):
        for kind in ("lists", "clicks"):
            columns = FILES[f"{{split}}.{kind}.parquet"][1]
            assert list(columns) == list(pd.read_parquet(exported / f"{split}.{kind}.parquet"))
        documented = ", ".join(FILES["{split}.log.npz"][1]).split(", ")
        assert set(documented) == set(read_arrays(exported / f"{split}.log.npz"))
        assert list(FILES["{split}.lists.npz"][1]) == list(
            read_arrays(exported / f"{split}.lists.npz")
        )


def test_an_export_serves_as_data_set_and_as_log(exported, inside):
    run("propensity", "exported", "--estimator", "crossfit", "--output", "again.csv")
    assert Path("again.csv").read_bytes() == Path("theta.csv").read_bytes()
    run("ranking", "exported", "--theta", "theta.csv", "--output", "again")
    assert Path("again/ranker.txt").read_bytes() == Path("ranker/ranker.txt").read_bytes()


def test_the_loaders_of_the_documentation_have_ten_lines_and_work(exported, inside):
    numpy_loader, torch_loader = blocks("python")
    for loader in (numpy_loader, torch_loader):
        assert len(loader.splitlines()) <= 10
        ast.parse(loader)
    found: dict = {}
    exec(numpy_loader, found)
    log = read_arrays("exported/train.log.npz")
    assert found["x"].shape == (*log["documents"].shape, 12)
    assert (found["x"][~found["shown"]] == 0).all()
    ctr = pd.read_csv("mytheta.csv")  # only as long as the log is wide
    assert len(found["click_rate"]) == len(ctr)


def test_files_go_to_the_replicates_that_their_names_say():
    files = [Path(f"a.seed{seed}.txt") for seed in (1, 10, 2)]  # in the order of a shell's glob
    assert by_replicate(files, [1, 2, 10], "--run")[2].name == "a.seed2.txt"
    assert set(by_replicate(files[:1], [1, 2], "--run").values()) == {files[0]}
    for wrong, seeds, words in (
        (files, [1, 2], "replicates 1, 2, 10; the study has 1, 2"),
        ([Path("a.txt"), Path("b.txt")], [1, 2], "must name its replicate"),
        ([Path("a.seed1.txt"), Path("b.seed1.txt")], [1, 2], "are for one replicate"),
    ):
        with pytest.raises(shared.UserError, match=words):
            by_replicate(wrong, seeds, "--run")


def test_a_verdict_is_the_mark_of_the_table():
    row = {
        "method": "mine", "candidates": "full", "validation": "grades", "rank": 1, "rows": 9,
        "metric": "nDCG@10", "mean": 0.5, "reference": "naive", "difference": 0.1, "low": 0.05,
        "high": 0.2, "p": 0.01, "p_holm": 0.2, "replicates": 5, "significant": True,
    }  # fmt: skip
    assert verdict(row).endswith(": better")
    assert verdict(row | {"difference": -0.1, "low": -0.2, "high": -0.05}).endswith(": worse")
    assert verdict(row | {"p": 0.06, "significant": False}).endswith(": no difference shown")
    assert verdict(row | {"replicates": 4}).endswith(": no verdict, as fewer than five replicates")


def test_a_run_is_read_by_document_and_must_fit_the_test_queries(inside):
    test = read_split("synthetic", "test")
    lines = Path("ranker/grades.run").read_text().splitlines()
    scores = read_run_scores(Path("ranker/grades.run"), test)
    trained = read_arrays("ranker/test_scores.npz")["grades"]
    for start, stop in zip(test.query_ptr[:-1], test.query_ptr[1:], strict=True):
        order = np.argsort(-trained[start:stop], kind="stable")
        assert (np.diff(scores[start:stop][order]) < 0).all()
    path = Path("mine.run")
    first = lines[0].split()[0]
    for changed, words in (
        ([line for line in lines if line.split()[0] != first], "it lacks 1 of the 20 test queries"),
        ([*lines, "elsewhere Q0 d 1 1 me"], "query elsewhere is not one"),
        ([*lines, f"{first} Q0 d 1 1 me"], f"query {first} has no document d; its"),
    ):
        path.write_text("\n".join(changed))
        with pytest.raises(shared.UserError, match=words):
            read_run_scores(path, test)
    path.write_text("\n".join(lines[1:]))
    partial = read_run_scores(path, test)
    assert np.isnan(partial).sum() == 1
    kinds = ["truncated", "full"]
    files = {1: Path("strong.npz")}
    assert complete_kinds({1: scores}, files, kinds) == kinds
    assert "full" not in complete_kinds({1: partial}, files, kinds)

"""Stages on a tiny data set: from files to files, without test grades, and what they import."""

import ast
import dataclasses
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import chi2
from toys import make_split

import ultrbench
from ultrbench.datasets.split import write_split
from ultrbench.errors import UserError
from ultrbench.files import read_arrays, read_json, write_json, write_text
from ultrbench.propensity.estimate import read_propensity
from ultrbench.ranking.model import predict
from ultrbench.simulation.clicks import attraction
from ultrbench.simulation.log import concatenate, log_files, read_log, read_rounds
from ultrbench.simulation.truth import read_truth, write_truth
from ultrbench.stages.clicks import simulate_clicks
from ultrbench.stages.evaluation import evaluate_rankers
from ultrbench.stages.job import job, refuse_touched
from ultrbench.stages.policies import train_policy
from ultrbench.stages.propensity import estimate_propensity
from ultrbench.stages.ranking import train_ranker
from ultrbench.stages.sources import PACKAGE, import_closure
from ultrbench.study import SIZE

SETTING = {
    "sessions": 20_000, "eta": 1.0, "eps": 0.1, "empty_sessions": "keep", "traffic_exponent": 0.0,
    "examination": [0.68, 0.61, 0.48, 0.34], "randomized_share": 0.25, "lists_per_query": 3,
    "click_model": {"kind": "pbm"}, "display": "policy", "temperature": 1.0,
}  # fmt: skip
TRAINING = {
    "trees": 12, "leaves": 6, "learning_rate": 0.2, "min_data_in_leaf": 5, "patience": 12,
    "validation": ["grades", "clicks"],
}  # fmt: skip
CLICKS = {"target": "clicks", "weights": "ipw", "lists": "all"}
DLA = {
    "kind": "dla", "folds": 2, "trees": 6, "leaves": 4, "learning_rate": 0.2, "tolerance": 0.05,
    "max_iterations": 4,
}  # fmt: skip
POLICY = {"kind": "lambdamart", "share": 0.3, "trees": 8, "leaves": 6, "learning_rate": 0.1}
SPLITS = {
    name: make_split(np.random.default_rng(seed).integers(1, 12, size), seed=seed)
    for seed, (name, size) in enumerate({"train": 70, "vali": 30, "test": 25}.items())
}


def write_dataset(folder, splits=SPLITS):
    for name, split in splits.items():
        write_split(split, folder, name)
    write_json(folder / "dataset.json", {"ymax": 4})
    return folder


def simulate(
    data, candidates, out, *, log="initial", round_=0, seed=1, ranker=None,
    splits=("train", "vali"), **setting,
):  # fmt: skip
    simulate_clicks(
        data, candidates, out, setting=SETTING | setting, log=log, round_=round_, seed=seed,
        ranker=ranker, splits=splits,
    )  # fmt: skip
    return out


def rank(data, candidates, logs, out, *, method=CLICKS, objective="softmax", **more):
    paths = out / "ranker.txt", out / "ranker.json", out / "scores.npz"
    train_ranker(
        data, candidates, logs, *paths,
        **({"method": method, "objective": objective, "training": TRAINING, "eps": 0.1, "cutoff": 5,
            "seed": 1} | more),
    )  # fmt: skip
    return paths


def chain(data, root):
    """Two rounds of the whole chain; returns the files by name."""
    candidates = root / "candidates.npz"
    train_policy(
        data, candidates, root / "policy.json", policy=POLICY,
        policy_queries={"mode": "disjoint", "pool": 0.3}, list_size=4, seed=1,
    )  # fmt: skip
    logs = [simulate(data, candidates, root / "round0")]
    simulate(data, candidates, root / "randomized", log="randomized")
    for kind, folders in (
        ({"kind": "ctr"}, logs),
        ({"kind": "oracle"}, logs),
        ({"kind": "randomization"}, [root / "randomized"]),
        (DLA, logs),
    ):
        name = kind["kind"]
        estimate_propensity(
            data, candidates, folders, root / f"{name}.csv", root / f"{name}.json", name=name,
            estimator=kind, seed=1,
        )  # fmt: skip
    ranker = rank(data, candidates, logs, root / "first", theta=root / "dla.csv")
    logs.append(simulate(data, candidates, root / "round1", round_=1, ranker=ranker[:2]))
    rank(
        data, candidates, logs, root / "second", theta=root / "oracle.csv",
        validation_theta=root / "randomization.csv", objective="pairwise",
    )  # fmt: skip
    return {str(f.relative_to(root)): f.read_bytes() for f in root.rglob("*") if f.is_file()}


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    root = tmp_path_factory.mktemp("world")
    data = write_dataset(root / "data")
    return data, root / "run", chain(data, root / "run")


def test_the_same_seed_gives_the_same_bytes_whatever_the_test_grades_are(world, tmp_path):
    rng = np.random.default_rng(0)
    test = dataclasses.replace(SPLITS["test"], grades=rng.permutation(SPLITS["test"].grades))
    assert (test.grades != SPLITS["test"].grades).any()
    other = chain(write_dataset(tmp_path / "data", SPLITS | {"test": test}), tmp_path / "run")
    assert other == world[2]
    assert len(other) > 20
    assert not [name for name in other if "partial" in name]


def test_a_round_shows_the_candidates_in_the_policys_order(world):
    _, run, _ = world
    arrays = read_arrays(run / "candidates.npz")
    for name in ("train", "vali"):
        log = read_log(*log_files(run / "round0", name))
        assert log.documents.tolist() == arrays[f"{name}_documents"].tolist()
        np.testing.assert_array_equal(log.scores, arrays[f"{name}_scores"])
        assert log.queries.tolist() == arrays[f"{name}_queries"].tolist()
        assert not log.rounds.any() and not log.randomized.any()
    train, vali = (read_log(*log_files(run / "round0", name)) for name in ("train", "vali"))
    assert train.sessions.sum() == 20_000
    assert vali.sessions.sum() == round(20_000 * 30 / 49)
    logged = set(SPLITS["train"].query_ids[train.queries])
    assert logged.isdisjoint(read_json(run / "policy.json")["queries_trained_on"])


def test_a_later_round_shows_the_same_candidates_in_the_rankers_order(world):
    _, run, _ = world
    first, second = (read_log(*log_files(run / f"round{r}", "train")) for r in (0, 1))
    assert (np.sort(first.documents, axis=1) == np.sort(second.documents, axis=1)).all()
    assert (first.documents != second.documents).any()
    assert (second.rounds == 1).all()
    trees = next(iter(read_json(run / "first/ranker.json")["trees"].items()))
    assert trees[0] == "grades"
    scores = predict((run / "first/ranker.txt").read_text(), SPLITS["train"].features, trees[1])
    for shown, logged in zip(second.documents, second.scores, strict=True):
        real = shown[shown >= 0].tolist()
        assert real == sorted(real, key=lambda i: (-scores[i], i))
        assert logged[: len(real)].tolist() == scores[real].tolist()


def test_a_randomized_log_shuffles_its_share_of_the_same_budget(world):
    _, run, _ = world
    log = read_log(*log_files(run / "randomized", "train"))
    assert log.sessions.sum() == 20_000
    assert log.sessions[log.randomized].sum() == 5_000
    assert log.randomized.sum() == 3 * (~log.randomized).sum() == 3 * 49
    shuffled = log.select(log.randomized)
    assert np.isnan(shuffled.scores).all()
    policy = log.select(~log.randomized)
    assert (np.sort(shuffled.documents, axis=1)
            == np.repeat(np.sort(policy.documents, axis=1), 3, axis=0)).all()  # fmt: skip
    top = (shuffled.documents[:, 0] == np.repeat(policy.documents[:, 0], 3))[
        shuffled.shown.all(axis=1)
    ]
    assert 0.1 < top.mean() < 0.45  # a quarter


@pytest.mark.parametrize("log", ["initial", "randomized"])
def test_clicks_of_a_stage_follow_the_closed_form(world, tmp_path, log):
    data, run, _ = world
    simulate(data, run / "candidates.npz", tmp_path, log=log, eta=1.5, sessions=2_000_000)
    drawn = read_log(*log_files(tmp_path, "train"))
    theta = np.array(SETTING["examination"]) ** 1.5
    assert read_truth([tmp_path / "truth.csv"]).tolist() == theta.tolist()
    gamma = attraction(SPLITS["train"].grades, 4)
    p = np.where(drawn.shown, theta * gamma[drawn.documents], 0)
    n = np.broadcast_to(drawn.sessions[:, None], p.shape)
    cells = (p > 0) & (n > 0)
    z = ((drawn.clicks - n * p) / np.sqrt(n * p * (1 - p) + 1e-9))[cells]
    assert np.abs(z).max() < 5
    assert 1e-4 < chi2.sf((z**2).sum(), z.size) < 1 - 1e-4
    assert not drawn.clicks[~drawn.shown].any()


def test_logs_differ_in_their_draws_but_not_in_which_query_is_popular(world, tmp_path):
    data, run, _ = world
    logs = {}
    for name, log, round_, seed in (
        ("one", "initial", 0, 1), ("again", "initial", 0, 1), ("replica", "replica", 0, 1),
        ("later", "initial", 1, 1), ("other", "initial", 0, 2), ("shuffled", "randomized", 0, 1),
    ):  # fmt: skip
        simulate(
            data, run / "candidates.npz", tmp_path / name, log=log, round_=round_, seed=seed,
            traffic_exponent=1.0, sessions=200_000,
        )  # fmt: skip
        logs[name] = read_log(*log_files(tmp_path / name, "train"))
    assert (logs["one"].clicks == logs["again"].clicks).all()

    def by_query(log):
        return np.bincount(log.queries, log.sessions, minlength=70)

    one = by_query(logs["one"])
    for name in ("replica", "later"):
        assert (logs["one"].clicks != logs[name].clicks).any()
    for name in ("replica", "later", "shuffled"):
        assert np.corrcoef(one, by_query(logs[name]))[0, 1] > 0.99
    shuffled = logs["shuffled"]
    assert np.corrcoef(one, by_query(shuffled.select(shuffled.randomized)))[0, 1] > 0.98
    assert np.corrcoef(one, by_query(logs["other"]))[0, 1] < 0.6


def test_empty_sessions_leave_the_log_when_they_are_dropped(world, tmp_path):
    data, run, _ = world
    for mode in ("keep", "drop", "resample"):
        simulate(data, run / "candidates.npz", tmp_path / mode, empty_sessions=mode)
    keep, drop, resample = (
        read_log(*log_files(tmp_path / mode, "train")) for mode in ("keep", "drop", "resample")
    )
    assert (keep.clicks == drop.clicks).all()
    assert drop.sessions.sum() == keep.count[keep.mask > 0].sum() < 20_000
    assert resample.sessions.tolist() == keep.sessions.tolist()
    assert (resample.mask > 0).all()


def test_scores_are_those_of_the_stopped_ensembles(world):
    _, run, _ = world
    for folder in ("first", "second"):
        report, scores = (
            read_json(run / folder / "ranker.json"),
            read_arrays(run / folder / "scores.npz"),
        )
        assert (
            list(scores) == list(report["trees"]) == list(report["curve"]) == ["grades", "clicks"]
        )
        model = (run / folder / "ranker.txt").read_text()
        for name, trees in report["trees"].items():
            assert (scores[name] == predict(model, SPLITS["test"].features, trees)).all()


def test_estimates_name_their_estimator_and_its_parameters(world):
    _, run, _ = world
    report = read_json(run / "dla.json")
    assert {key: report[key] for key in DLA} == DLA
    assert report["estimator"] == "dla"
    assert len(report["trace"]) <= 4
    theta = np.array(SETTING["examination"])
    np.testing.assert_allclose(read_propensity(run / "oracle.csv"), theta / theta[0])
    np.testing.assert_allclose(
        read_propensity(run / "randomization.csv"), theta / theta[0], rtol=0.25
    )


TARGETS = [
    ({"target": "grades", "lists": "all"}, {}),
    ({"target": "relevance", "lists": "all"}, {}),
    ({"target": "examined_relevance", "lists": "all"}, {}),
    ({"target": "clicks", "weights": "ipw", "lists": "randomized"}, {"theta": "ctr.csv"}),
]


@pytest.mark.parametrize(("method", "more"), TARGETS, ids=[m["target"] for m, _ in TARGETS])
def test_every_target_trains(world, tmp_path, method, more):
    data, run, _ = world
    more = {key: run / value for key, value in more.items()}
    for training, names in (
        (TRAINING, ["grades", "clicks"]),
        (TRAINING | {"validation": ["fixed"]}, ["fixed"]),
    ):
        _, report, scores = rank(
            data, run / "candidates.npz", [run / "randomized"], tmp_path, method=method,
            training=training, **more,
        )  # fmt: skip
        assert list(read_json(report)["trees"]) == list(read_arrays(scores)) == names


def test_rounds_join_in_a_log(world):
    _, run, _ = world
    rounds = [run / "round0", run / "round1"]
    both = read_rounds(rounds, "train")
    single = concatenate([read_log(*log_files(folder, "train")) for folder in rounds])
    assert (both.clicks == single.clicks).all()
    assert both.rounds.tolist() == [0] * 49 + [1] * 49


def test_without_truth_what_needs_it_is_refused(world, tmp_path):
    data, run, _ = world
    folder = tmp_path / "own"
    folder.mkdir()
    for file in (run / "round0").iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    write_truth(folder / "truth.csv", np.empty(0))
    arguments = data, run / "candidates.npz", [folder], tmp_path / "out"
    with pytest.raises(UserError, match=r"training\.validation_theta: truth: .*no truth\.csv"):
        rank(*arguments, theta=run / "ctr.csv")
    with pytest.raises(UserError, match=r"target examined_relevance: .*no truth\.csv"):
        rank(*arguments, method={"target": "examined_relevance", "lists": "all"})
    with pytest.raises(UserError, match="estimator oracle"):
        estimate_propensity(
            data, run / "candidates.npz", [folder], tmp_path / "t.csv", tmp_path / "t.json",
            name="oracle", estimator={"kind": "oracle"}, seed=1,
        )  # fmt: skip
    rank(*arguments, theta=run / "ctr.csv", validation_theta=run / "ctr.csv")
    assert not (tmp_path / "t.csv").exists()


def test_a_log_without_clicks_is_refused(world, tmp_path):
    data, run, _ = world
    folder = tmp_path / "silent"
    simulate(data, run / "candidates.npz", folder, sessions=1, examination=[1e-9])
    train, vali = (read_log(*log_files(folder, name)) for name in ("train", "vali"))
    assert train.clicks.sum() == vali.clicks.sum() == 0
    method = {"target": "grades", "lists": "all"}
    with pytest.raises(UserError, match="needs clicks on validation queries"):
        rank(data, run / "candidates.npz", [folder], tmp_path / "out", method=method)
    with pytest.raises(UserError, match=r"nothing to learn from: the .* have no click in all"):
        rank(data, run / "candidates.npz", [folder], tmp_path / "out", theta=run / "ctr.csv")
    method = {"target": "clicks", "weights": "ipw", "lists": "randomized"}
    with pytest.raises(UserError, match="nothing to learn from: the 0 displayed documents"):
        rank(data, run / "candidates.npz", [folder], tmp_path / "out", method=method,
             theta=run / "ctr.csv")  # fmt: skip
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("without_relevant", ["zero", "drop"])
def test_test_queries_without_any_relevant_document_are_refused(world, tmp_path, without_relevant):
    _, run, _ = world
    blank = dataclasses.replace(SPLITS["test"], grades=np.zeros_like(SPLITS["test"].grades))
    data = write_dataset(tmp_path / "data", SPLITS | {"test": blank})
    out = [tmp_path / name for name in ("per_query.parquet", "rounds.csv", "conventions.csv")]
    with pytest.raises(UserError, match="no test query has a relevant document"):
        evaluate_rankers(
            data, {1: run / "candidates.npz"}, {}, *out, kinds=["full"], metrics=["nDCG@5"],
            headline="nDCG@5", without_relevant=without_relevant,
        )  # fmt: skip


# Each stage is imported and run anew, and names the package's files that it has loaded.
IMPORTS = """
import json, sys
from pathlib import Path
from types import SimpleNamespace
sys.path.insert(0, {tests!r})
import test_stages
data, run, out = Path({data!r}), Path({run!r}), Path({out!r})
used = {{}}

def stage(name, call):
    for module in [m for m in sys.modules if m.partition(".")[0] == "ultrbench"]:
        del sys.modules[module]
    module = __import__("ultrbench.stages." + name, fromlist=["x"])
    for function in ("train_policy", "simulate_clicks", "estimate_propensity", "train_ranker"):
        if hasattr(module, function):
            setattr(test_stages, function, getattr(module, function))
    call()
    used[name] = sorted(
        m.__file__ for n, m in sys.modules.items()
        if n.startswith("ultrbench.") and not m.__file__.endswith("__init__.py")
    )

for kind in (test_stages.POLICY, {{"kind": "ranking_svm", "share": 0.1, "cost": 200.0}}):
    stage("policies", lambda: test_stages.train_policy(
        data, out / "c.npz", out / "p.json", policy=kind, list_size=4, seed=1,
        policy_queries={{"mode": "disjoint", "pool": 0.3}},
    ))
stage("clicks", lambda: test_stages.simulate(
    data, run / "candidates.npz", out / "log", log="randomized",
    ranker=(run / "first/ranker.txt", run / "first/ranker.json"),
))
stage("propensity", lambda: test_stages.estimate_propensity(
    data, run / "candidates.npz", [run / "round0"], out / "t.csv", out / "t.json", name="d",
    estimator=test_stages.DLA, seed=1,
))
stage("ranking", lambda: test_stages.rank(
    data, run / "candidates.npz", [run / "round0"], out / "ranker", theta=run / "ctr.csv",
))
print(json.dumps(used))
"""


def test_the_import_closure_is_what_a_stage_imports(world, tmp_path):
    data, run, _ = world
    code = IMPORTS.format(
        tests=str(Path(__file__).parent), data=str(data), run=str(run), out=str(tmp_path)
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    used = json.loads(done.stdout)
    assert list(used) == ["policies", "clicks", "propensity", "ranking"]
    for name, files in used.items():
        modules = [f"ultrbench.stages.{name}"]
        modules += {
            "propensity": ["ultrbench.propensity.dla"],
            "clicks": ["ultrbench.simulation.click_models.pbm"],
        }.get(name, [])
        assert [str(Path(file).resolve()) for file in import_closure(modules)] == files


def test_an_estimators_closure_leaves_other_estimators_out():
    names = {
        Path(f).name
        for f in import_closure(["ultrbench.stages.propensity", "ultrbench.propensity.ctr"])
    }
    assert {"ctr.py", "estimate.py", "propensity.py", "log.py"} <= names
    assert names.isdisjoint({"dla.py", "crossfit.py", "oracle.py", "randomization.py"})


def test_closure_paths_are_relative_below_the_current_folder(monkeypatch, tmp_path):
    monkeypatch.chdir(PACKAGE.parent)
    assert import_closure(["ultrbench.errors"]) == ["ultrbench/errors.py"]
    monkeypatch.chdir(tmp_path)
    assert import_closure(["ultrbench.errors"]) == [str(PACKAGE / "errors.py")]


def test_packages_hold_no_code_of_their_own():
    """Closures leave `__init__.py` out; only a version and documentation may stand there."""
    for file in PACKAGE.rglob("__init__.py"):
        for node in ast.parse(file.read_text()).body:
            assert isinstance(node, ast.Expr) or ast.unparse(node).startswith("__version__ =")
    assert ultrbench.__version__


def test_no_module_imports_relatively():
    """`import_closure` follows absolute imports only."""
    for file in PACKAGE.rglob("*.py"):
        nodes = ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        assert not any(isinstance(node, ast.ImportFrom) and node.level for node in nodes), file


JOB = """
import types
from ultrbench.errors import UserError
from ultrbench.stages.job import job, refuse_touched
with job(types.SimpleNamespace(log=["job.log"])):
    print("to the log")
    {line}
print("after the job")
"""


def run_job(folder, line):
    environment = {k: v for k, v in os.environ.items() if not k.endswith("_NUM_THREADS")}
    done = subprocess.run(
        [sys.executable, "-c", JOB.format(line=line)],
        cwd=folder, capture_output=True, text=True, env=environment,
    )  # fmt: skip
    return done, (folder / "job.log").read_text()


def test_a_job_that_succeeds(tmp_path):
    done, log = run_job(tmp_path, "import sys; print('warning', file=sys.stderr)")
    assert (done.returncode, done.stdout, done.stderr) == (0, "after the job\n", "")
    assert log.startswith("to the log\nwarning\ndone in ")


def test_a_users_mistake_ends_a_job_with_its_sentence_alone(tmp_path):
    done, log = run_job(tmp_path, "raise UserError('a.txt:3: größer als 4')")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "ultrbench: a.txt:3: größer als 4\n"
    assert log == "to the log\na.txt:3: größer als 4\n"


def test_a_name_that_is_no_utf8_is_told_by_its_codes(tmp_path):
    done, log = run_job(tmp_path, "print('\\udcff'); raise UserError('t\\udcfe.txt: no such file')")
    assert (done.returncode, done.stderr) == (1, "ultrbench: t\\udcfe.txt: no such file\n")
    assert log == "to the log\n\\udcff\nt\\udcfe.txt: no such file\n"


def test_an_unexpected_error_leaves_its_traceback_in_the_log_only(tmp_path):
    done, log = run_job(tmp_path, "1 / 0")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "ultrbench: unexpected error, see job.log\n"
    assert "Traceback (most recent call last)" in log
    assert log.rstrip().endswith("ZeroDivisionError: division by zero")


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("raise OSError(28, 'No space left on device', 'a.npz')", "a.npz: No space left on device"),
        ("raise OSError('80 requested and 0 written')", "a result: the disk took no more"),
        ("raise MemoryError('8 TiB')", "the memory does not suffice (8 TiB)"),
        ("open('/dev/full', 'w').write('x' * 10**6)", "a result: No space left on device"),
    ],
)
def test_what_the_machine_refuses_is_a_sentence(tmp_path, line, sentence):
    done, log = run_job(tmp_path, line)
    assert done.returncode == 1 and "Traceback" not in done.stderr + log
    assert done.stderr.startswith(f"ultrbench: {sentence}")


def test_a_log_on_a_full_disk_is_a_sentence(tmp_path):
    (tmp_path / "job.log").symlink_to("/dev/full")
    done = subprocess.run(
        [sys.executable, "-c", JOB.format(line="1 / 0")],
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 1
    assert "No space left on device; make room" in done.stderr
    assert "Traceback" not in done.stderr


WAIT = """
    import time
    from pathlib import Path
    Path("begun").touch()
    while not Path("go").exists():
        time.sleep(0.01)
    Path("made").write_text("old")
"""


def test_a_job_that_outlived_its_run_writes_nothing_over_the_next(tmp_path):
    def start(line):
        command = [sys.executable, "-c", JOB.format(line=line)]
        return subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True)

    old = start(WAIT.strip())
    while not (tmp_path / "begun").exists() and old.poll() is None:
        time.sleep(0.01)
    new = start("open('made', 'w').write('new')")
    said = new.stdout.readline()
    (tmp_path / "go").touch()
    assert (old.wait(), new.wait()) == (0, 0)
    assert said == "job.log: another process is at it, this one waits\n"
    assert (tmp_path / "made").read_text() == "new"


def test_an_exit_passes_and_an_interrupt_is_a_word(tmp_path):
    assert run_job(tmp_path, "raise SystemExit(7)")[0].returncode == 7
    done, log = run_job(tmp_path, "raise KeyboardInterrupt")
    assert (done.returncode, done.stderr) == (1, "ultrbench: interrupted\n")
    assert log == "to the log\ninterrupted\n"


def test_a_job_refuses_what_has_changed_since_another_wrote_it(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    made, mine = Path("results/made.csv"), Path("mine.csv")
    mine.write_text("0.5")
    reader = SimpleNamespace(log=["log"], input=[str(made), str(mine.resolve()), str(mine)])
    with job(SimpleNamespace(log=["log"], output=[str(made), str(tmp_path / "runs")])):
        (tmp_path / "runs").mkdir()
        write_text(made, "0.25")
    with job(reader):
        pass
    made.write_text("0.35")
    mine.write_text("0.6")  # no job wrote this one
    with job(reader, largest=3):
        pass
    with pytest.raises(SystemExit), job(reader):
        pytest.fail("the job has begun")
    said = capsys.readouterr().err
    assert "results/made.csv is not what its job wrote" in said
    assert "or .snakemake/sha256/results/made.csv, if you put the file there" in said
    with job(SimpleNamespace(log=["log"], output=[str(made)])):
        write_text(made, "0.35")
    with job(reader):
        pass


def test_what_no_job_reads_is_refused_when_a_run_starts(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made, wished = Path("results/made.csv"), Path("results/expected/made.csv")
    with job(SimpleNamespace(log=["log"], output=[str(made), str(wished)])):
        write_text(made, "0.25")
        write_text(wished, "0.25")
    later = time.time_ns() + 10**9
    for file in (made, wished):
        os.utime(file, ns=(later, later))
    refuse_touched()
    write_text(wished, "0.35")
    made.write_text("0.35")
    os.utime(made, ns=(later, later))
    with pytest.raises(UserError, match=r"results/made\.csv is not what its job wrote"):
        refuse_touched()
    made.unlink()
    refuse_touched()
    made.mkdir()
    with pytest.raises(UserError, match=r"results/made\.csv is no file any more"):
        refuse_touched()
    made.rmdir()
    made.symlink_to("nowhere")  # which Snakemake takes for a file that is there
    with pytest.raises(UserError, match=r"results/made\.csv is no file any more"):
        refuse_touched()


def test_a_job_that_is_killed_leaves_no_note_of_what_it_replaced(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with job(SimpleNamespace(log=["log"], output=["results/made.csv"])):
        write_text("results/made.csv", "old")
    with pytest.raises(SystemExit), job(SimpleNamespace(log=["log"], output=["results/made.csv"])):
        write_text("results/made.csv", "new")
        raise KeyboardInterrupt
    with job(SimpleNamespace(log=["log"], input=["results/made.csv"])):
        pass


def test_a_pipe_in_place_of_a_result_is_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with job(SimpleNamespace(log=["log"], output=["results/made.csv"])):
        write_text("results/made.csv", "0.25")
    Path("results/made.csv").unlink()
    os.mkfifo("results/made.csv")
    with pytest.raises(SystemExit), job(SimpleNamespace(log=["log"], input=["results/made.csv"])):
        pytest.fail("the job has begun")
    assert "results/made.csv is no file any more" in capsys.readouterr().err


@pytest.mark.parametrize("noted", [b"", bytes(64), b"\xff" * 64, b"0a"])
def test_a_damaged_note_stops_the_next_run_and_no_job(tmp_path, monkeypatch, noted):
    monkeypatch.chdir(tmp_path)
    for name in ("made", "other"):
        write_text(f"results/{name}.csv", "")
        write_text(f".snakemake/sha256/results/{name}.csv", "")
        Path(f".snakemake/sha256/results/{name}.csv").write_bytes(noted)
    with job(SimpleNamespace(log=["log"], input=["results/made.csv"])):
        pass
    with pytest.raises(UserError, match=r"cut short.*: results/made.csv, results/other.csv\. Del"):
        refuse_touched()
    for name in ("made", "other"):
        Path(f"results/{name}.csv").unlink()
    refuse_touched()


def test_a_result_that_goes_away_under_a_job_is_told_of(tmp_path):
    for read in ("open('results/a.csv')", "__import__('pandas').read_csv('results/a.csv')",
                 "__import__('pandas').read_parquet('results/a.parquet')"):  # fmt: skip
        done, log = run_job(tmp_path, read)
        assert done.returncode == 1
        assert "it went away while the job ran; if another run works in this folder" in done.stderr
        assert "Traceback" not in log
    done, log = run_job(tmp_path, "open('elsewhere.csv')")
    assert "Traceback" in log


def test_a_download_may_be_replaced_by_hand(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with job(SimpleNamespace(log=["log"], output=["downloads/a.zip"])):
        write_text("downloads/a.zip", "a page that asks to sign in")
    write_text("downloads/a.zip", "the archive")
    with job(SimpleNamespace(log=["log"], input=["downloads/a.zip"])):
        pass


def test_a_file_outside_the_study_is_not_taken_for_a_note(tmp_path, monkeypatch):
    study = tmp_path / "users/study"
    study.mkdir(parents=True)
    monkeypatch.chdir(study)
    (tmp_path / "clicks.csv").write_text("0.5")
    Path("clicks.csv").write_text("another of this name")
    with job(SimpleNamespace(log=["log"], input=["../../clicks.csv"], output=["../../clicks.csv"])):
        pass
    assert Path("clicks.csv").read_text() == "another of this name"


def test_libraries_that_a_job_loads_have_one_thread(tmp_path):
    line = (
        "import numpy, scipy.linalg, lightgbm, threadpoolctl; "
        "print([i['num_threads'] for i in threadpoolctl.threadpool_info()])"
    )
    _, log = run_job(tmp_path, line)
    threads = json.loads(log.splitlines()[1])
    assert set(threads) == {1} and len(threads) >= 2


@pytest.mark.parametrize("kind", ["fixed_effects", "harvest"])
def test_where_no_document_has_moved_yet_clicks_display_the_next_round(world, tmp_path, kind):
    data, run, _ = world
    estimator = {"kind": kind} | ({"pairs": "all"} if kind == "harvest" else {})
    table, report = tmp_path / "theta.csv", tmp_path / "theta.json"

    def estimate(rounds, **more):
        estimate_propensity(
            data, run / "candidates.npz", rounds, table, report, name=kind, estimator=estimator,
            seed=1, **more,
        )  # fmt: skip
        return read_json(report)

    with pytest.raises(UserError, match="no document of this log was seen at two positions"):
        estimate([run / "round0"])
    first = estimate([run / "round0"], more_rounds=True)
    assert set(read_propensity(table)) == {1.0}
    assert not first["identified"] and "to display the next round" in first["notes"][0]
    second = estimate([run / "round0", run / "round1"], more_rounds=True)
    assert len(set(read_propensity(table))) == 4
    # Harvesting does not allow for a ranker that has learnt from the clicks before.
    assert second["identified"] == (kind == "fixed_effects")


def test_a_joint_estimator_hands_its_ranker_on(world, tmp_path):
    data, run, _ = world
    size = {key: TRAINING[key] for key in SIZE}
    paths = [tmp_path / f"paird.{ending}" for ending in ("csv", "json", "txt")]
    estimate_propensity(
        data, run / "candidates.npz", [run / "round0"], *paths[:2], model=paths[2], name="paird",
        training=size, seed=1, estimator={"kind": "paird", "regulariser": 1.0, "tolerance": 0.01},
    )  # fmt: skip
    model, report, scores = rank(
        data, run / "candidates.npz", [run / "round0"], tmp_path / "out", objective="joint",
        theta=paths[0], joint_model=paths[2],
    )  # fmt: skip
    assert model.read_bytes() == paths[2].read_bytes()
    trees = read_json(report)["trees"]
    assert set(trees) == {"grades", "clicks"} and max(trees.values()) <= TRAINING["trees"]
    written = read_arrays(scores)
    for name, count in trees.items():
        expected = predict(model.read_text(), SPLITS["test"].features, count)
        np.testing.assert_array_equal(written[name], expected)


OWN = """
import numpy as np

def fit(features, grades, groups):
    import lightgbm as lgb
    import pandas as pd
    ranker = lgb.LGBMRanker(n_estimators=2, min_child_samples=1, verbosity=-1)
    return ranker.fit(pd.DataFrame(features.copy()), grades, group=groups)

def estimate(log, **about):
    from ultrbench.propensity.estimate import up_to_scale
    features = about["features"]
    assert features.mean(axis=0).shape == (features.shape[1],)
    fit(features, np.arange(len(features)) % 2, [len(features)])
    return up_to_scale(np.ones(log.positions), identified=False)

def score(splits, order, **_):
    train = splits["train"]
    ranker = fit(train.features, train.grades, np.diff(train.query_ptr))
    return {name: ranker.predict(split.features) for name, split in splits.items()}
"""


OTHER_ARRAYS = {
    "float32": "attraction.astype(np.float32), np.ones((1, 4, 1), np.float32)",
    "longdouble": "attraction.astype(np.longdouble), np.ones((1, 4, 1), np.longdouble)",
    "bool": "attraction, np.ones((1, 4, 1), bool)",
    "a table": "pd.DataFrame(attraction), np.ones((1, 4, 1))",
}


@pytest.mark.parametrize("kind", OTHER_ARRAYS)
def test_users_of_ones_own_may_come_as_any_numbers(world, tmp_path, monkeypatch, kind):
    data, run, _ = world
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(
        "import numpy as np, pandas as pd\nfrom ultrbench.simulation.behaviour import Behaviour\n"
        "def users(attraction, **_):\n"
        f"    return Behaviour({OTHER_ARRAYS[kind]}, by_position=True)\n"
    )
    simulate(data, run / "candidates.npz", tmp_path, click_model={"kind": "mine.py:users"})
    assert read_truth([tmp_path / "truth.csv"]).tolist() == [1.0] * 4


@pytest.mark.parametrize("stage", ["propensity", "policies"])
def test_code_of_ones_own_has_the_whole_of_lightgbm_and_features_as_an_array(
    world, tmp_path, stage
):
    data, run, _ = world
    (tmp_path / "mine.py").write_text(OWN)
    call = {
        "propensity": "estimate_propensity(data, run / 'candidates.npz', [run / 'round0'], "
        "out / 't.csv', out / 't.json', name='mine', estimator={'kind': 'mine.py:estimate'}, "
        "seed=1)",
        "policies": "train_policy(data, out / 'c.npz', out / 'c.json', list_size=4, seed=1, "
        "policy={'kind': 'mine.py:score'}, policy_queries={'mode': 'disjoint', 'pool': 0.3})",
    }[stage]
    code = (
        "from pathlib import Path\n"
        "from ultrbench.stages.propensity import estimate_propensity\n"
        "from ultrbench.stages.policies import train_policy\n"
        f"data, run, out = Path({str(data)!r}), Path({str(run)!r}), Path({str(tmp_path)!r})\n{call}"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / {"propensity": "t.csv", "policies": "c.npz"}[stage]).exists()

"""The view of a run: what its log tells, going on, ended or killed."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ultrbench.errors import UserError
from ultrbench.reporting.progress import (
    advice,
    advice_on,
    is_running,
    last_lines,
    look,
    main,
    read_run,
    rule_stages,
    view,
)

REPOSITORY = Path(__file__).parents[2]
BEGUN = """Provided cores: 2
Job stats:
job               count
--------------  -------
simulate_clicks       2
train_ranker          4
all                   1
total                 7

Select jobs to execute...
[Mon Nov 30 19:26:00 2026]
Job 5: Simulate clicks: mine, weak
[Mon Nov 30 19:26:00 2026]
Job 6: Simulate clicks: mine, strong
[Mon Nov 30 19:26:10 2026]
Finished jobid: 5 (Rule: simulate_clicks)
1 of 7 steps (14%) done
[Mon Nov 30 19:26:10 2026]
Job 3: Train the ranker of dla
"""
FAILED = """[Mon Nov 30 19:26:20 2026]
Error in rule train_ranker:
    message: None
    jobid: 3
    output: results/a.txt
    log: results/logs/ranking/dla.0.log (check log file(s) for error details)
"""
SAID = """Exiting because a job execution failed. Look above for error messages
Complete log(s): /somewhere/.snakemake/log/a.snakemake.log
"""
STAGES = {"simulate_clicks": "clicks", "train_ranker": "ranking"}


def test_a_run_that_goes_on():
    run = read_run(BEGUN)
    assert run.running.keys() == {3, 6}
    assert (run.jobs.total(), run.done.total(), run.failed, run.ended) == (7, 1, [], False)
    # Six jobs of ten seconds on two cores.
    assert run.left == pytest.approx(30)
    began = run.running[3][1]
    text = view(run, STAGES, Path("nowhere"), True, began + 65)
    assert "1 of 7 jobs done, 0 failed, 2 running; time left: 0 min 30 s" in text
    assert "running for 1 min 05 s: Train the ranker of dla" in text
    assert [line.split()[0] for line in text.splitlines()[1:4]] == ["clicks", "ranking", "targets"]
    assert "1 of 2" in text.splitlines()[1]


def test_nothing_is_known_of_the_time_before_a_job_is_finished():
    run = read_run(BEGUN.partition("[Mon Nov 30 19:26:10")[0])
    assert "time left: not known yet" in view(run, STAGES, Path("nowhere"), True, 0)


def test_every_cut_of_a_log_is_read():
    whole = BEGUN + FAILED + SAID
    for end in range(len(whole)):
        view(read_run(whole[:end]), STAGES, Path("nowhere"), end % 2 == 0, 0)


def test_a_failure_shows_the_end_of_the_log_and_what_to_try(tmp_path):
    log = tmp_path / "results/logs/ranking/dla.0.log"
    log.parent.mkdir(parents=True)
    log.write_text("".join(f"line {n}\n" for n in range(20)) + "a.txt:3: grade 9 is above 4\n")
    run = read_run(BEGUN + FAILED + SAID)
    assert run.running.keys() == {6}
    text = view(run, STAGES, tmp_path, False, 0)
    assert "FAILED train_ranker; the end of results/logs/ranking/dla.0.log:" in text
    assert "line 19" in text and "line 1\n" not in text
    assert "Put right what the last line says" in text
    assert text.endswith("The run has ended with a failure.")


def test_an_interrupted_job_has_not_failed(tmp_path, monkeypatch):
    log = tmp_path / "results/logs/ranking/dla.0.log"
    log.parent.mkdir(parents=True)
    log.write_text("begun\ninterrupted\n")
    run = read_run(BEGUN + FAILED + SAID)
    text = view(run, STAGES, tmp_path, False, 0)
    assert "FAILED" not in text and "0 failed" in text
    assert text.endswith("The run was stopped. Start it again: finished jobs are kept.")
    monkeypatch.chdir(tmp_path)
    assert advice_on(run) == ["Stopped. Start again: all finished jobs are kept."]
    log.write_text("a.txt:3: grade 9 is above 4\n")
    assert len(advice_on(run)) == 1 and "dla.0.log. Put right" in advice_on(run)[0]


@pytest.mark.parametrize(
    ("tail", "words"),
    [
        ("", "killed"),
        ("replicates:  40%|####      | 2/5 [00:10<00:15]", "killed"),
        ("Traceback (most recent call last):\nKeyError: 1", "fault of the program"),
        ("a.txt:3: grade 9 is above 4", "Put right"),
    ],
)
def test_advice_goes_by_the_end_of_the_log(tail, words):
    assert words in advice(tail)


def test_a_progress_bar_counts_as_its_last_state(tmp_path):
    log = tmp_path / "a.log"
    log.write_text("begun\n\rtrees:  10%|#  | 1/10\rtrees:  20%|## | 2/10")
    assert last_lines(log) == "begun\ntrees:  20%|## | 2/10"
    assert last_lines(tmp_path / "none.log") == ""


def test_bars_of_running_jobs_are_shown(tmp_path):
    log = tmp_path / "results/logs/ranking/dla.0.log"
    log.parent.mkdir(parents=True)
    log.write_text("replicates:  20%|## | 1/5")
    old = log.with_name("old.log")
    old.write_text("replicates:  20%|## | 1/5")
    os.utime(old, (0, 0))
    text = view(read_run(BEGUN), STAGES, tmp_path, True, time.time())
    assert text.count("replicates:") == 1
    assert "results/logs/ranking/dla.0.log: replicates:  20%" in text


@pytest.mark.parametrize(
    ("log", "words"),
    [
        (BEGUN, "The run was killed."),
        ("", "ended before its first job"),
        ("Provided cores: 2\nUserError: config/config.yaml: no\n", "ended before its first job"),
        ("Nothing to be done (all requested files are present).\n", "is finished"),
        (BEGUN.replace("Nov 30 19:26:10", "Nov 39 19:26:99"), "The run was killed."),
        (BEGUN + "Complete log(s): a\n", "The run was stopped."),
        (BEGUN + "Command 'x' died with <Signals.SIGINT: 2>.\n" + FAILED, "The run was stopped."),
        (
            "job    count\n----  ----\na   1\ntotal  1\n\nFinished jobid: 0 (Rule: a)\n",
            "is finished",
        ),
    ],
)
def test_how_a_run_ended_is_told(log, words):
    assert words in view(read_run(log), STAGES, Path("nowhere"), False, 0)


def test_the_stages_are_the_rules_files():
    stages = rule_stages(REPOSITORY / "workflow/rules")
    assert stages["simulate_initial_clicks"] == stages["simulate_clicks"] == "clicks"
    assert stages["train_ranker"] == "ranking"


def test_a_process_in_the_folder_is_a_run(tmp_path):
    assert not is_running(tmp_path)
    program = tmp_path / "snakemake"
    program.write_text("import time\nprint(flush=True)\ntime.sleep(60)\n")
    process = subprocess.Popen([sys.executable, program], cwd=tmp_path, stdout=subprocess.PIPE)
    try:
        process.stdout.read(1)
        assert is_running(tmp_path)
    finally:
        process.kill()
        process.communicate()
    assert not is_running(tmp_path)


def test_the_newest_run_is_shown(tmp_path, capsys):
    with pytest.raises(UserError, match="no run has started here"):
        look(tmp_path)
    assert main([str(tmp_path)]) == 2
    folder = tmp_path / ".snakemake/log"
    folder.mkdir(parents=True)
    (folder / "2026-01-01T000000.1.snakemake.log").write_text(BEGUN)
    (folder / "2026-01-02T000000.1.snakemake.log").write_text(BEGUN + FAILED + SAID)
    assert main([str(tmp_path)]) == 0
    assert "FAILED train_ranker" in capsys.readouterr().out


def test_a_refused_start_does_not_hide_the_run(tmp_path):
    logs = tmp_path / ".snakemake/log"
    logs.mkdir(parents=True)
    (logs / "1.snakemake.log").write_text(BEGUN)
    (logs / "2.snakemake.log").write_text("LockException:\nDirectory cannot be locked.\n")
    assert "The run was killed." in look(tmp_path)[0]
    (logs / "1.snakemake.log").unlink()
    assert "ended before its first job" in look(tmp_path)[0]

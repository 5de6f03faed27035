"""TREC files: round trips, trec_eval's conventions by hand, and messages with file:line."""

import gzip

import numpy as np
import pytest

from ultrbench.errors import UserError
from ultrbench.evaluation import metrics, trec
from ultrbench.evaluation.__main__ import main

RUN = """\
1 Q0 a 1 3.0 x
1 Q0 b 2 2.0 x
1 Q0 c 3 2.0 x

2 Q0 a 9 0.5 x
"""
QRELS = "1 0 b 2\n1 0 d 1\n1 0 a -2\n2 0 a 1\n"


@pytest.fixture
def files(tmp_path):
    (tmp_path / "run.txt").write_text(RUN)
    (tmp_path / "qrels.txt").write_text(QRELS)
    return str(tmp_path / "run.txt"), str(tmp_path / "qrels.txt")


def test_ties_unjudged_unranked_and_negative_grades_follow_trec_eval(files):
    run, qrels = trec.read_run(files[0]), trec.read_qrels(files[1])
    assert run["1"] == {"a": 3.0, "b": 2.0, "c": 2.0}
    assert qrels["1"] == {"b": 2, "d": 1, "a": 0}
    table = trec.evaluate_run(run, qrels, ["RR", "R@10", "AP", "P@5", "nDCG@10", "ERR@10"])
    # Query 1 is ranked a (0), c (no judgement), b (2); d (1) is never found.
    dcg, best = 3 / np.log2(4), 3 + 1 / np.log2(3)
    expected = [1 / 3, 1 / 2, 1 / 3 / 2, 1 / 5, dcg / best, 3 / 4 / 3]
    np.testing.assert_allclose(table.loc["1"], expected)
    np.testing.assert_allclose(table.loc["2"], [1, 1, 1, 1 / 5, 1, 1 / 4])


def test_other_queries_are_refused_or_counted_as_asked(files):
    run, qrels = trec.read_run(files[0]), trec.read_qrels(files[1])
    del run["2"]
    run["7"] = {"a": 1.0}
    with pytest.raises(UserError, match=r"1 of the run are not judged \(7\), 1 judged .* \(2\)"):
        trec.evaluate_run(run, qrels, ["RR"])
    judged = trec.evaluate_run(run, qrels, ["RR", "nDCG@5"], queries="judged")
    assert judged.loc["2"].tolist() == [0.0, 0.0]
    assert list(trec.evaluate_run(run, qrels, ["RR"], queries="common").index) == ["1"]
    with pytest.raises(UserError, match="no query in common"):
        trec.evaluate_run({"7": {"a": 1.0}}, qrels, ["RR"], queries="common")


def test_an_exported_run_has_the_numbers_of_the_arrays(tmp_path):
    rng = np.random.default_rng(1)
    ptr = np.array([0, 12, 12, 40, 41])
    ids = np.array(["10", "11", "9", "8"])
    scores = rng.integers(0, 5, 41) / 1e9  # many ties, and differences that 32 bits lose
    grades = rng.integers(0, 5, 41)
    names = trec.document_names(ids, ptr)
    trec.write_run(tmp_path / "run.txt", scores, ptr, ids, names, tag="ties")
    trec.write_qrels(tmp_path / "qrels.txt", grades, ptr, ids, names)
    run, qrels = trec.read_run(tmp_path / "run.txt"), trec.read_qrels(tmp_path / "qrels.txt")
    for of_query in run.values():
        assert (np.diff(np.float32(list(of_query.values()))) < 0).all()
    asked = ["nDCG@10", "ERR@5", "AP", "RBP(p=.8)@10", "R@5", "RR"]
    table = trec.evaluate_run(run, qrels, asked, ymax=4)
    full = metrics.compute_metrics(
        asked,
        metrics.pad(scores, ptr, 0.0),
        metrics.pad(grades, ptr, 0),
        metrics.padding_mask(ptr),
        4,
    )
    assert list(table.index) == ["10", "9", "8"]
    for name in asked:
        np.testing.assert_allclose(table[name], full[name][[0, 2, 3]], atol=1e-15)
    with pytest.raises(UserError, match="query 9 has the score NaN"):
        trec.write_run(
            tmp_path / "no.txt", np.where(np.arange(41) == 12, np.nan, 1), ptr, ids, names
        )
    assert not (tmp_path / "no.txt").exists()


@pytest.mark.parametrize("grade", ["1001", "100000", "9" * 400])
def test_a_grade_whose_gain_no_number_holds_is_refused(tmp_path, grade):
    path = tmp_path / "qrels.txt"
    path.write_text(f"1 0 a 1\n1 0 b {grade}\n")
    with pytest.raises(
        UserError, match=r"qrels\.txt:2: query 1, document b: the grade .* above 1000"
    ):
        trec.read_qrels(path)
    with pytest.raises(UserError, match="ymax = 1001 is above 1000"):
        trec.evaluate_run({"1": {"a": 1.0}}, {"1": {"a": 1}}, ["ERR"], ymax=1001)
    path.write_text("1 0 a 1\n1 0 b 1000\n")
    table = trec.evaluate_run({"1": {"a": 2.0, "b": 1.0}}, trec.read_qrels(path), ["nDCG", "ERR"])
    assert np.isfinite(table.to_numpy(dtype=float)).all()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 Q0 a 1 3.0 x\n1 Q0 b 2\n", r"run.txt:2: 4 columns; a line has 6: query Q0"),
        ("1 Q0 a 1 high x\n", r"run.txt:1: query 1, .* 'high' is not a number"),
        ("\n7 Q0 a 1 nan x\n", r"run.txt:2: query 7, document a: 'nan' is not a number"),
        ("1 Q0 a 1 2 x\n1 Q0 a 2 1 x\n", r"run.txt:2: query 1 has document a a second time"),
        ("\n", r"run.txt is empty"),
        (b"\xff\xfe", r"run.txt is not a text file in UTF-8"),
    ],
)
def test_bad_lines_are_named(tmp_path, text, message):
    path = tmp_path / "run.txt"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(UserError, match=message):
        trec.read_run(path)


def test_gzipped_files_are_read(files, tmp_path):
    packed = gzip.compress(RUN.encode())
    (tmp_path / "run.txt.gz").write_bytes(packed)
    assert trec.read_run(tmp_path / "run.txt.gz") == trec.read_run(files[0])
    for broken in (packed[:-12], RUN.encode(), packed[:20] + b"x" * 20):
        (tmp_path / "run.txt.gz").write_bytes(broken)
        with pytest.raises(UserError, match=r"run.txt.gz is not a whole gzip file"):
            trec.read_run(tmp_path / "run.txt.gz")


def test_grades_must_be_whole(tmp_path):
    (tmp_path / "qrels.txt").write_text("1 0 a 1.5\n")
    with pytest.raises(UserError, match=r"qrels.txt:1: .* '1.5' is not a number; .* grade"):
        trec.read_qrels(tmp_path / "qrels.txt")


def test_the_command_prints_a_table(files, capsys):
    arguments = [*files, "--metrics", "nDCG@10", "ERR@10", "RBP(p=.8)@10", "--per-query"]
    assert main(arguments) == 0
    out, err = capsys.readouterr()
    lines = [[cell.strip() for cell in line.split("\t")] for line in out.splitlines()]
    assert len({len(line.expandtabs()) for line in out.splitlines()}) == 1  # columns align
    assert lines[0] == ["query", "nDCG@10", "ERR@10", "RBP(p=.8)@10"]
    assert [line[0] for line in lines[1:]] == ["1", "2", "mean of 2"]
    assert lines[2][2] == "0.250000"
    assert "top grade 2" in err
    assert main([*files, "--metrics", "ERR@10", "--ymax", "4"]) == 0
    assert capsys.readouterr() == (
        f"query    \t  ERR@10\nmean of 2\t{(1 / 16 + 3 / 16 / 3) / 2:.6f}\n",
        "",
    )


def test_the_command_ends_with_a_sentence(files, tmp_path, capsys):
    assert main([files[0], str(tmp_path / "none.txt")]) == 2
    assert capsys.readouterr().err == f"{tmp_path / 'none.txt'}: No such file or directory.\n"
    assert main([*files, "--metrics", "nDGC@10"]) == 2
    assert "no metric 'nDGC'" in capsys.readouterr().err
    assert main([*files, "--metrics", "ndcg@10"]) == 2
    assert capsys.readouterr().err.endswith("; is nDCG meant?\n")
    assert main([*files, "--metrics", "ERR@10", "--ymax", "1"]) == 2
    assert capsys.readouterr().err == "Query 1 has grade 2, above the top grade ymax = 1.\n"
    assert main([files[1], files[0]]) == 2
    assert "Are run and qrels swapped?" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        main([])
    assert "RUN QRELS [--metrics NAME ...]" in capsys.readouterr().err
    (tmp_path / "run.txt").write_text("1 Q0 a 1 1 x\n")
    assert main([*files]) == 2
    assert main([*files, "--queries", "common"]) == 0
    assert "not in both files: 1 queries" in capsys.readouterr().err


def test_a_byte_order_mark_belongs_to_no_query(files, tmp_path):
    for name in ("run.txt", "qrels.txt"):
        path = tmp_path / name
        path.write_text("\ufeff" + path.read_text(), encoding="utf-8")
    assert list(trec.read_run(files[0])) == ["1", "2"]
    assert list(trec.read_qrels(files[1])) == ["1", "2"]


def test_an_underscore_makes_no_number_ten_times_larger(files, tmp_path):
    (tmp_path / "run.txt").write_text(RUN.replace("3.0", "0_3"))
    with pytest.raises(UserError, match=r"run\.txt:1: .*'0_3' is not a number"):
        trec.read_run(files[0])
    (tmp_path / "qrels.txt").write_text(QRELS.replace("b 2", "b 1_0"))
    with pytest.raises(UserError, match=r"qrels\.txt:1: .*'1_0' is not a number"):
        trec.read_qrels(files[1])

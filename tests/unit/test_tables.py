"""The results table: layout, bold, marks, caption, and what the formats must survive."""

import io
import re
import shutil
import subprocess

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ultrbench.files import write_json
from ultrbench.reporting.captions import results_caption
from ultrbench.reporting.names import display_name
from ultrbench.reporting.page import read_tables, with_tips
from ultrbench.reporting.tables import (
    COLUMNS,
    escape_latex,
    escape_markdown,
    mark,
    results_table,
    table_csv,
    table_latex,
    table_markdown,
)
from ultrbench.stages.paper import write_tables

METRICS = [f"{name}@{cutoff}" for name in ("nDCG", "ERR") for cutoff in (1, 3, 5, 10)]
GROUPS = {
    "Learned from clicks": ["naive", "ctr", "dla"],
    "Controls": ["naive_aa"],
    "Skylines": ["oracle", "labeled"],
}
MEANS = {"naive": 0.7, "ctr": 0.65, "dla": 0.8, "naive_aa": 0.99, "oracle": 0.9, "labeled": 0.95}
FACTS = {
    "dataset": "synthetic",
    "policy": "weak",
    "setting": "static",
    "candidates": "truncated",
    "list_size": 10,
    "validation": "grades",
    "seed": 7,
    "without_relevant": 43,
    "queries_without_relevant": "zero",
    "tied_share": 0.1234,
}


def comparisons(means=MEANS, metrics=METRICS, **changes):
    """Rows in which every method but the A/A row differs significantly from naive."""
    rows = []
    for method, mean in means.items():
        difference = mean - means["naive"]
        differs = method not in ("naive", "naive_aa")
        for metric in metrics:
            rows.append(
                {
                    "method": method,
                    "reference": "naive",
                    "metric": metric,
                    "mean": mean,
                    "reference_mean": means["naive"],
                    "difference": difference,
                    "p": 0.001 if differs else 1.0,
                    "p_holm": 0.06 if method == "ctr" else 0.004,
                    "p_max_t": 0.003,
                    "p_bh": 0.004,
                    "low": difference - 0.01,
                    "high": difference + 0.01,
                    "mde": 0.004 if method == "dla" else 0.0065,
                    "wins": 700,
                    "ties": 300,
                    "losses": 500,
                    "effect_size": 0.2,
                    "queries": 1500,
                    "replicates": 5,
                    "resamples": 100_000,
                    "significant": differs,
                }
                | changes
            )
    return pd.DataFrame(rows)


def table(frame=None, groups=GROUPS, metrics=METRICS, **options):
    frame = comparisons() if frame is None else frame
    return results_table(frame, metrics, groups, learned="Learned from clicks", **options)


def cells(result):
    return {label: row for _, rows in result.blocks for label, row in rows}


def test_rows_and_columns_keep_the_order_given_and_not_the_frame_s():
    result = table(comparisons().sample(frac=1, random_state=1))
    assert result.metrics == tuple(METRICS)
    assert [block for block, _ in result.blocks] == list(GROUPS)
    assert list(cells(result)) == [display_name(m) for ms in GROUPS.values() for m in ms]
    assert [cell.text for cell in cells(result)["DLA"]] == ["0.800"] * 8
    assert table_csv(result) == table_csv(table())


def test_bold_goes_to_the_best_method_learned_from_clicks_only():
    bold = {label for label, row in cells(table()).items() if row[0].bold}
    assert bold == {"DLA"}


def test_bold_is_shared_by_methods_that_print_alike_and_not_given_to_nan():
    means = MEANS | {"naive": 0.79999, "ctr": np.nan}
    bold = {label for label, row in cells(table(comparisons(means))).items() if row[0].bold}
    assert bold == {"Naive clicks", "DLA"}
    nothing = comparisons(MEANS | dict.fromkeys(GROUPS["Learned from clicks"], np.nan))
    assert not any(cell.bold for row in cells(table(nothing)).values() for cell in row)
    assert cells(table(nothing))["DLA"][0].text == "n/a"


def test_marks_say_the_direction_and_spare_the_reference():
    marks = {label: row[0].mark for label, row in cells(table()).items()}
    assert marks == {
        "Naive clicks": "",
        "CTR": "↓",
        "DLA": "↑",
        "Naive (A/A)": "",
        "Oracle IPW": "↑",
        "Labeled (grades)": "↑",
    }


@pytest.mark.parametrize(
    "change",
    [
        {"significant": False},
        {"p": 0.051},
        {"p": np.nan},
        {"low": -0.001},
        {"low": 0.0},
        {"low": np.nan, "high": np.nan},
        {"replicates": 4},
    ],
)
def test_a_mark_needs_all_that_the_caption_promises(change):
    row = {"significant": True, "p": 0.05, "difference": 0.1, "low": 0.05, "high": 0.2}
    row["replicates"] = 5
    assert mark(row) == "↑"
    assert mark(row | {"difference": -0.1, "low": -0.2, "high": -0.05}) == "↓"
    assert mark(row | change) == ""


def test_csv_holds_every_number_as_given():
    frame = comparisons()
    read = pd.read_csv(io.StringIO(table_csv(table())))
    assert list(read)[:3] == ["group", "method", "label"]
    assert set(read) == {"group", "label", *COLUMNS}
    pd.testing.assert_frame_equal(
        read[list(COLUMNS)].sort_values(["method", "metric"], ignore_index=True),
        frame[list(COLUMNS)].sort_values(["method", "metric"], ignore_index=True),
        rtol=0,
        atol=0,
    )


def test_frame_and_blocks_must_hold_the_same_methods():
    with pytest.raises(ValueError, match="ctr"):
        table(groups={"Learned from clicks": ["naive", "dla"], "Rest": GROUPS["Skylines"]})
    with pytest.raises(ValueError, match="mine"):
        table(groups=GROUPS | {"More": ["mine"]})
    with pytest.raises(ValueError, match="twice"):
        table(groups=GROUPS | {"More": ["naive"]})
    with pytest.raises(ValueError, match="twice"):
        table(pd.concat([comparisons(), comparisons()]))
    with pytest.raises(ValueError, match="p_holm"):
        table(comparisons().drop(columns="p_holm"))
    with pytest.raises(ValueError, match="Learned"):
        results_table(comparisons(), METRICS, GROUPS, learned="Learned")


def test_one_method_and_nan_p():
    means = {"naive": 0.7}
    groups = {"Learned from clicks": ["naive"], "Skylines": []}
    result = table(comparisons(means, p=np.nan, mde=np.nan), groups)
    assert [block for block, _ in result.blocks] == ["Learned from clicks"]
    caption = results_caption(result, **FACTS)
    assert "nan" not in caption
    check_latex(table_latex(result, caption, "tab:one"))


def test_labels_of_the_config_come_first():
    assert display_name("dla", {"dla": "DLA*"}) == "DLA*"
    assert display_name("dla", {"ctr": "Rates"}) == "DLA"
    assert display_name("my_own") == "my_own"
    assert "Ours" in cells(table(labels={"dla": "Ours"}))


# ---- formats


def check_latex(text):
    """Balanced braces and environments, and as many cells in each row as columns."""
    bare = re.sub(r"\\[\\{}%&$#_]", lambda m: "\\\\" if m[0] == "\\\\" else "", text)
    depth = 0
    for character in bare:
        depth += (character == "{") - (character == "}")
        assert depth >= 0
    assert depth == 0
    assert bare.count("$") % 2 == 0
    assert re.findall(r"\\begin{(\S+?)}", text) == re.findall(r"\\end{(\S+?)}", text)[::-1]
    columns = len(re.search(r"\\begin{tabular}{@{}(l+)@{}}", text)[1])
    rows = [line for line in bare.splitlines() if line.endswith(r"\\")]
    for row in rows:
        spans = [int(span) for span in re.findall(r"\\multicolumn{(\d+)}", row)]
        assert row.count("&") + 1 + sum(spans) - len(spans) == columns
    return rows


def test_markdown_rows_have_equal_cells_and_the_caption_stands_above():
    lines = table_markdown(table(labels={"dla": "a|b_*c*"}), "About it.").splitlines()
    assert lines[:2] == ["About it.", ""]
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in lines[2:]} == {1 + 1 + len(METRICS)}
    assert r"| a\|b\_\*c\* | **0.800**↑ |" in "\n".join(lines)


def test_latex_is_balanced_with_hostile_names():
    hostile = r"100%_a & b$ #{~^} \x <y> | [1] *"
    result = table(labels={"dla": hostile, "ctr": "[ctr]", "oracle": "∞ ≥ ↑"})
    text = table_latex(result, f"On {hostile}.", "tab:x")
    rows = check_latex(text)
    assert len(rows) == 2 + len(GROUPS) + len(MEANS)
    assert r"\textbf{0.800}$^{\uparrow}$" in text
    # "[" after a line break would be read as its optional argument.
    assert not re.search(r"\\\\\s*[\[*]", text)


def test_markdown_and_latex_show_the_same_numbers():
    result = table()
    number = r"\d\.\d{3}"
    markdown = table_markdown(result, "")
    assert re.findall(number, markdown) == re.findall(number, table_latex(result, "", "t"))
    assert markdown.count("↑") == table_latex(result, "", "t").count(r"$^{\uparrow}$") == 24


@given(st.text(max_size=30))
def test_escaped_text_stays_within_one_cell(text):
    shown = escape_markdown(text)
    assert "\n" not in shown
    assert not re.search(r"(?<!\\)(\\\\)*\|", shown)
    # Without what LaTeX commands bring, no special character is left.
    bare = re.sub(r"\\[%&$#_{}]|\\text[a-z]+{}|\$\\[a-z]+\$|{[\[*]}", "", escape_latex(text))
    assert not set(bare) & set("%&$#_{}~^\\\n")


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no LaTeX on this machine")
def test_latex_compiles_in_a_plain_article(tmp_path):
    result = table(labels={"dla": r"100%_a & b$ #{~^} \x <y> | [1] *", "oracle": "∞ ≥ ↑"})
    body = table_latex(result, results_caption(result, **FACTS), "tab:x")
    source = r"\documentclass{article}\usepackage{booktabs}\begin{document}" + body
    (tmp_path / "t.tex").write_text(source + r"\end{document}", encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "t.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert "Overfull" not in done.stdout


# ---- caption


def test_caption_says_what_was_done():
    caption = results_caption(table(), control="naive_aa", synthetic=True, **FACTS)
    for words in (
        "Data set synthetic, policy weak, setting static, truncated candidates",
        "the first 10 documents",
        "1,500 test queries and 5 replicates",
        "true grades of the validation queries",
        "↑ better, ↓ worse than Naive clicks",
        "Fisher randomisation test",
        "two-sided, p ≤ 0.05, B = 100,000 sign flips",
        "seed 7",
        "95 % crossed bootstrap interval",
        "at least five replicates",
        "conditional on the trained rankers",
        "of the 4 marks at nDCG@10, 3 remain with Holm's correction",
        "4 with max-T",
        "nDCG@10 at 80 % power: 0.004 to 0.006",
        "Naive (A/A) is the A/A row",
        "without relevant candidates: 43 (they count as 0)",
        "12.3 % of the test queries",
        "synthetic: the verdicts are illustrations",
    ):
        assert words in caption
    assert "\n" not in caption


def test_caption_of_few_replicates_says_that_there_are_no_marks():
    result = table(comparisons(replicates=4))
    caption = results_caption(result, **FACTS)
    assert "Fewer than five replicates: no marks" in caption
    assert "Fisher randomisation test" in caption
    assert "↑" not in caption + table_markdown(result, "")
    assert "and 1 replicate;" in results_caption(table(comparisons(replicates=1)), **FACTS)


def test_caption_follows_the_facts():
    facts = FACTS | {"candidates": "full", "queries_without_relevant": "drop"}
    caption = results_caption(table(), **facts)
    assert "full candidates (all documents of a query)" in caption
    assert "43 (they are left out)" in caption
    assert "A/A" not in caption
    assert "synthetic:" not in caption
    clicks = results_caption(table(), **FACTS | {"validation": "clicks"})
    assert "propensity-weighted clicks of the validation queries" in clicks
    fixed = results_caption(table(), **FACTS | {"validation": "fixed"})
    assert "fixed number of trees" in fixed
    calm = results_caption(table(comparisons(significant=False)), **FACTS)
    assert "No difference earned a mark." in calm


def test_methods_whose_estimate_did_not_settle_are_marked_in_every_form(tmp_path):
    settled = {"dla": [True, True], "ctr": [True, False], "oracle": [False, False]}
    reports = []
    for method, found in settled.items():
        for seed, converged in enumerate(found):
            reports.append((method, tmp_path / f"{method}.{seed}.json"))
            write_json(reports[-1][1], {"converged": converged})
    write_json(tmp_path / "dataset.json", {"entry": {"kind": "letor"}})
    place = {"candidates": "full", "validation": "fixed"}
    comparisons().assign(**place).to_csv(tmp_path / "comparisons.csv")
    notes = pd.DataFrame([place | {"without_relevant": 0, "tied_share": 0.0}])
    notes.to_csv(tmp_path / "conventions.csv")
    write_tables(
        tmp_path,
        tmp_path / "comparisons.csv",
        tmp_path / "conventions.csv",
        None,
        {("full", "fixed"): tmp_path / "main"},
        reports=reports,
        groups=GROUPS,
        labels={},
        metrics=METRICS,
        headline="nDCG@10",
        control=None,
        without_relevant="zero",
        list_size=10,
        name="mine",
        policy="weak",
        setting="static",
    )
    markdown = (tmp_path / "main.md").read_text()
    ctr, oracle, dla = (display_name(method) for method in ("ctr", "oracle", "dla"))
    assert f"in replicates: {ctr} 1 of 2, {oracle} 2 of 2." in markdown
    assert f"| {ctr} † |" in markdown
    assert f"| {dla} |" in markdown
    assert rf"{oracle} $\dagger$ &" in (tmp_path / "main.tex").read_text()
    numbers = pd.read_csv(tmp_path / "main.csv")
    assert set(numbers["label"]) == {display_name(method) for method in MEANS}
    (_, read), *_ = read_tables(markdown)
    tips = {label: row[0].tip for label, row in cells(with_tips(read, numbers)).items()}
    assert tips[f"{oracle} †"].startswith(f"{oracle}, nDCG@1: 0.9000")

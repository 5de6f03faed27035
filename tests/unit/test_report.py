"""The report: structure and accessibility of the page, what it says, and what a browser does."""

import html
import json
import re
import shutil
import subprocess
from collections import Counter
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pandas as pd
import pytest
from matplotlib.figure import Figure

from ultrbench.reporting import page
from ultrbench.reporting.figures import save_figure
from ultrbench.reporting.tables import (
    CONTROL,
    LEARNED,
    add_group,
    results_table,
    table_csv,
    table_markdown,
)
from ultrbench.stages.report import write_report

REPOSITORY = Path(__file__).parents[2]
MEANS = {"naive": 0.7, "dla": 0.8, "upe": 0.6, "ctr": 0.71, "labeled": 0.9}
GROUPS = {LEARNED: ["naive", "dla", "upe", "ctr"], "Skylines": ["labeled"]}
METRICS = ["nDCG@5", "nDCG@10"]
CLAIMS = {
    "better": {
        "statement": "DLA <beats> naive clicks.",
        "source": "A & B 2018",
        "kind": "better",
        "measure": "nDCG@10",
        "margin": 0.005,
    }
}
CONFIG = {
    "study": {"datasets": ["mine"], "policies": ["weak"], "settings": ["static"],
              "seeds": [1, 2, 3, 4, 5], "reference": "naive"},
    "list_size": 10,
    "policies": {"weak": {"list_size": 7}},
    "settings": {"static": {"sessions": 1000, "rounds": 1, "click_model": {"kind": "pbm"}}},
    "evaluation": {"queries_without_relevant": "zero"},
}  # fmt: skip
SPLIT = {
    "queries": 1200,
    "documents": 9,
    "queries_without_relevant": 3,
    "values_beyond_float32": 0,
}
PROVENANCE = {
    "commit": "abc",
    "python": "3.11.7",
    "machine": "x86_64",
    "packages": {"ultrbench": "0.1.0", "lightgbm": "4.7.0", "snakemake": "9.27.1"},
    "datasets": {
        "mine": {"entry": {"kind": "letor"}, "sha256": {"a.zip": "00ff"}, "splits": {"test": SPLIT}}
    },
    "config": CONFIG,
}


def comparisons(replicates=5):
    rows = []
    for method, mean in MEANS.items():
        for metric in METRICS:
            difference = mean - MEANS["naive"]
            settled = abs(difference) > 0.05 and replicates >= 5
            rows.append(
                {"method": method, "reference": "naive", "metric": metric, "mean": mean,
                 "reference_mean": 0.7, "difference": difference, "p": 0.001 if settled else 0.3,
                 "p_holm": 0.004, "p_max_t": 0.004, "p_bh": 0.004, "low": difference - 0.02,
                 "high": difference + 0.02, "mde": 0.01, "wins": 9, "ties": 1, "losses": 2,
                 "effect_size": 0.1, "queries": 1200, "replicates": replicates, "resamples": 1000,
                 "significant": settled}
            )  # fmt: skip
    return pd.DataFrame(rows)


def write_page(folder: Path, name: str = "report.html") -> str:
    """A report of one place with two figures, and return its text."""
    table = results_table(comparisons(), METRICS, GROUPS, LEARNED)
    spread = pd.DataFrame({"Gini": [0.25]}, index=["dla"])
    table = add_group(table, "Exposure", spread, pd.Series({"dla": 5}), {"Gini": "Gini"})
    (folder / "mine").mkdir(exist_ok=True)
    stem = folder / "mine/weak.static.full.grades"
    stem.with_name(stem.name + ".csv").write_text(table_csv(table))
    stem.with_name(stem.name + ".md").write_text(table_markdown(table, "All a_b | c."))
    save_figure(Figure((7, 2)), folder / "mine/spread.static.svg")
    save_figure(Figure((1, 1)), folder / "mine/grades.png")
    claim = {
        "claim": "better", "dataset": "mine", "policy": "weak", "setting": "static",
        "candidates": "full", "validation": "grades", "method": "dla", "against": "naive",
        "effect": 0.1, "low": 0.08, "high": 0.12, "p": 0.001, "verdict": "holds",
        "claim_verdict": "not run", "note": "",
    }  # fmt: skip
    lacking = claim | {"verdict": "not run", "against": "upe", "note": "the study lacks upe"}
    lacking |= dict.fromkeys(("effect", "low", "high", "p"), float("nan"))
    pd.DataFrame([claim, lacking]).to_csv(folder / "claims.csv", index=False)
    (folder / "provenance.json").write_text(json.dumps(PROVENANCE))
    (folder / "benchmarks/propensity/mine").mkdir(parents=True, exist_ok=True)
    head = "s\th:m:s\tmax_rss\tcpu_time\n"
    (folder / "benchmarks/propensity/mine/initial.0.dla.tsv").write_text(
        head + "61.5\t0:01\t242.1\t60.0\n"
    )
    (folder / "benchmarks/propensity/mine/initial.0.ctr.tsv").write_text(head + "0.1\t0\tNA\tNA\n")
    captions = {file.stem: file for file in (REPOSITORY / "workflow/report").glob("*.rst")}
    write_report(
        folder / name,
        page.TEMPLATE,
        results={
            ("mine", "weak", "static", "full", "grades"): tuple(
                stem.with_name(stem.name + ending) for ending in (".csv", ".md")
            )
        },
        claims=CLAIMS,
        verdicts=folder / "claims.csv",
        sections=[("metrics", "All other tables", [stem.with_name(stem.name + ".md")])],
        figures=[folder / "mine/spread.static.svg", folder / "mine/grades.png"],
        captions=captions,
        provenance=folder / "provenance.json",
        benchmarks=folder / "benchmarks",
        headline="nDCG@10",
        labels={},
    )
    return (folder / name).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def text(tmp_path_factory) -> str:
    return write_page(tmp_path_factory.mktemp("report"))


class Elements(HTMLParser):
    """All start tags with their attributes, and whether tags are closed in order."""

    VOID = ("meta", "link", "img", "br")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict]] = []
        self.open: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def all(self, tag: str) -> list[dict]:
        return [attributes for name, attributes in self.found if name == tag]


def test_the_page_loads_nothing(text):
    elements = Elements(text)
    assert all(image["src"].startswith("data:image/") for image in elements.all("img"))
    assert len(elements.all("img")) == 2
    kept = ("data:", "#")
    for _, attributes in elements.found:
        for name in ("src", "href", "srcset", "action", "data"):
            assert attributes.get(name, "#").startswith(kept)
    assert "url(" not in text and "@import" not in text and "fetch(" not in text
    assert "http" not in re.sub(r'src="data:[^"]*"', "", text)


def test_headings_are_in_order_and_links_lead_somewhere(text):
    elements = Elements(text)
    levels = [int(tag[1]) for tag, _ in elements.found if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    ids = Counter(a["id"] for _, a in elements.found if "id" in a)
    assert set(ids.values()) == {1}
    targets = {a["href"][1:] for a in elements.all("a")}
    assert len(targets) > 5 and targets <= set(ids)


def test_the_page_opens_with_what_was_run_then_the_answer_then_the_contents(text):
    order = [text.index(f'id="{name}"') for name in ("run", "answer", "contents", "tables")]
    assert order == sorted(order)
    assert "mine (letor), queries: test 1,200" in text
    assert "weak (7 documents)" in text
    assert "ultrbench 0.1.0, commit abc" in text


def test_tables_can_be_heard_and_used_by_keyboard(text):
    elements = Elements(text)
    assert all(head.get("scope") in ("col", "row", "rowgroup") for head in elements.all("th"))
    assert len(elements.all("caption")) == len(elements.all("table")) > 5
    regions = [a for a in elements.all("div") if a.get("role") == "region"]
    assert all(a.get("tabindex") == "0" and a.get("aria-label") for a in regions)
    assert elements.all("html")[0]["lang"] == "en"
    assert all(image["alt"] for image in elements.all("img"))
    assert elements.found[[tag for tag, _ in elements.found].index("body") + 1][1] == {
        "class": "skip",
        "href": "#main",
    }


def test_the_answer_is_counted_from_the_table(text):
    assert (
        "Of 3 comparisons with Naive clicks in nDCG@10 on true grades, 1 came out better, "
        "1 worse and 1 undecided." in text
    )
    assert "The best came from DLA (weak policy, static setting: 0.700 to 0.800, +0.100)" in text
    assert "the least from UPE (weak policy, static setting: 0.700 to 0.600, -0.100)" in text
    assert "Verdicts on claims from papers: not run 1." in text
    assert "synthetic" not in text.partition('id="tables"')[0]


def test_few_replicates_decide_nothing():
    frame = comparisons(replicates=4)
    table = results_table(frame, METRICS, GROUPS, LEARNED).numbers.assign(policy="weak")
    paragraph, _ = page.answer({"here": table}, "nDCG@10", {}, synthetic=True)
    assert "0 came out better, 0 worse and 3 undecided (fewer than five replicates" in paragraph
    assert paragraph.endswith("illustration, no evidence.")


def test_the_answer_is_as_careful_as_the_tables():
    table = results_table(comparisons(), METRICS, GROUPS, LEARNED).numbers.assign(policy="weak")
    answer = page.answer({"here": table}, "nDCG@10", {}, synthetic=False)[0]
    assert "†" not in answer and "illustration" not in answer
    doubted = table.assign(settled=table["method"] != "dla", queries=15)
    answer, [line] = page.answer({"here": doubted}, "nDCG@10", {}, synthetic=False)
    assert "The best came from DLA † (" in answer
    assert "† learned from propensities that had not settled." in answer
    assert answer.endswith("On 15 test queries, all this is an illustration, no evidence.")
    assert "better: DLA † 0.800; worse: UPE 0.600" in line
    without = table[~table["method"].isin(["dla", "ctr"])]
    answer, _ = page.answer({"here": without}, "nDCG@10", {}, synthetic=False)
    assert "None came out above it: the most came from UPE (" in answer


def test_a_control_is_not_the_best_baseline():
    table = results_table(comparisons(), METRICS, GROUPS, LEARNED).numbers.assign(policy="weak")
    rows = table["method"] == "labeled"
    control = table.assign(group=table["group"].mask(rows, CONTROL))
    _, [line] = page.answer({"here": control}, "nDCG@10", {}, synthetic=False)
    assert "Labeled" not in line
    baseline = control.assign(method=table["method"].mask(rows, "random_order"))
    assert "best skyline" in page.answer({"here": baseline}, "nDCG@10", {}, synthetic=False)[1][0]


def test_policies_are_told_apart_in_the_answer():
    table = results_table(comparisons(), METRICS, GROUPS, LEARNED).numbers
    places = {name: table.assign(policy=name) for name in ("weak", "strong")}
    paragraph, lines = page.answer(places, "nDCG@10", {}, synthetic=False)
    assert "under the weak logging policy 1 of 3 better and 1 worse; under the strong" in paragraph
    assert lines[0] == (
        "weak: Naive clicks 0.700; better: DLA 0.800; worse: UPE 0.600; undecided: CTR 0.710; "
        "best skyline or baseline: Labeled (grades) 0.900."
    )


def test_cells_tell_n_and_p(text):
    tips = [a["data-tip"] for a in Elements(text).all("td") if "data-tip" in a]
    assert len(tips) == len(MEANS) * len(METRICS)
    assert "Exposure: Gini" in text and "<td>0.250</td>" in text
    assert (
        "DLA, nDCG@10: 0.8000\nn = 1,200 queries, 5 replicates\ndifference +0.1000, 95 % interval "
        "+0.0800 to +0.1200\np = 0.001, Holm 0.004" in tips
    )


def test_claims_are_escaped_and_say_what_lacks(text):
    assert "DLA &lt;beats&gt; naive clicks." in text
    assert "Source: A &amp; B 2018." in text
    assert "1 of 2 comparisons hold" in text
    assert "Not run (1 of 2): the study lacks upe." in text


def test_runtime_and_provenance(text):
    assert re.search(r'<th scope="row">propensity</th>\s*<td>2</td>\s*<td>62</td>', text)
    assert re.search(r'<th scope="row">estimator dla</th>\s*<td>60.0</td>', text)
    assert "a.zip: <code>00ff</code>" in text
    assert re.search(
        r'scope="row">mine, test</th>\s*<td>1,200</td>\s*<td>9</td>\s*<td>3</td>', text
    )


def test_the_same_inputs_give_the_same_bytes(tmp_path):
    assert write_page(tmp_path, "a.html") == write_page(tmp_path, "b.html")


def test_every_figure_has_a_caption():
    captions = {file.stem for file in (REPOSITORY / "workflow/report").glob("*.rst")}
    assert {"grades", "propensity", "spread", "rounds", "propensity_error", "ledger"} <= captions
    assert {"counterfactual", "exposure", "sampled"} <= captions


def test_markdown_tables_are_read_back():
    table = results_table(comparisons(), METRICS, GROUPS, LEARNED, {"dla": "D_L|A *"})
    [(caption, read)] = page.read_tables(table_markdown(table, "A [b] < c."))
    assert caption == "A [b] < c."
    assert (read.blocks, read.metrics, read.corner) == (table.blocks, table.metrics, table.corner)


PROBE = """
<script>
{
const heads = [...document.querySelector("table.sortable").tHead.rows[0].cells];
const column = n => [...document.querySelector("table.sortable").tBodies[0].rows].slice(1)
  .map(row => row.cells[n].textContent.trim());
const key = name => document.activeElement.dispatchEvent(
  new KeyboardEvent("keydown", {key: name, bubbles: true, cancelable: true}));
const seen = {before: column(1)};
heads[1].querySelector("button").click();
seen.down = column(1); seen.sorted = heads[1].getAttribute("aria-sort");
heads[1].querySelector("button").click();
seen.up = column(1); seen.other = heads[0].getAttribute("aria-sort");
heads[0].querySelector("button").click();
seen.names = column(0);
const tip = document.getElementById("tip");
seen.hidden = tip.hidden;
document.querySelector("td[data-tip][tabindex='0']").focus();
seen.first = tip.textContent; seen.shown = !tip.hidden;
key("ArrowRight"); seen.right = tip.textContent;
key("ArrowDown"); seen.below = tip.textContent;
seen.stops = document.querySelectorAll("table")[0].querySelectorAll("td[tabindex='0']").length;
key("Escape"); seen.escaped = tip.hidden;
const root = document.documentElement;
seen.overflow = root.scrollWidth - root.clientWidth; seen.inner = innerWidth;
seen.boxes = [...document.querySelectorAll(".scroll, .picture")]
  .filter(box => box.scrollWidth > box.clientWidth).length;
seen.dark = getComputedStyle(document.body).backgroundColor;
document.title = JSON.stringify(seen);
}
</script>
"""


def browse(folder: Path, text: str, width: int, *flags: str) -> dict:
    """Open the page in a frame of some width in headless Chromium, and return what it does."""
    names = ("chromium", "chromium-browser", "google-chrome")
    installed = list(filter(None, map(shutil.which, names)))
    # Some systems install a name that only says how to get the program.
    works = [b for b in installed if subprocess.run([b, "--version"], capture_output=True).stdout]
    if not works:
        pytest.skip("Chromium is not installed")
    inner = html.escape(text.replace("</body>", PROBE + "</body>"))
    (folder / "frame.html").write_text(
        f'<iframe id="f" style="width:{width}px;height:800px;border:0" srcdoc="{inner}"></iframe>'
        '<pre id="out"></pre><script>onload = () => { out.textContent = '
        "f.contentDocument.title; }</script>",
        encoding="utf-8",
    )
    command = [works[0], "--headless", "--no-sandbox", "--disable-gpu", *flags, "--dump-dom"]
    command += [f"--user-data-dir={folder / 'profile'}", f"file://{folder / 'frame.html'}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return json.loads(
        html.unescape(re.search(r'<pre id="out">(.*?)</pre>', done.stdout, re.DOTALL)[1])
    )


def test_a_browser_sorts_tells_and_keeps_to_a_phone(text, tmp_path):
    seen = browse(tmp_path, text, 360, "--blink-settings=preferredColorScheme=1")
    assert seen["before"] == ["0.700", "0.800↑", "0.600↓", "0.710"]
    assert (seen["down"], seen["sorted"]) == (["0.800↑", "0.710", "0.700", "0.600↓"], "descending")
    assert (seen["up"], seen["other"]) == (["0.600↓", "0.700", "0.710", "0.800↑"], "none")
    assert seen["names"] == ["CTR", "DLA", "Naive clicks", "UPE"]
    assert seen["hidden"] and seen["shown"] and seen["escaped"]
    assert seen["first"].startswith("Naive clicks, nDCG@5") and seen["stops"] == 1
    assert seen["right"].startswith("Naive clicks, nDCG@10")
    assert seen["below"].startswith("UPE, nDCG@10")
    assert seen["inner"] == 360
    assert seen["overflow"] == 0, "the page is wider than the phone"
    assert seen["boxes"] > 0
    assert seen["dark"] == "rgb(255, 255, 255)"


def test_a_browser_that_asks_for_dark_gets_it(text, tmp_path):
    seen = browse(tmp_path, text, 1280, "--blink-settings=preferredColorScheme=0")
    assert seen["dark"] == "rgb(20, 23, 26)"
    assert (seen["inner"], seen["overflow"]) == (1280, 0)

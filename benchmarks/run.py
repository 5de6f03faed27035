"""Run all benchmarks, or those named, and put their table into docs/speed.md.

``python benchmarks/run.py [name ...]``; the rows of benchmarks that did not run stay. `paper` takes
a quarter of an hour, and 4 GB of the temporary folder: it runs when it is named.
"""

import io
import platform
import re
import subprocess
import sys
from datetime import date
from pathlib import Path

import pandas as pd
from measure import HEADER

FOLDER = Path(__file__).resolve().parent
PAGE = FOLDER.parent / "docs/speed.md"
NAMES = ("clicks", "parsing", "fits", "fisher", "metrics", "overhead", "scaling", "paper")
BLOCK = re.compile(r"<!-- measured -->\n(.*)<!-- end -->", re.DOTALL)


def measured_before(text):
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    return pd.DataFrame(rows[1:], columns=HEADER.split(","))


def machine():
    cpu = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    return f"{cpu[1] if cpu else platform.machine()}, Python {platform.python_version()}"


def write(table):
    order = table["benchmark"].map(list(NAMES).index)
    table = table.iloc[order.argsort(kind="stable")]
    lines = [
        "| " + " | ".join(row) + " |"
        for row in [HEADER.split(","), *table.fillna("").to_numpy().tolist()]
    ]
    lines.insert(1, "|---|---|---:|---:|---:|---:|---|")
    note = f"Last measured on {date.today()}: {machine()}.\n\n"
    block = f"<!-- measured -->\n{note}" + "\n".join(lines) + "\n<!-- end -->"
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(BLOCK.sub(lambda _: block, page), encoding="utf-8")


def main(names):
    table = measured_before(BLOCK.search(PAGE.read_text(encoding="utf-8"))[1])
    for name in names or NAMES[:-1]:
        run = subprocess.run(
            [sys.executable, FOLDER / f"{name}.py"], check=True, stdout=subprocess.PIPE, text=True
        )
        print(run.stdout, end="", flush=True)
        table = table[table["benchmark"] != name]
        table = pd.concat([table, pd.read_csv(io.StringIO(run.stdout), dtype=str)])
        write(table)


if __name__ == "__main__":
    main(sys.argv[1:])

"""Draw ``workflow.svg``, the stages of the workflow: ``python docs/figures/workflow.py``."""

from html import escape
from pathlib import Path

WIDTH, HEIGHT = 960, 318
COLUMN, BOX = 192, 152  # from one column to the next, and the width of a box
LEFT = (WIDTH - 4 * COLUMN - BOX) / 2
TOP, TALL = 58, 70  # the row of stages
LOW = 190  # the row below it

# Target, column, top edge, height, lines below the name.
BOXES = [
    ("data", 0, TOP, TALL, ["LETOR files, or", "synthetic queries"]),
    ("policies", 1, TOP, TALL, ["a logging policy and", "its top N of a query"]),
    ("clicks", 2, TOP, TALL, ["a click model, or a", "click log of your own"]),
    ("propensity", 3, TOP, TALL, ["estimators, built in or", "in a file of your own"]),
    ("ranking", 4, TOP, TALL, ["LightGBM on clicks", "over their propensity"]),
    ("evaluation", 4, LOW, TALL, ["nDCG, ERR on grades,", "randomisation tests"]),
    ("metrics", 3, LOW - 8, 26, []),
    ("paper", 3, LOW + 22, 26, []),
    ("claims", 3, LOW + 52, 26, []),
    ("identifiability", 2, LOW, TALL, ["what a log can tell", "of propensities"]),
    ("report", 1, LOW, TALL, ["all of it on one page,", "on request"]),
]
ON_REQUEST = ("report",)


def left(column: int) -> float:
    """Return the left edge of a column."""
    return LEFT + column * COLUMN


def box(name: str, column: int, top: float, height: float, lines: list[str]) -> str:
    """Return a box with its name and what it does."""
    x, middle = left(column), left(column) + BOX / 2
    dashed = ' stroke-dasharray="5 4"' if name in ON_REQUEST else ""
    baseline = top + 24 if lines else top + height / 2 + 5
    text = "".join(
        f'<text class="about" x="{middle:g}" y="{top + 44 + 15 * n:g}">{escape(line)}</text>'
        for n, line in enumerate(lines)
    )
    return (
        f'<rect x="{x:g}" y="{top}" width="{BOX}" height="{height}" rx="6"{dashed}/>'
        f'<text class="name" x="{middle:g}" y="{baseline:g}">{name}</text>{text}'
    )


def arrow(*points: tuple[float, float]) -> str:
    """Return a line with a head at its end."""
    path = " L".join(f"{x:g} {y:g}" for x, y in points)
    return f'<path class="arrow" d="M{path}" marker-end="url(#head)"/>'


def draw() -> str:
    """Return the picture as SVG text."""
    row, low, gap = TOP + TALL / 2, LOW + TALL / 2, 3
    clicks, ranking, report = (left(c) + BOX / 2 for c in (2, 4, 1))
    loop, bottom = TOP - 26, LOW + TALL + 34
    arrows = [
        *[arrow((left(c) + BOX, row), (left(c + 1) - gap, row)) for c in range(4)],
        arrow((ranking, TOP), (ranking, loop), (clicks, loop), (clicks, TOP - gap)),
        arrow((ranking, TOP + TALL), (ranking, LOW - gap)),
        arrow((clicks, TOP + TALL), (clicks, LOW - gap)),
        arrow((left(4), low), (left(3) + BOX + gap, low)),
        arrow((left(2), low), (left(1) + BOX + gap, low)),
        arrow(
            (left(3) + BOX / 2, LOW + 78),
            (left(3) + BOX / 2, bottom),
            (report, bottom),
            (report, LOW + TALL + gap),
        ),
    ]
    loop_text = "dynamic logging: the ranker of a round displays the next"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}"'
            f' width="{WIDTH}" height="{HEIGHT}" role="img" aria-label="Stages of the workflow">',
            "<style>",
            "text { font-family: -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif;"
            " text-anchor: middle; fill: #1b2733 }",
            ".name { font-weight: 600; font-size: 15px }",
            ".about { font-size: 12px; fill: #44546a }",
            "rect { fill: #eaf1f8; stroke: #3d6a96; stroke-width: 1.2 }",
            ".arrow { fill: none; stroke: #5a6b7d; stroke-width: 1.4; stroke-linejoin: round }",
            "</style>",
            '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8"'
            ' markerHeight="8" orient="auto"><path d="M0 0 L8 4 L0 8 z" fill="#5a6b7d"/>'
            "</marker></defs>",
            # A ground of its own, as pages may be dark.
            f'<rect width="{WIDTH}" height="{HEIGHT}" rx="8" style="fill:#fff;stroke:none"/>',
            *arrows,
            f'<text class="about" x="{(clicks + ranking) / 2:g}" y="{loop - 8}">{loop_text}</text>',
            *[box(*about) for about in BOXES],
            "</svg>",
            "",
        ]
    )


if __name__ == "__main__":
    Path(__file__).with_suffix(".svg").write_text(draw(), encoding="utf-8")

"""The gap ledger of a study as table and figure, from per-query metrics."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from ultrbench.errors import UserError
from ultrbench.evaluation.ledger import ledger
from ultrbench.files import replacing, write_text
from ultrbench.reporting.figures import ledger_figure, save_figure
from ultrbench.reporting.listing import Listing, listing_latex, listing_markdown
from ultrbench.reporting.names import display_name
from ultrbench.reporting.tables import interval
from ultrbench.seeding import stream
from ultrbench.stages.evaluation import KEYS, TESTS_SEED


@dataclass(frozen=True)
class PairOfTables:
    """Metrics of a setting's rankers, trained on its sessions and on infinitely many.

    Attributes
    ----------
    policy, setting : str
        Where they come from.
    rows : sequence of (str, str, str, str)
        A method with those that learn from naive clicks, with the true propensities and from
        grades, by the same ranker.
    evaluated, expected : pathlib.Path
        ``per_query.parquet`` of either, see `ultrbench.stages.evaluation.evaluate_rankers`.
    """

    policy: str
    setting: str
    rows: Sequence[tuple[str, str, str, str]]
    evaluated: Path
    expected: Path


def ledger_frame(tables: Sequence[PairOfTables], *, metric: str, bootstraps: int) -> pd.DataFrame:
    """Return the steps of every method, for all candidates and validations.

    Parameters
    ----------
    tables : sequence of PairOfTables
        Of a data set.
    metric : str
        Canonical name of the metric that is split up.
    bootstraps : int
        Resamples of queries and replicates.

    Returns
    -------
    pandas.DataFrame
        As `ultrbench.evaluation.ledger.ledger`, after candidates, validation, policy, setting and
        method, with replicates and queries.
    """
    parts = []
    for pair in tables:
        found = [
            pd.read_parquet(path, columns=[*KEYS, "method", "seed", "query", metric])
            for path in (pair.evaluated, pair.expected)
        ]
        for key in found[0][KEYS].drop_duplicates().itertuples(index=False):
            finite, infinite = (
                frame[(frame[KEYS] == list(key)).all(axis=1)].pivot_table(
                    index=["method", "seed"], columns="query", values=metric
                )
                for frame in found
            )
            if finite.shape[1] != infinite.shape[1]:
                raise UserError(f"{pair.expected}: other queries than in {pair.evaluated}")
            for method, naive, oracle, grades in pair.rows:
                levels = {
                    "policy": finite.loc["logging_policy"],
                    "naive": infinite.loc[naive],
                    "expected": infinite.loc[method],
                    "method": finite.loc[method],
                    "oracle": infinite.loc[oracle],
                    "grades": finite.loc[grades],
                }
                steps = ledger(
                    {name: level.to_numpy() for name, level in levels.items()},
                    bootstraps=bootstraps,
                    rng=stream(TESTS_SEED, "ledger"),
                )
                about = dict(zip(KEYS, key, strict=True))
                about |= {"policy": pair.policy, "setting": pair.setting, "method": method}
                for place, (name, value) in enumerate(about.items()):
                    steps.insert(place, name, value)
                replicates, queries = levels["method"].shape
                parts.append(steps.assign(replicates=replicates, queries=queries))
    return pd.concat(parts, ignore_index=True)


def write_ledger(
    tables: Sequence[PairOfTables],
    stem: Path,
    figure: Sequence[Path],
    *,
    metric: str,
    bootstraps: int,
    order: Sequence[str],
    labels: Mapping[str, str],
    dataset: str,
) -> None:
    """Write the gap ledger of a data set.

    Parameters
    ----------
    tables, metric, bootstraps
        As in `ledger_frame`.
    stem : pathlib.Path
        Where to write, without the ending: ``.csv`` with all candidates and validations, ``.md``
        and ``.tex`` with the first of either.
    figure : sequence of pathlib.Path
        ``.pdf``, ``.png`` and ``.svg`` to write, of the same.
    order, labels : sequence of str, mapping of str to str
        All methods of the study, and their labels.
    dataset : str
        Its name, for the caption.
    """
    if not tables:
        raise UserError(
            "The ledger needs a setting with clicks of kind pbm that lists, for the same ranker, a"
            " method with a naive estimator, one with the oracle and one with target grades; the"
            " study has none."
        )
    frame = ledger_frame(tables, metric=metric, bootstraps=bootstraps)
    with replacing(stem.with_suffix(".csv")) as half:
        frame.to_csv(half, index=False, lineterminator="\n")
    candidates, validation = frame.loc[0, KEYS]
    frame = frame[(frame[KEYS] == [candidates, validation]).all(axis=1)].drop(columns=KEYS)
    blocks = []
    for (policy, setting), part in frame.groupby(["policy", "setting"], sort=False):
        rows = []
        for method, own in part.groupby("method", sort=False):
            steps = {row["step"]: row for row in own.to_dict("records")}
            end = steps["variance"]["start"] + steps["variance"]["value"]
            named = ("correction", "theta", "variance")
            rows.append(
                [display_name(method, labels), f"{end:.3f}", *(_change(steps[s]) for s in named)]
            )
        first = part.drop_duplicates("step").set_index("step").to_dict("index")
        blocks.append((_ends(f"{policy}, {setting}", first), rows))
    replicates, queries = int(frame["replicates"].max()), int(frame["queries"].max())
    caption = (
        f"Where {metric} goes on data set {dataset} ({candidates} candidates, validation by"
        f" {validation}; {replicates} replicates, {queries:,} test queries; 95 % crossed bootstrap"
        " intervals). correction: what the method's propensities gain over naive clicks, and theta"
        " error: what they lose against the true ones, both with infinitely many sessions;"
        " variance: what the method loses as sessions are finite. Policy + clicks + correction +"
        " variance, and grades + noise + theta error + variance, are the method. In a dynamic"
        " setting every method has logs of its own."
    )
    listing = Listing(["Method", metric, "correction", "theta error", "variance"], blocks)
    write_text(stem.with_suffix(".md"), listing_markdown(listing, caption))
    write_text(stem.with_suffix(".tex"), listing_latex(listing, caption, f"tab:{stem.name}"))
    save_figure(ledger_figure(frame, order, labels), *figure)


def _change(step: Mapping[str, float]) -> str:
    return f"{step['value']:+.4f} ({interval(step['low'], step['high'])})"


def _ends(title: str, steps: Mapping[str, Mapping[str, float]]) -> str:
    """What all methods of a setting share."""
    clicks, noise = steps["clicks"], steps["noise"]
    return (
        f"{title}: policy {clicks['start']:.3f}, clicks {_change(clicks)}; grades"
        f" {noise['start']:.3f}, noise {_change(noise)}"
    )

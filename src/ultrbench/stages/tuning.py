"""Stage `tuning`: choose the parameters of every method on validation alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ultrbench.files import read_json, replacing, write_text
from ultrbench.propensity.estimate import is_converged
from ultrbench.propensity.judge import read_theta_error
from ultrbench.reporting.names import display_name


@dataclass(frozen=True)
class Trial:
    """One configuration under one policy and seed: its ranker, its theta and the truth.

    `ranker` is the ranker's ``.json``, `theta` and `report` are those of the estimate, and `truth`
    is the simulator's.
    """

    configuration: str
    policy: str
    seed: int
    ranker: Path
    theta: Path
    report: Path
    truth: Path


def reached(ranker: Path, validation: str) -> float:
    """Return the validation value of a ranker with the trees that it is used with.

    Parameters
    ----------
    ranker : pathlib.Path
        ``ranker.json``.
    validation : str
        Name of the validation.

    Examples
    --------
    >>> import tempfile
    >>> from ultrbench.files import write_json
    >>> path = Path(tempfile.mkdtemp()) / "ranker.json"
    >>> write_json(path, {"trees": {"grades": 2}, "curve": {"grades": [0.5, 0.75, 0.7]}})
    >>> reached(path, "grades")
    0.75
    """
    report = read_json(ranker)
    return report["curve"][validation][report["trees"][validation] - 1]


def trials_frame(trials: Sequence[Trial], validation: str) -> pd.DataFrame:
    """Return validation value, error of theta and convergence, a row a trial."""
    rows = []
    for trial in trials:
        error, signed = read_theta_error(trial.theta, [trial.truth])
        rows.append(
            {
                "configuration": trial.configuration,
                "policy": trial.policy,
                "seed": trial.seed,
                "validation": reached(trial.ranker, validation),
                "theta_error": error,
                "signed_error": signed,
                "converged": is_converged(trial.report),
            }
        )
    return pd.DataFrame(rows)


def choose(
    frame: pd.DataFrame, grids: Mapping[str, Mapping[str, Mapping[str, Any]]]
) -> pd.DataFrame:
    """Choose a configuration of each method by its mean validation value.

    Parameters
    ----------
    frame : pandas.DataFrame
        Of `trials_frame`; every configuration with the same policies and seeds.
    grids : mapping
        By method and configuration, the parameters it changes.

    Returns
    -------
    pandas.DataFrame
        A row a configuration: ``validation`` is the mean, ``difference`` that to the first
        configuration of the method with the ``standard_error`` of paired differences over policies
        and seeds. ``chosen`` marks the greatest mean validation, the first of equal ones;
        ``oracle_tuned`` the smallest error of theta, which no user can know and nothing is chosen
        by.

    Examples
    --------
    >>> frame = pd.DataFrame({
    ...     "configuration": ["dla-1", "dla-2"], "policy": "weak", "seed": 7,
    ...     "validation": [0.8, 0.7], "theta_error": [0.3, 0.1], "signed_error": 0.1,
    ...     "converged": True,
    ... })
    >>> table = choose(frame, {"dla": {"dla-1": {"trees": 50}, "dla-2": {"trees": 90}}})
    >>> table[["parameters", "chosen", "oracle_tuned"]].values.tolist()
    [['trees 50', True, False], ['trees 90', False, True]]
    """
    tables = []
    for method, found in grids.items():
        cells = frame[frame["configuration"].isin(found)].set_index(["policy", "seed"])
        first = cells.loc[cells["configuration"] == next(iter(found)), "validation"]
        rows = []
        for name, changes in found.items():
            own = cells[cells["configuration"] == name]
            gain = own["validation"] - first
            rows.append(
                {
                    "method": method,
                    "configuration": name,
                    "parameters": ", ".join(f"{key} {value}" for key, value in changes.items()),
                    "validation": own["validation"].mean(),
                    "difference": gain.mean(),
                    "standard_error": gain.std() / np.sqrt(len(gain)),
                    "theta_error": own["theta_error"].mean(),
                    "signed_error": own["signed_error"].mean(),
                    "converged": own["converged"].mean(),
                }
            )
        table = pd.DataFrame(rows)
        table["chosen"] = table.index == table["validation"].idxmax()
        errors = table["theta_error"]
        table["oracle_tuned"] = table.index == (errors.idxmin() if errors.notna().any() else -1)
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


def tune(
    trials: Sequence[Trial],
    table: Path,
    page: Path,
    *,
    grids: Mapping[str, Mapping[str, Mapping[str, Any]]],
    validation: str,
    oracle_tuned: Sequence[str],
    labels: Mapping[str, str],
) -> None:
    """Write all configurations, and a page of those chosen.

    Parameters
    ----------
    trials : sequence of Trial
        Every configuration under every policy and seed.
    table, page : pathlib.Path
        ``.csv`` with the rows of `choose`; ``.md`` with the chosen ones.
    grids, validation
        As in `choose` and `trials_frame`.
    oracle_tuned : sequence of str
        Methods of which the page also shows the configuration of the smallest error of theta.
    labels : mapping of str to str
        Labels of methods.
    """
    frame = trials_frame(trials, validation)
    chosen = choose(frame, grids)
    with replacing(table) as half:
        chosen.to_csv(half, index=False, lineterminator="\n", float_format="%.6g")
    policies, seeds = (", ".join(map(str, frame[key].unique())) for key in ("policy", "seed"))
    lines = [
        "# Chosen parameters",
        "",
        f"Of {len(next(iter(grids.values())))} configurations of each method the one whose ranker"
        f" reaches the greatest mean validation value ({validation}) over the policies {policies}"
        f" and the seeds {seeds}. Neither test queries nor the error of theta chose; rows marked"
        " *oracle-tuned* show what that error would have chosen. Difference: to the first"
        " configuration, with the standard error of paired differences.",
        "",
        "| method | parameters | validation | difference | error of theta | converged |",
        "|---|---|---|---|---|---|",
    ]
    for row in chosen.itertuples():
        oracle = row.oracle_tuned and row.method in oracle_tuned
        for shown, note in ((row.chosen, ""), (oracle, " *oracle-tuned*")):
            if shown:
                error = "-" if np.isnan(row.theta_error) else f"{row.theta_error:.3f}"
                spread = "" if np.isnan(row.standard_error) else f" ± {row.standard_error:.4f}"
                lines.append(
                    f"| {display_name(row.method, labels)}{note} | {row.parameters} |"
                    f" {row.validation:.4f} | {row.difference:+.4f}{spread} | {error} |"
                    f" {100 * row.converged:.0f} % |"
                )
    write_text(page, "\n".join([*lines, ""]))

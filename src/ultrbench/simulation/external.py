"""Click logs of one's own: everything that could make a wrong number is checked here."""

from pathlib import Path

import numpy as np
import pandas as pd

from ultrbench.datasets.split import Split
from ultrbench.errors import UserError
from ultrbench.simulation.log import (
    CLICK_COLUMNS,
    LIST_COLUMNS,
    MAX_POSITIONS,
    ClickLog,
)

OPTIONAL = {"round": 0, "randomized": False, "context": 0, "policy_score": np.nan}
MAX_COUNT = 2**53


def _read(path: Path, columns: dict, optional: dict) -> pd.DataFrame:
    """Read a parquet table with the documented columns, every value of the documented kind."""
    import pyarrow.parquet as pq

    try:
        frame = pq.read_table(path).to_pandas()
    except FileNotFoundError:
        raise UserError(
            f"{path}: no such file; a click log is a folder with train.lists.parquet and"
            " train.clicks.parquet (see config/README.md)"
        ) from None
    except Exception as error:
        raise UserError(f"{path}: not a readable parquet file ({error})") from None
    for name in columns:
        if name not in frame and name in optional:
            frame[name] = optional[name]
        if name not in frame:
            raise UserError(
                f"{path}: no column `{name}`; wanted are {', '.join(columns)}"
                + (f" ({', '.join(optional)} may be left out)" if optional else "")
            )
        values = frame[name]
        whole = name != "policy_score"
        if whole and values.isna().any():
            raise UserError(f"{path}: row {_first(values.isna())}: `{name}` is missing")
        numbers = pd.to_numeric(values, errors="coerce").astype(np.float64)
        if whole and not (np.isfinite(numbers) & (numbers == np.floor(numbers))).all():
            bad = _first(~(np.isfinite(numbers) & (numbers == np.floor(numbers))))
            raise UserError(
                f"{path}: row {bad}: `{name}` is {values[bad]!r}, a whole number is wanted"
            )
        if whole and (numbers < 0).any():
            bad = _first(numbers < 0)
            raise UserError(f"{path}: row {bad}: `{name}` is {values[bad]}, below 0")
    return frame[list(columns)]


def _first(wrong: "pd.Series | np.ndarray") -> int:
    return int(np.flatnonzero(wrong)[0])


def _refuse(path: Path, frame: pd.DataFrame, wrong: np.ndarray, text: str) -> None:
    """Stop at the first row where `wrong` is true; `text` may name columns in braces."""
    if np.any(wrong):
        row = _first(wrong)
        raise UserError(f"{path}: row {row}: " + text.format(**frame.iloc[row].to_dict()))


def _check_lists(path: Path, frame: pd.DataFrame, split: Split) -> None:
    def refuse(wrong: np.ndarray, text: str) -> None:
        _refuse(path, frame, np.asarray(wrong), text)

    queries, documents = len(split.query_ids), len(split.grades)
    lists = frame.groupby("list_id", sort=False)
    length = lists["position"].transform("size").to_numpy()
    position = frame["position"]
    refuse(
        frame["query"] >= queries,
        f"query {{query}} is unknown: the split has queries 0 to {queries - 1}",
    )
    refuse(
        frame["document"] >= documents,
        f"document {{document}} is unknown: the split has rows 0 to {documents - 1}",
    )
    refuse(
        split.query_of_row[frame["document"].to_numpy(dtype=np.int64)] != frame["query"],
        "document {document} does not belong to query {query}",
    )
    for name in ("query", "round", "randomized", "context"):
        refuse(
            lists[name].transform("nunique") > 1, f"list {{list_id}} has several values of `{name}`"
        )
    refuse(frame["round"] > 0, "round {round}: a click log of one's own is round 0")
    refuse(frame["randomized"].astype(int) > 1, "`randomized` is {randomized}, not 0 or 1")
    refuse(frame["context"] > 255, "context {context} is above 255")
    refuse(length > MAX_POSITIONS, f"list {{list_id}} has more than {MAX_POSITIONS} positions")
    refuse(
        frame.duplicated(["list_id", "document"]), "list {list_id} shows document {document} twice"
    )
    refuse(
        frame.duplicated(["list_id", "position"]), "list {list_id} has position {position} twice"
    )
    refuse(
        (position < 1) | (position > length),
        "list {list_id} has position {position}; its positions must run from 1 to its number of"
        " documents without a gap",
    )
    refuse(
        np.isinf(frame["policy_score"].astype(np.float64)),
        "policy_score {policy_score} is not a finite number",
    )


def read_external_log(
    lists_path: Path, clicks_path: Path, split: Split, *, required: bool
) -> ClickLog:
    """Read and check a click log of one's own.

    Parameters
    ----------
    lists_path, clicks_path : pathlib.Path
        Tables in the form that `ultrbench.simulation.log.write_log` writes, rows in any order.
    split : Split
        The split whose query indices and document rows the log names.
    required : bool
        When false and both files are absent, the log is empty.

    Returns
    -------
    ClickLog
        Lists and clicks in canonical order; equal (list, mask) groups added up.

    Raises
    ------
    UserError
        With file and row, at the first value that is not as documented.
    """
    if not (required or lists_path.exists() or clicks_path.exists()):
        shape = np.empty((0, 1))
        none = np.empty(0, dtype=np.int64)
        small = none.astype(np.uint8)
        return ClickLog(
            shape.astype(np.int64), none, shape, small, none.astype(bool), small,
            none, none.astype(np.uint64), none,
        )  # fmt: skip
    lists = _read(lists_path, LIST_COLUMNS, OPTIONAL)
    clicks = _read(clicks_path, CLICK_COLUMNS, {})
    if not len(lists):
        raise UserError(f"{lists_path}: the log shows no list")
    _check_lists(lists_path, lists, split)
    lists = lists.sort_values(["list_id", "position"])
    position = lists["position"].to_numpy(dtype=np.int64)
    row = np.cumsum(position == 1) - 1
    first = np.flatnonzero(position == 1)
    ids = lists["list_id"].to_numpy(dtype=np.int64)[first]
    lengths = np.bincount(row)
    index = np.minimum(
        np.searchsorted(ids, clicks["list_id"].to_numpy(dtype=np.int64)), len(ids) - 1
    )
    _refuse(
        clicks_path,
        clicks,
        ids[index] != clicks["list_id"].to_numpy(),
        f"list {{list_id}} is not in {lists_path.name}",
    )
    mask = clicks["mask"].to_numpy(dtype=np.uint64)
    _refuse(
        clicks_path,
        clicks,
        mask >> lengths[index].astype(np.uint64) > 0,
        "mask {mask} has a click beyond the end of list {list_id}",
    )
    _refuse(clicks_path, clicks, clicks["count"] < 1, "count {count} of list {list_id} is below 1")
    total = clicks["count"].astype(np.float64).sum()
    if total >= MAX_COUNT:
        raise UserError(f"{clicks_path}: {total:.3g} sessions in all; at most 2^53 can be counted")
    shape = (len(ids), int(lengths.max()))
    documents, scores = np.full(shape, -1, dtype=np.int64), np.full(shape, np.nan)
    documents[row, position - 1] = lists["document"]
    scores[row, position - 1] = lists["policy_score"]
    groups = (
        pd.DataFrame({"list": index, "mask": mask, "count": clicks["count"].astype(np.int64)})
        .groupby(["list", "mask"], as_index=False)["count"]
        .sum()
    )
    log = ClickLog(
        documents,
        lists["query"].to_numpy(dtype=np.int64)[first],
        scores,
        lists["round"].to_numpy(dtype=np.uint8)[first],
        lists["randomized"].to_numpy(dtype=bool)[first],
        lists["context"].to_numpy(dtype=np.uint8)[first],
        groups["list"].to_numpy(),
        groups["mask"].to_numpy(),
        groups["count"].to_numpy(),
    )
    if log.clicks.sum() == 0:
        raise UserError(f"{clicks_path}: {int(total)} sessions and no click in all")
    return log


def read_external_truth(path: Path) -> np.ndarray:
    """Read the optional ``truth.csv`` of a click log; empty when there is none.

    Raises
    ------
    UserError
        When it is not a table `position,theta` with positions 1, 2, ... and theta in (0, 1].
    """
    if not path.exists():
        return np.empty(0)
    try:
        frame = pd.read_csv(path)
        theta = frame["theta"].to_numpy(dtype=np.float64)
        position = frame["position"].to_numpy(dtype=np.int64)
    except (ValueError, KeyError, pd.errors.ParserError) as error:
        raise UserError(f"{path}: wanted is a table position,theta ({error})") from None
    if (position != np.arange(1, len(position) + 1)).any():
        raise UserError(f"{path}: positions must be 1, 2, 3, ... in this order")
    wrong = ~((theta > 0) & (theta <= 1))
    if wrong.any():
        raise UserError(f"{path}: theta at position {_first(wrong) + 1} is outside (0, 1]")
    return theta

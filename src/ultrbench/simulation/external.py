"""Click logs of one's own: everything that could make a wrong number is checked here."""

import csv
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from ultrbench.datasets.split import Split
from ultrbench.errors import UserError
from ultrbench.files import decimal
from ultrbench.simulation.log import (
    CLICK_COLUMNS,
    LIST_COLUMNS,
    MAX_POSITIONS,
    ClickLog,
)
from ultrbench.simulation.truth import LIMITS, PARAMETERS

OPTIONAL = {"round": 0, "randomized": False, "context": 0, "policy_score": np.nan}
MAX_COUNT = 2**53
MAX_SCORE = 1e100


def _row(path: Path, row: int) -> str:
    return f"{path}: row {row} (the first is 0)"


def _first(wrong: np.ndarray) -> int:
    return int(np.flatnonzero(wrong)[0])


def _read(path: Path, columns: dict, optional: dict) -> pd.DataFrame:
    """Read a parquet table with the documented columns, every value of the documented kind."""
    if not path.is_file():
        raise UserError(
            f"{path}: no such file; a click log is a folder with train.lists.parquet and"
            " train.clicks.parquet (see config/README.md)"
        )
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            table = file.read()
    except Exception as error:
        raise UserError(f"{path}: not a readable parquet file ({error})") from None
    arrays = {}
    for name, kind in columns.items():
        found = table.schema.get_all_field_indices(name)
        if not found and name in optional:
            value = np.array(optional[name], dtype=kind.to_pandas_dtype())
            arrays[name] = np.broadcast_to(value, len(table))
        elif len(found) == 1:
            arrays[name] = _values(path, name, table.column(found[0]), kind)
        else:
            raise UserError(
                f"{path}: {len(found) or 'no'} column{'s' * bool(found)} `{name}`; wanted are"
                f" {', '.join(columns)}"
                + (f" ({', '.join(optional)} may be left out)" if optional else "")
            )
    return pd.DataFrame(arrays)


def _values(path: Path, name: str, column: pa.ChunkedArray, kind: pa.DataType) -> np.ndarray:
    """Return a column in its documented type; nothing is rounded, cut off or wrapped round."""
    if pa.types.is_null(column.type):
        column = column.cast(kind)
    number = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
    if not (number or (pa.types.is_boolean(column.type) and pa.types.is_boolean(kind))):
        raise UserError(f"{path}: column `{name}` holds {column.type}, {kind} is wanted")
    dtype = np.dtype(kind.to_pandas_dtype())
    if dtype.kind == "f":
        return column.to_numpy().astype(dtype)

    def refuse(wrong: np.ndarray, text: str) -> None:
        if wrong.any():
            row = _first(wrong)
            raise UserError(f"{_row(path, row)}: `{name}` {text.format(column[row])}")

    refuse(column.is_null().to_numpy(), "is missing")
    values = column.to_numpy()
    if values.dtype.kind == "f":
        values = values.astype(np.float64)  # half a number goes up to 65504
        # Beyond 2^53 a float is one of several whole numbers, and nobody knows which was meant.
        whole = np.isfinite(values) & (values == np.floor(values)) & (np.abs(values) < 2**53)
        refuse(~whole, "is {}, a whole number is wanted")
    most = 1 if dtype.kind == "b" else np.iinfo(dtype).max
    refuse(values < 0, "is {}, below 0")
    refuse(values > most, f"is {{}}, above {most}")
    return values.astype(dtype)


def _refuse(path: Path, frame: pd.DataFrame, wrong: np.ndarray, text: str) -> None:
    """Stop at the first row where `wrong` is true; `text` may name columns in braces."""
    if np.any(wrong):
        row = _first(wrong)
        values = {name: frame[name].iloc[row] for name in frame}
        raise UserError(f"{_row(path, row)}: " + text.format(**values))


def _check_lists(path: Path, frame: pd.DataFrame, split: Split | None, later_rounds: bool) -> None:
    def refuse(wrong: np.ndarray, text: str) -> None:
        _refuse(path, frame, np.asarray(wrong), text)

    lists = frame.groupby("list_id", sort=False)
    length = lists["position"].transform("size").to_numpy()
    position = frame["position"]
    if split is not None:
        queries, documents = len(split.query_ids), len(split.grades)
        refuse(
            frame["query"] >= queries,
            f"query {{query}} is unknown: the split has queries 0 to {queries - 1}",
        )
        refuse(
            frame["document"] >= documents,
            f"document {{document}} is unknown: the split has rows 0 to {documents - 1}",
        )
        refuse(
            split.query_of_row[frame["document"]] != frame["query"],
            "document {document} does not belong to query {query}",
        )
    for name in ("query", "round", "randomized", "context"):
        refuse(
            lists[name].transform("nunique") > 1, f"list {{list_id}} has several values of `{name}`"
        )
    if not later_rounds:
        refuse(frame["round"] > 0, "round {round}: a click log of one's own is round 0")
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
        frame["policy_score"].abs() > MAX_SCORE,
        f"`policy_score` is {{policy_score}}, beyond {MAX_SCORE:g}; give scores on a smaller scale",
    )


def read_external_log(
    lists_path: Path,
    clicks_path: Path,
    split: Split | None,
    *,
    required: bool,
    later_rounds: bool = False,
) -> ClickLog:
    """Read and check a click log of one's own.

    Parameters
    ----------
    lists_path, clicks_path : pathlib.Path
        Tables in the form that `ultrbench.simulation.log.write_log` writes, rows in any order.
    split : Split or None
        The split whose query indices and document rows the log names; they are not looked up
        without one.
    required : bool
        When false and both files are absent, the log is empty.
    later_rounds : bool
        Whether the log may be of a round after the first.

    Returns
    -------
    ClickLog
        Lists and clicks in canonical order; equal (list, mask) groups added up.

    Raises
    ------
    UserError
        With file and row, at the first value that is not as documented.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> lists = pd.DataFrame({"list_id": 7, "query": 0, "position": [1, 2], "document": [1, 0]})
    >>> clicks = pd.DataFrame({"list_id": [7], "mask": [0b10], "count": [12]})
    >>> lists.to_parquet(folder / "lists"), clicks.to_parquet(folder / "clicks")
    (None, None)
    >>> one = Split(np.zeros((2, 1)), np.array([0, 1]), np.array([0, 2]), np.array(["q1"]))
    >>> read_external_log(folder / "lists", folder / "clicks", one, required=True).clicks.tolist()
    [[0, 12]]
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
    _check_lists(lists_path, lists, split, later_rounds)
    lists = lists.sort_values(["list_id", "position"])
    position = lists["position"].to_numpy(dtype=np.int64)
    row = np.cumsum(position == 1) - 1
    first = np.flatnonzero(position == 1)
    ids = lists["list_id"].to_numpy()[first]
    lengths = np.bincount(row)
    index = np.minimum(np.searchsorted(ids, clicks["list_id"]), len(ids) - 1)
    mask = clicks["mask"].to_numpy()

    def refuse(wrong: np.ndarray, text: str) -> None:
        _refuse(clicks_path, clicks, np.asarray(wrong), text)

    refuse(ids[index] != clicks["list_id"], "list {list_id} is not in the table of lists")
    refuse(
        mask >> lengths[index].astype(np.uint64) > 0,
        "mask {mask} has a click beyond the end of list {list_id}",
    )
    refuse(clicks["count"] < 1, "`count` is {count}, below 1")
    refuse(
        np.cumsum(clicks["count"].to_numpy(dtype=np.float64)) >= MAX_COUNT,
        "with this `count` of {count} the log has 2^53 sessions or more, too many to be counted",
    )
    size = (len(ids), int(lengths.max()))
    documents, scores = np.full(size, -1, dtype=np.int64), np.full(size, np.nan)
    documents[row, position - 1] = lists["document"]
    scores[row, position - 1] = lists["policy_score"]
    groups = (
        pd.DataFrame({"list": index, "mask": mask, "count": clicks["count"]})
        .groupby(["list", "mask"], as_index=False)["count"]
        .sum()
    )
    log = ClickLog(
        documents,
        lists["query"].to_numpy()[first],
        scores,
        lists["round"].to_numpy()[first],
        lists["randomized"].to_numpy()[first],
        lists["context"].to_numpy()[first],
        groups["list"].to_numpy(),
        groups["mask"].to_numpy(),
        groups["count"].to_numpy(),
    )
    if log.clicks.sum() == 0:
        raise UserError(f"{clicks_path}: {int(log.sessions.sum())} sessions and no click in all")
    return log


def read_external_truth(path: Path) -> np.ndarray:
    """Read the optional ``truth.csv`` of a click log.

    Parameters
    ----------
    path : pathlib.Path
        Where it would be.

    Returns
    -------
    numpy.ndarray
        float64 ``[positions]``; empty when there is no such file.

    Raises
    ------
    UserError
        When it is not a table `position,theta` with positions 1, 2, ... and theta in (0, 1].

    Examples
    --------
    >>> read_external_truth(Path("no such folder/truth.csv")).size
    0
    """
    if not path.exists():
        return np.empty(0)
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
        names, *rows = [row for row in csv.reader(lines, strict=True) if row] or [[]]
        if len(set(names)) < len(names) or any(len(row) != len(names) for row in rows):
            raise ValueError("a column stands twice, or a line has more or fewer cells than others")
        frame = dict(
            zip(names, zip(*rows, strict=True) if rows else [()] * len(names), strict=True)
        )

        def numbers(name: str) -> np.ndarray:
            return np.array([decimal(text) for text in frame[name]])

        position, theta = numbers("position"), numbers("theta")
        further = {name: numbers(name) for name in PARAMETERS if name in frame}
    except Exception as error:
        raise UserError(f"{path}: wanted is a table position,theta ({error})") from None
    if (position != np.arange(1, len(position) + 1)).any():
        raise UserError(f"{path}: positions must be 1, 2, 3, ... in this order")
    wrong = ~((theta > 1e-100) & (theta <= 1))  # its inverse is a number
    if wrong.any():
        row = _first(wrong)
        raise UserError(
            f"{path}: theta at position {row + 1} is {theta[row]}; a probability above 0 is wanted"
        )
    for flag in frame.get("by_position", ()):
        if flag.lower() not in ("", "true", "false"):
            raise UserError(f"{path}: by_position must be true or false, got {flag!r:.40}")
    for name, values in further.items():
        least, most = LIMITS[name]
        wrong = ~((values >= least) & (values <= most))
        if wrong.any():
            row = _first(wrong)
            raise UserError(
                f"{path}: {name} at position {row + 1} is {values[row]}; {least} to {most} is"
                " wanted"
            )
    return theta

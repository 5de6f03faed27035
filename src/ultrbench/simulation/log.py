"""The click log: displayed lists, and how often each click mask was seen on each of them.

All sessions of one displayed list are exchangeable, so ``(list_id, mask, count)`` loses nothing,
however many sessions there are, and every estimator needs only sums over it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ultrbench.files import reading, replacing

MAX_POSITIONS = 63

LIST_COLUMNS = {
    "list_id": pa.int64(),
    "round": pa.uint8(),
    "randomized": pa.bool_(),
    "query": pa.int64(),
    "context": pa.uint8(),
    "position": pa.uint8(),
    "document": pa.int64(),
    "policy_score": pa.float64(),
}
CLICK_COLUMNS = {"list_id": pa.int64(), "mask": pa.uint64(), "count": pa.int64()}


def _sums(index: np.ndarray, count: np.ndarray, size: int) -> np.ndarray:
    # bincount sums in float64: exact up to 2^53 sessions, and far faster than np.add.at.
    return np.bincount(index, weights=count, minlength=size).astype(np.int64)


@dataclass(frozen=True)
class ClickLog:
    """Displayed lists as padded arrays, and their click masks with counts.

    Attributes
    ----------
    documents : numpy.ndarray
        int64 ``[lists, positions]``, document rows of the split in displayed order; -1 pads
        lists that are shorter than the longest.
    queries : numpy.ndarray
        int64 ``[lists]``, query index of the split.
    scores : numpy.ndarray
        float64 ``[lists, positions]``, the scores by which the display policy ordered the list;
        NaN where none was logged.
    rounds : numpy.ndarray
        uint8 ``[lists]``, logging round.
    randomized : numpy.ndarray
        bool ``[lists]``, true where the order was drawn uniformly at random.
    contexts : numpy.ndarray
        uint8 ``[lists]``, 0 unless sessions differ in kind.
    click_list : numpy.ndarray
        int64 ``[groups]``, list index of each group of equal sessions.
    mask : numpy.ndarray
        uint64 ``[groups]``, bit ``k - 1`` is set where position ``k`` was clicked; 0 is a session
        without a click.
    count : numpy.ndarray
        int64 ``[groups]``, sessions in the group.

    Examples
    --------
    Two lists; the first was shown 8 times, 5 times with a click at position 2 alone.

    >>> log = ClickLog(
    ...     documents=np.array([[4, 2], [7, -1]]),
    ...     queries=np.array([0, 1]),
    ...     scores=np.array([[0.9, 0.1], [0.3, np.nan]]),
    ...     rounds=np.zeros(2, np.uint8),
    ...     randomized=np.zeros(2, bool),
    ...     contexts=np.zeros(2, np.uint8),
    ...     click_list=np.array([0, 0, 1]),
    ...     mask=np.array([0b00, 0b10, 0b01], np.uint64),
    ...     count=np.array([3, 5, 1]),
    ... )
    >>> log.clicks.tolist(), log.sessions.tolist()
    ([[0, 5], [1, 0]], [8, 1])
    >>> log.select(log.queries == 1).clicks.tolist()
    [[1, 0]]
    """

    documents: np.ndarray
    queries: np.ndarray
    scores: np.ndarray
    rounds: np.ndarray
    randomized: np.ndarray
    contexts: np.ndarray
    click_list: np.ndarray = field(repr=False)
    mask: np.ndarray = field(repr=False)
    count: np.ndarray = field(repr=False)

    @property
    def positions(self) -> int:
        """Length of the longest displayed list."""
        return self.documents.shape[1]

    @property
    def shown(self) -> np.ndarray:
        """bool ``[lists, positions]``, false where a list is padded."""
        return self.documents >= 0

    @cached_property
    def sessions(self) -> np.ndarray:
        """Sessions a list, int64 ``[lists]``: the impressions of each of its positions."""
        return _sums(self.click_list, self.count, len(self.queries))

    @cached_property
    def clicks(self) -> np.ndarray:
        """Clicks by list and position, int64 ``[lists, positions]``."""
        sums = np.zeros(self.documents.shape, dtype=np.int64)
        for k in range(self.positions):
            hit = (self.mask >> np.uint64(k)) & np.uint64(1) == 1
            sums[:, k] = _sums(self.click_list[hit], self.count[hit], len(sums))
        return sums

    def with_clicks(
        self, click_list: np.ndarray, mask: np.ndarray, count: np.ndarray
    ) -> "ClickLog":
        """Return the same displayed lists with other sessions."""
        return replace(self, click_list=click_list, mask=mask, count=count)

    def select(self, lists: np.ndarray) -> "ClickLog":
        """Return the log of the displayed lists where the bool array `lists` is true.

        Lists keep their order and the arrays their width.
        """
        index = np.cumsum(lists) - 1
        kept = lists[self.click_list]
        return ClickLog(
            self.documents[lists],
            self.queries[lists],
            self.scores[lists],
            self.rounds[lists],
            self.randomized[lists],
            self.contexts[lists],
            index[self.click_list[kept]],
            self.mask[kept],
            self.count[kept],
        )


def concatenate(logs: list[ClickLog]) -> ClickLog:
    """Return one log of all lists of some logs, in their order: the rounds of a dynamic log.

    Parameters
    ----------
    logs : list of ClickLog
        At least one; shorter lists are padded to the width of the widest log.

    Returns
    -------
    ClickLog
        Lists and click groups of the first log, then those of the second, and so on.

    Examples
    --------
    >>> log = ClickLog(
    ...     np.array([[4]]), np.array([0]), np.array([[0.9]]), np.zeros(1, np.uint8),
    ...     np.zeros(1, bool), np.zeros(1, np.uint8),
    ...     np.array([0]), np.array([1], np.uint64), np.array([3]),
    ... )
    >>> concatenate([log, log]).clicks.tolist()
    [[3], [3]]
    """
    width = max(log.positions for log in logs)
    starts = np.cumsum([0] + [len(log.queries) for log in logs])

    def padded(name: str, value: float) -> np.ndarray:
        arrays = [getattr(log, name) for log in logs]
        return np.concatenate(
            [np.pad(a, ((0, 0), (0, width - a.shape[1])), constant_values=value) for a in arrays]
        )

    def joined(name: str) -> np.ndarray:
        return np.concatenate([getattr(log, name) for log in logs])

    return ClickLog(
        padded("documents", -1),
        joined("queries"),
        padded("scores", np.nan),
        joined("rounds"),
        joined("randomized"),
        joined("contexts"),
        np.concatenate(
            [log.click_list + start for log, start in zip(logs, starts[:-1], strict=True)]
        ),
        joined("mask"),
        joined("count"),
    )


def _write_table(path: str | Path, columns: dict[str, np.ndarray], types: dict) -> None:
    table = pa.table({name: pa.array(columns[name], kind) for name, kind in types.items()})
    with replacing(path) as half:
        pq.write_table(table, half, compression="zstd", write_page_checksum=True)


def write_log(log: ClickLog, lists_path: str | Path, clicks_path: str | Path) -> None:
    """Write a log as the documented pair of tables; equal logs give equal bytes.

    Parameters
    ----------
    log : ClickLog
        Every list shows at least one document.
    lists_path : path-like
        Parquet file to write, a row for each displayed document: `LIST_COLUMNS`.
    clicks_path : path-like
        Parquet file to write, a row for each group of equal sessions: `CLICK_COLUMNS`.

    Examples
    --------
    >>> import tempfile
    >>> log = ClickLog(
    ...     np.array([[4, 2]]), np.array([0]), np.array([[0.9, 0.1]]), np.zeros(1, np.uint8),
    ...     np.zeros(1, bool), np.zeros(1, np.uint8),
    ...     np.array([0]), np.array([2], np.uint64), np.array([3]),
    ... )
    >>> files = log_files(Path(tempfile.mkdtemp()), "train")
    >>> write_log(log, *files)
    >>> read_log(*files).clicks.tolist()
    [[0, 3]]
    """
    row, column = np.nonzero(log.shown)
    _write_table(
        lists_path,
        {
            "list_id": row,
            "round": log.rounds[row],
            "randomized": log.randomized[row],
            "query": log.queries[row],
            "context": log.contexts[row],
            "position": column + 1,
            "document": log.documents[row, column],
            "policy_score": log.scores[row, column],
        },
        LIST_COLUMNS,
    )
    _write_table(
        clicks_path,
        {"list_id": log.click_list, "mask": log.mask, "count": log.count},
        CLICK_COLUMNS,
    )


def read_log(lists_path: str | Path, clicks_path: str | Path) -> ClickLog:
    """Read a log that `write_log` wrote, whose example reads it back.

    A log of one's own has been checked and written anew by
    `ultrbench.simulation.external.read_external_log` before.

    Parameters
    ----------
    lists_path, clicks_path
        As in `write_log`.

    Returns
    -------
    ClickLog
        Equal to what was written, apart from columns of padding alone.

    Raises
    ------
    UserError
        Where a file is not whole.
    """
    tables = []
    for path, columns in ((lists_path, LIST_COLUMNS), (clicks_path, CLICK_COLUMNS)):
        with reading(path, "a table of a click log (.parquet)"):
            table = pq.read_table(path, columns=[*columns], page_checksum_verification=True)
            tables.append({name: table.column(name).to_numpy() for name in columns})
    lists, clicks = tables
    starts = np.flatnonzero(lists["position"] == 1)
    row = np.cumsum(lists["position"] == 1) - 1
    shape = (len(starts), int(lists["position"].max(initial=0)))
    documents = np.full(shape, -1, dtype=np.int64)
    scores = np.full(shape, np.nan)
    column = lists["position"].astype(np.int64) - 1
    documents[row, column] = lists["document"]
    scores[row, column] = lists["policy_score"]
    ids = lists["list_id"][starts]
    return ClickLog(
        documents,
        lists["query"][starts],
        scores,
        lists["round"][starts],
        lists["randomized"][starts],
        lists["context"][starts],
        np.searchsorted(ids, clicks["list_id"]),
        clicks["mask"],
        clicks["count"],
    )


def log_files(folder: Path, split: str) -> tuple[Path, Path]:
    """Return the two files of a split's click log: displayed lists and clicks.

    Parameters
    ----------
    folder : pathlib.Path
        Folder of a logging round.
    split : {"train", "vali"}
        Which split.

    Returns
    -------
    tuple of pathlib.Path
        Lists, then clicks.

    Examples
    --------
    >>> [file.name for file in log_files(Path("round0"), "train")]
    ['train.lists.parquet', 'train.clicks.parquet']
    """
    return folder / f"{split}.lists.parquet", folder / f"{split}.clicks.parquet"


def read_rounds(folders: Sequence[Path], split: str) -> ClickLog:
    """Return the click log of a split over several logging rounds.

    Parameters
    ----------
    folders : sequence of pathlib.Path
        A folder a round, with the files of `log_files`.
    split : {"train", "vali"}
        Which split.

    Returns
    -------
    ClickLog
        As `concatenate` joins them.
    """
    return concatenate([read_log(*log_files(folder, split)) for folder in folders])

"""Reader of LETOR files: SVMlight lines ``grade qid:QUERY INDEX:VALUE ... # comment``.

scikit-learn's reader is fast but holds three times the dense matrix, gives no line numbers, drops
missing ``qid`` silently and turns values beyond float32 into infinity. It therefore gets pieces of
whole lines, each piece is checked, and a piece that fails is read again line by line for the place
of the mistake.
"""

import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np

from ultrbench.datasets.split import Split
from ultrbench.errors import UserError

PIECE_BYTES = 4 << 20
# Columns that are put into query order at a time: a bound on the memory it takes.
_COLUMNS_AT_A_TIME = 16
_INNER_RETURN = re.compile(rb"\r[^\r\n]")


def read_letor(path: str | Path, features: int, ymax: int) -> tuple[Split, int]:
    """Read a LETOR file of any size into one dense matrix.

    Queries keep the order of their first line, documents the order of their lines; lines of a
    query need not follow each other. Features that a line leaves out are 0. Comments, blank lines
    and CRLF ends are accepted, and text in comments may be in any encoding.

    Parameters
    ----------
    path : path-like
        The file, not compressed.
    features : int
        Width of the matrix; indices go from 1 to `features` and increase along a line.
    ymax : int
        Highest grade, at most 255.

    Returns
    -------
    split : Split
        float32 features; values beyond float32, infinite or not a number are NaN.
    missing : int
        How many values became NaN.

    Raises
    ------
    UserError
        With file and line, where a line is malformed; without, where the file has no documents.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "train.txt"
    >>> _ = path.write_text("2 qid:7 1:0.5 3:1.79e308 # docid = 1\\n0 qid:7 2:1\\n")
    >>> split, missing = read_letor(path, features=3, ymax=4)
    >>> split.features.tolist(), missing
    ([[0.5, 0.0, nan], [0.0, 1.0, 0.0]], 1)
    >>> split.grades.tolist(), split.query_ids.tolist()
    ([2, 0], ['7'])
    """
    path = Path(path)
    with path.open("rb") as file:
        lines = sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 20), b"")) + 1
        file.seek(0)
        # Blank lines leave rows unused; zeroed memory that is never touched is never allocated.
        matrix = np.zeros((lines, features), dtype=np.float32)
        grades = np.empty(lines, dtype=np.uint8)
        queries = np.empty(lines, dtype=np.int64)
        rows = missing = 0
        for first_line, piece in _pieces(file, path):
            block, block_grades, block_queries = _parse(piece, path, first_line, features, ymax)
            stop = rows + block.shape[0]
            beyond = ~np.isfinite(block.data)
            block.data[beyond] = np.nan
            missing += int(beyond.sum())
            block.toarray(out=matrix[rows:stop])
            grades[rows:stop], queries[rows:stop] = block_grades, block_queries
            rows = stop
    if rows == 0:
        raise UserError(f"{path}: the file has no documents. Give a LETOR file, or unpack it anew.")
    return _grouped(matrix[:rows], grades[:rows], queries[:rows]), missing


def _pieces(file: BinaryIO, path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield pieces of whole lines with the number of their first line."""
    line = 1
    while piece := file.read(PIECE_BYTES):
        if not piece.endswith(b"\n"):
            piece += file.readline(PIECE_BYTES)
        if len(piece) >= 2 * PIECE_BYTES:
            number = line + piece.count(b"\n")
            raise UserError(
                f"{path}:{number}: the line is longer than {PIECE_BYTES:,} bytes and cannot be a"
                " document. Is the file a text file?"
            )
        yield line, piece
        line += piece.count(b"\n")


def _parse(piece: bytes, path: Path, first_line: int, features: int, ymax: int):
    """Return the piece as a sparse float32 matrix, grades and query numbers."""
    from sklearn.datasets import load_svmlight_file

    failure = "its lines do not add up"
    # Python's numbers may hold underscores, the C code ends a line at NUL and takes qid2:5 for a
    # query, and where lines end in CR alone, a comment swallows all that follow: look at each line.
    odd = b"_" in piece or b"\0" in piece or piece.count(b"qid") != piece.count(b"qid:")
    if odd or _INNER_RETURN.search(piece):
        _check_lines(piece, path, first_line, features, ymax)
    try:
        block, grades, queries = load_svmlight_file(
            io.BytesIO(piece),
            n_features=features,
            dtype=np.float32,
            query_id=True,
            zero_based=False,
        )
        whole = len(grades) == len(queries)
        if whole and ((grades >= 0) & (grades <= ymax) & (grades == np.rint(grades))).all():
            return block, grades, queries
    except (ValueError, OverflowError) as error:
        failure = str(error)
    _check_lines(piece, path, first_line, features, ymax)
    raise UserError(f"{path}: the lines from {first_line} on cannot be read: {failure}")


def _check_lines(piece: bytes, path: Path, first_line: int, features: int, ymax: int) -> None:
    """Raise a UserError for the first malformed line of the piece, if there is one."""
    for number, line in enumerate(piece.split(b"\n"), start=first_line):
        fields = line.partition(b"#")[0].split()
        fault = _fault(fields, features, ymax) if fields else None
        if _INNER_RETURN.search(line):
            fault = "there is a carriage return inside the line; let each line end in a line feed."
        if fault:
            raise UserError(f"{path}:{number}: {fault}")


def _fault(fields: list[bytes], features: int, ymax: int) -> str | None:
    """Say what is wrong with the fields of a line, if anything."""
    grade = _number(float, fields[0])
    if grade is None or grade not in range(ymax + 1):
        return f"the grade is {_shown(fields[0])}; give a whole number from 0 to {ymax}."
    if len(fields) < 2 or not fields[1].startswith(b"qid:"):
        return "the second field must be the query, as in 'qid:12'."
    query = _number(int, fields[1][4:])
    if query is None or not -(2**63) <= query < 2**63:
        return f"the query is {_shown(fields[1])}; give a whole number, as in 'qid:12'."
    last = 0
    for field in fields[2:]:
        name, colon, text = field.partition(b":")
        index = _number(int, name)
        if index is None or not colon or _number(float, text) is None:
            return f"{_shown(field)} is not INDEX:VALUE, as in '3:0.5'."
        if not 1 <= index <= features:
            return f"the feature index {index} is outside 1..{features}, the registry's width."
        if index <= last:
            return f"the feature index {index} follows {last}; each must be above the one before."
        last = index
    return None


def _number(kind, text: bytes):
    # Of bytes, as of text Python takes the digits and spaces of every script.
    try:
        return None if b"_" in text else kind(text)
    except ValueError:
        return None


def _shown(field: bytes) -> str:
    return f"{field.decode('latin-1')!r:.40}"


def _grouped(matrix: np.ndarray, grades: np.ndarray, queries: np.ndarray) -> Split:
    """Bring the lines of each query together, queries by their first line, in place."""
    _, first, inverse, counts = np.unique(
        queries, return_index=True, return_inverse=True, return_counts=True
    )
    appearance = np.argsort(first)
    rank = np.empty_like(appearance)
    rank[appearance] = np.arange(len(appearance))
    order = np.argsort(rank[inverse], kind="stable")
    if not np.array_equal(order, np.arange(len(order))):
        for start in range(0, matrix.shape[1], _COLUMNS_AT_A_TIME):
            columns = slice(start, start + _COLUMNS_AT_A_TIME)
            matrix[:, columns] = matrix[order, columns]
        grades = grades[order]
    query_ptr = np.concatenate([[0], np.cumsum(counts[appearance])])
    return Split(matrix, grades, query_ptr, queries[first[appearance]].astype(np.str_))

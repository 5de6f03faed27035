"""TREC run and qrels files: export of rankings, and evaluation of anyone's run."""

import gzip
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from ultrbench.errors import UserError
from ultrbench.evaluation.lists import pad, padding_mask
from ultrbench.evaluation.metrics import compute_metrics
from ultrbench.files import decimal, replacing

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")
MAX_GRADE = 1000


def read_run(path: str | Path) -> dict[str, dict[str, float]]:
    """Read a run file: lines ``query Q0 document rank score tag``.

    Parameters
    ----------
    path : path-like
        The file, UTF-8, also gzipped. The rank column is not used, as in trec_eval.

    Returns
    -------
    dict of str to dict of str to float
        Score by query and document, in the order of the file.

    Raises
    ------
    UserError
        With file:line, for a line of other form, a score that is not a number (NaN included), or
        a document that a query ranks twice.
    """
    return _read(path, "query Q0 document rank score tag", 6, 4, decimal)


def read_qrels(path: str | Path) -> dict[str, dict[str, int]]:
    """Read a qrels file: lines ``query 0 document grade``.

    Parameters
    ----------
    path : path-like
        The file, UTF-8, also gzipped. Grades below 0 (junk, in some TREC tracks) are read as 0.

    Returns
    -------
    dict of str to dict of str to int
        Grade by query and document, in the order of the file.

    Raises
    ------
    UserError
        With file:line, for a line of other form, a grade that is no whole number up to 1000, or a
        document that a query judges twice.
    """
    return _read(path, "query 0 document grade", 4, 3, _grade)


def _grade(text: str) -> int:
    decimal(text)
    grade = int(text)
    if grade > MAX_GRADE:
        raise OverflowError
    return max(grade, 0)


def _read(
    path: str | Path, form: str, columns: int, value_at: int, value_of: Callable[[str], T]
) -> dict[str, dict[str, T]]:
    table: dict[str, dict[str, T]] = {}
    try:
        opened = gzip.open if Path(path).suffix == ".gz" else open
        with opened(path, "rt", encoding="utf-8-sig") as lines:
            for number, line in enumerate(lines, start=1):
                parts = line.split()
                if not parts:
                    continue
                if len(parts) != columns:
                    raise UserError(
                        f"{path}:{number}: {len(parts)} columns; a line has {columns}: {form}."
                        + (" Are run and qrels swapped?" if len(parts) in (4, 6) else "")
                    )
                query, document = parts[0], parts[2]
                try:
                    value = value_of(parts[value_at])
                except ValueError:
                    value = None
                except OverflowError:
                    raise UserError(
                        f"{path}:{number}: query {query}, document {document}: the grade"
                        f" {parts[value_at]:.20} is above {MAX_GRADE}, and 2^grade no number any"
                        " more; give grades on a smaller scale."
                    ) from None
                if value is None or value != value:
                    raise UserError(
                        f"{path}:{number}: query {query}, document {document}: "
                        f"{parts[value_at]!r} is not a number; a line has: {form}."
                    )
                of_query = table.setdefault(query, {})
                if document in of_query:
                    raise UserError(
                        f"{path}:{number}: query {query} has document {document} a second time."
                    )
                of_query[document] = value
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise UserError(f"{path} is not a whole gzip file: {error}.") from None
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise UserError(f"{path} is not a text file in UTF-8.") from None
    if not table:
        raise UserError(f"{path} is empty; a line has: {form}.")
    return table


def evaluate_run(
    run: dict[str, dict[str, float]],
    qrels: dict[str, dict[str, int]],
    names: Sequence[str],
    *,
    ymax: int | None = None,
    queries: str = "equal",
) -> "pd.DataFrame":
    """Return metrics of a run, a row a query.

    Conventions, those of trec_eval where it has one: documents are ranked by descending score,
    ties by descending document name (as text); a document without a judgement has grade 0; the
    ideal ranking and the number of relevant documents are those of the qrels.

    Parameters
    ----------
    run, qrels
        As `read_run` and `read_qrels` return them.
    names : sequence of str
        Metrics, as in `ultrbench.evaluation.metrics.parse_metric`.
    ymax : int, optional
        Top grade of ERR; default the highest grade of the qrels.
    queries : {"equal", "judged", "common"}
        Whether run and qrels must have the same queries; or all judged queries count, with 0.0
        where the run lacks one (trec_eval -c); or those in both (trec_eval's default).

    Returns
    -------
    pandas.DataFrame
        Index query, in the order of the qrels; columns by canonical name.

    Raises
    ------
    UserError
        Where the queries differ and `queries` is "equal", or none are left, or a grade is above
        `ymax`.

    Examples
    --------
    >>> run = {"q": {"a": 2.0, "b": 1.0, "c": 1.0}}
    >>> evaluate_run(run, {"q": {"b": 1, "d": 1}}, ["RR", "R@3"])  # c before b, d never
                 RR  R@3
    query
    q      0.333333  0.5
    """
    import pandas as pd

    unjudged, missing = run.keys() - qrels.keys(), qrels.keys() - run.keys()
    if queries == "equal" and (unjudged or missing):
        raise UserError(
            f"Run and qrels have different queries: {len(unjudged)} of the run are not judged "
            f"({_some(unjudged)}), {len(missing)} judged ones are not in the run "
            f"({_some(missing)}). Choose --queries common or --queries judged."
        )
    chosen = [query for query in qrels if queries == "judged" or query in run]
    if not chosen:
        raise UserError("Run and qrels have no query in common.")
    top = {query: max(qrels[query].values()) for query in chosen}
    worst = max(top, key=lambda query: top[query])
    if ymax is None:
        ymax = top[worst]
    if ymax > MAX_GRADE:
        raise UserError(f"The top grade ymax = {ymax} is above {MAX_GRADE}; 2^ymax is no number.")
    if top[worst] > ymax:
        raise UserError(f"Query {worst} has grade {top[worst]}, above the top grade ymax = {ymax}.")

    grades: list[int] = []
    lengths = []
    for query in chosen:
        judged = qrels[query]
        # Descending score, then descending name.
        ranked = sorted(((s, d) for d, s in run.get(query, {}).items()), reverse=True)
        grades += [judged.get(document, 0) for _, document in ranked]
        lengths.append(len(ranked))
    ptr = np.concatenate([[0], np.cumsum(lengths)])
    listed = pad(np.array(grades, dtype=np.int64), ptr, 0)
    judged_ptr = np.concatenate([[0], np.cumsum([len(qrels[query]) for query in chosen])])
    judged_grades = np.array([g for query in chosen for g in qrels[query].values()])
    in_order = np.tile(-np.arange(listed.shape[1], dtype=np.float64), (len(chosen), 1))
    values = compute_metrics(
        names, in_order, listed, padding_mask(ptr), ymax, judged=pad(judged_grades, judged_ptr, 0)
    )
    return pd.DataFrame(values, index=pd.Index(chosen, name="query"))


def _some(queries: set[str]) -> str:
    first = sorted(queries)[:3]
    return ", ".join(first) + (", ..." if len(queries) > 3 else "") if first else "none"


def document_names(query_ids: np.ndarray, query_ptr: np.ndarray) -> np.ndarray:
    """Name documents that have no name of their own by query and place in it, from 0.

    Examples
    --------
    >>> document_names(np.array(["7", "9"]), np.array([0, 2, 3])).tolist()
    ['7-0', '7-1', '9-0']
    """
    lengths = np.diff(query_ptr)
    place = np.arange(query_ptr[-1]) - np.repeat(query_ptr[:-1], lengths)
    names = [f"{q}-{i}" for q, i in zip(np.repeat(query_ids, lengths), place, strict=True)]
    return np.array(names, dtype=np.str_)


def write_run(
    path: str | Path,
    scores: np.ndarray,
    query_ptr: np.ndarray,
    query_ids: np.ndarray,
    documents: np.ndarray,
    tag: str = "ultrbench",
) -> None:
    """Write a run file whose scores fall strictly with the rank.

    trec_eval orders tied scores by document name and holds scores in 32 bits; the written score
    of rank r in a list of n is n - r + 1, so that every tool sees the same order.

    Parameters
    ----------
    path : path-like
        File to write, atomically.
    scores : numpy.ndarray
        float ``[documents]``; ranks are by descending score, ties in document order.
    query_ptr : numpy.ndarray
        int ``[queries + 1]``.
    query_ids : numpy.ndarray
        text ``[queries]``.
    documents : numpy.ndarray
        text ``[documents]``, names such as `document_names` makes.
    tag : str
        Name of the run, without blanks.
    """
    scores = np.asarray(scores, np.float64)
    if np.isnan(scores).any():
        row = int(np.flatnonzero(np.isnan(scores))[0])
        query = query_ids[np.searchsorted(query_ptr, row, side="right") - 1]
        raise UserError(f"A document of query {query} has the score NaN; the run is not written.")
    with replacing(path) as half, half.open("w", encoding="utf-8", newline="\n") as out:
        for query, start, stop in zip(query_ids, query_ptr[:-1], query_ptr[1:], strict=True):
            order = start + np.argsort(-scores[start:stop], kind="stable")
            for rank, name in enumerate(documents[order], start=1):
                out.write(f"{query} Q0 {name} {rank} {len(order) - rank + 1} {tag}\n")


def write_qrels(
    path: str | Path,
    grades: np.ndarray,
    query_ptr: np.ndarray,
    query_ids: np.ndarray,
    documents: np.ndarray,
) -> None:
    """Write a qrels file of all documents, grade 0 included.

    Parameters
    ----------
    path : path-like
        File to write, atomically.
    grades : numpy.ndarray
        int ``[documents]``.
    query_ptr, query_ids, documents
        As in `write_run`.
    """
    with replacing(path) as half, half.open("w", encoding="utf-8", newline="\n") as out:
        query_of = np.repeat(query_ids, np.diff(query_ptr))
        for query, name, grade in zip(query_of, documents, grades, strict=True):
            out.write(f"{query} 0 {name} {int(grade)}\n")

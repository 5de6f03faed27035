"""A click log as a product of its own: data, displayed lists, clicks and truth in one folder."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ultrbench.datasets.split import SPLITS, Split, read_split
from ultrbench.errors import UserError
from ultrbench.files import replacing, sha256_of, write_arrays, write_json, write_text
from ultrbench.simulation.log import log_files, read_rounds, write_log
from ultrbench.simulation.truth import is_by_position, read_truth, read_truth_columns, write_truth
from ultrbench.stages.trec import export_qrels

ROWS_AT_A_TIME = 100_000
FILES = {
    "{split}.lists.parquet": (
        "A row a displayed document.",
        {
            "list_id": "displayed list",
            "round": "logging round, from 0",
            "randomized": "the order was drawn uniformly at random",
            "query": "query index of the split, from 0",
            "context": "kind of session, 0 unless the click model has several",
            "position": "from 1",
            "document": "document row of the split, from 0",
            "policy_score": "score by which the list was ordered; NaN where none was logged",
        },
    ),
    "{split}.clicks.parquet": (
        "A row a group of equal sessions of a list.",
        {
            "list_id": "displayed list",
            "mask": "bit k - 1 is set where position k was clicked; 0 is a session without a click",
            "count": "sessions with these clicks",
        },
    ),
    "{split}.documents.parquet": (
        "A row a document, in the order of the document rows.",
        {
            "query": "query index of the split",
            "query_id": "query as named in the source",
            "grade": "relevance grade: for evaluation, never for learning from clicks",
            "feature_1, ...": "float32; NaN beyond float32",
        },
    ),
    "{split}.log.npz": (
        "The log once more, as padded arrays; a row a displayed list.",
        {
            "documents": "int64 [lists, positions], document rows in displayed order; -1 pads",
            "queries": "int64 [lists]",
            "clicks": "int64 [lists, positions], clicks of all sessions",
            "sessions": "int64 [lists], sessions: the impressions of each position",
            "policy_scores": "float64 [lists, positions]",
            "rounds, randomized, contexts": "[lists], as in the table",
        },
    ),
    "{split}.features.npy": ("float32 [documents, features].", {}),
    "{split}.lists.npz": (
        "Grades and queries.",
        {
            "grades": "uint8 [documents]",
            "query_ptr": "int64 [queries + 1]; query q has the rows query_ptr[q]:query_ptr[q + 1]",
            "query_ids": "text [queries]",
        },
    ),
    "candidates.npz": (
        "What the logging policy lets through, by split.",
        {
            "{split}_queries": "int64 [queries]; training queries of the policy are not logged",
            "{split}_documents": "int64 [queries, N], by descending score; -1 pads",
            "{split}_scores": "float64 [queries, N]",
            "test_all_scores": "float64 [test documents]",
            "binned_sha256": "text [2], of the policy's .bin files, which are not exported",
        },
    ),
    "truth.csv": (
        "The simulator's propensities, to compare with and not to learn from.",
        {
            "position": "from 1",
            "theta": "probability of examination",
            "by_position": "whether examination is a function of position alone",
            "alpha, beta, continuation": "further parameters, where the click model has them",
        },
    ),
    "qrels.txt": ("Grades of the test documents, named {query_id}-{place in it, from 0}.", {}),
    "dataset.json": ("Sizes and checksums of the data set.", {}),
}


def export_log(
    dataset: Path, candidates: Path, rounds: Sequence[Path], out: Path, *, about: dict[str, Any]
) -> None:
    """Write a click log with all that belongs to it into a folder that any framework reads.

    The folder is a data set and a click log for `python -m ultrbench` as well.

    Parameters
    ----------
    dataset, candidates : pathlib.Path
        Outputs of the stages before.
    rounds : sequence of pathlib.Path
        Folders of logging rounds, in their order; rounds after the first append their lists.
    out : pathlib.Path
        Folder to fill: the files of `FILES`, ``export.json`` and ``README.md``, which describe
        them, and ``SHA256SUMS``. Where test queries were not logged they have no lists and clicks.
    about : dict
        Where the log is from, how it was made, and its licence.
    """
    out.mkdir(parents=True, exist_ok=True)
    names = [f"{s}.{kind}" for s in SPLITS for kind in ("features.npy", "lists.npz")]
    for name in ("dataset.json", *names):
        _copy(dataset / name, out / name)
    _copy(candidates, out / "candidates.npz")
    truths = [folder / "truth.csv" for folder in rounds]
    truth = read_truth(truths)
    write_truth(
        out / "truth.csv",
        np.empty(0) if truth is None else truth,
        by_position=is_by_position(truths),
        **read_truth_columns(truths),
    )
    sizes = {}
    for split in SPLITS:
        _write_documents(out / f"{split}.documents.parquet", read_split(dataset, split))
        files = [path for folder in rounds for path in log_files(folder, split)]
        there = [path for path in files if path.exists()]
        if not there and split == "test":
            continue
        if there != files:
            lost = next(path for path in files if path not in there)
            raise UserError(f"{lost} is not there, and belongs to the log; run snakemake first")
        log = read_rounds(rounds, split)
        if not len(log.queries):
            continue
        sizes[split] = {"lists": len(log.queries), "sessions": int(log.sessions.sum())}
        write_log(log, *log_files(out, split))
        write_arrays(
            out / f"{split}.log.npz",
            {
                "documents": log.documents,
                "queries": log.queries,
                "clicks": log.clicks,
                "sessions": log.sessions,
                "policy_scores": log.scores,
                "rounds": log.rounds,
                "randomized": log.randomized,
                "contexts": log.contexts,
            },
        )
    export_qrels(dataset, out / "qrels.txt")
    contents = {
        name: {"about": text, "columns": columns} for name, (text, columns) in FILES.items()
    }
    write_json(out / "export.json", about | {"logged": sizes, "files": contents})
    write_text(out / "README.md", _readme(about | {"logged": sizes}))
    sums = [f"{sha256_of(path)}  {path.name}\n" for path in sorted(out.iterdir())]
    write_text(out / "SHA256SUMS", "".join(sums))


def _copy(source: Path, target: Path) -> None:
    with replacing(target) as half:
        shutil.copyfile(source, half)


def _write_documents(path: Path, split: Split) -> None:
    """Write the documents of a split, some rows at a time."""
    width = split.features.shape[1]
    features = [f"feature_{number}" for number in range(1, width + 1)]
    schema = pa.schema(
        [("query", pa.int64()), ("query_id", pa.string()), ("grade", pa.uint8())]
        + [(name, pa.float32()) for name in features]
    )
    queries = split.query_of_row
    with replacing(path) as half, pq.ParquetWriter(half, schema, compression="zstd") as writer:
        for start in range(0, len(queries), ROWS_AT_A_TIME):
            rows = slice(start, start + ROWS_AT_A_TIME)
            block = np.asarray(split.features[rows])
            columns = [queries[rows], split.query_ids[queries[rows]], split.grades[rows]]
            columns += [np.ascontiguousarray(block[:, k]) for k in range(width)]
            arrays = [pa.array(c, kind) for c, kind in zip(columns, schema.types, strict=True)]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))


def _readme(about: dict[str, Any]) -> str:
    lines = [
        f"# Click log: {about['dataset']}, {about['policy']}, {about['setting']},"
        f" {about['track']}, seed {about['seed']}",
        "",
        about["licence"],
        "",
        "How it was made stands in `export.json`; `sha256sum -c SHA256SUMS` checks the files. Learn"
        " from the splits `train` and `vali`; clicks of `test` are held out for evaluation. No file"
        " holds a pickle: `numpy.load(..., allow_pickle=False)` reads all arrays.",
        "",
    ]
    for split, size in about["logged"].items():
        lines.append(f"- {split}: {size['lists']:,} lists, {size['sessions']:,} sessions")
    for name, (text, columns) in FILES.items():
        lines += ["", f"## `{name}`", "", text, ""]
        if columns:
            lines += ["| name | meaning |", "|---|---|"]
            lines += [f"| `{column}` | {meaning} |" for column, meaning in columns.items()]
    return "\n".join(lines).rstrip() + "\n"

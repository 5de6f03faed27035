"""TREC run and qrels files of the rankers, to check the numbers with other tools."""

from collections.abc import Mapping
from pathlib import Path

from ultrbench.datasets.split import read_split
from ultrbench.evaluation.trec import document_names, write_qrels, write_run
from ultrbench.files import read_arrays


def export_qrels(dataset: Path, qrels: Path) -> None:
    """Write the grades of all test documents, named by query and place in it.

    Parameters
    ----------
    dataset : pathlib.Path
        Folder of the prepared data set.
    qrels : pathlib.Path
        File to write.
    """
    test = read_split(dataset, "test")
    names = document_names(test.query_ids, test.query_ptr)
    write_qrels(qrels, test.grades, test.query_ptr, test.query_ids, names)


def export_runs(dataset: Path, runs: Mapping[tuple[str, Path, str], Path]) -> None:
    """Write the ranking of all test documents by some scores, as full candidates are evaluated.

    Parameters
    ----------
    dataset : pathlib.Path
        Folder of the prepared data set.
    runs : mapping of (str, pathlib.Path, str) to pathlib.Path
        File to write by the tag of the run, file of scores, and the array's name in it.
    """
    test = read_split(dataset, "test")
    names = document_names(test.query_ids, test.query_ptr)
    for (tag, scores, array), path in runs.items():
        write_run(path, read_arrays(scores)[array], test.query_ptr, test.query_ids, names, tag)

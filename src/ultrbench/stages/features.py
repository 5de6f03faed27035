"""The features of the candidates, binned once by stage `policies` for every fit that follows."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from ultrbench.datasets.split import hide_features, read_split
from ultrbench.errors import UserError
from ultrbench.files import read_arrays, sha256_of
from ultrbench.ranking.binned import BinnedFeatures, read_binned, write_binned
from ultrbench.stages.job import import_lightgbm

BINNED = ("train", "vali")


def binned_files(candidates: Path) -> list[Path]:
    """Return where the bins of a policy's candidates are.

    Examples
    --------
    >>> [file.name for file in binned_files(Path("seed1.npz"))]
    ['seed1.train.bin', 'seed1.vali.bin']
    """
    return [candidates.with_suffix(f".{split}.bin") for split in BINNED]


def _parts(
    dataset: Path, documents: Mapping[str, np.ndarray]
) -> list[tuple[np.ndarray, np.ndarray]]:
    lists = [documents[f"{split}_documents"] for split in BINNED]
    return [
        (read_split(dataset, split).features, np.sort(shown[shown >= 0]))
        for split, shown in zip(BINNED, lists, strict=True)
    ]


def bin_candidates(
    dataset: Path, candidates: Path, documents: Mapping[str, np.ndarray], seed: int
) -> np.ndarray:
    """Bin the features of a policy's training and validation candidates.

    Parameters
    ----------
    dataset, candidates : pathlib.Path
        Folder of the data set, and the ``.npz`` of the policy; `binned_files` are written beside.
    documents : mapping of str to numpy.ndarray
        What is to be in the ``.npz``.
    seed : int
        Replicate seed.

    Returns
    -------
    numpy.ndarray
        text ``[files]``, their SHA-256, which belongs into the ``.npz`` as ``binned_sha256``:
        LightGBM takes bins for good whatever is in them.
    """
    train, vali = _parts(dataset, documents)
    train_file, vali_file = binned_files(candidates)
    write_binned(train_file, vali_file, train, vali, seed)
    return np.array([sha256_of(file) for file in (train_file, vali_file)])


def candidate_features(
    dataset: Path, candidates: Path | None, *, hidden_features: float, seed: int
) -> tuple[np.ndarray | BinnedFeatures, np.ndarray | BinnedFeatures]:
    """Return the features of the training and of the validation split, with the bins of a policy.

    Parameters
    ----------
    dataset, seed
        As in `bin_candidates`.
    candidates : pathlib.Path or None
        As in `bin_candidates`. Where no bins are beside it, as in an export, each fit makes its
        own.
    hidden_features : float
        Share of the features to hide, which bins cannot.

    Raises
    ------
    UserError
        Where the bins are not those that were written with the candidates.
    """
    files = binned_files(candidates) if candidates else []
    if hidden_features or not candidates or not any(file.exists() for file in files):
        matrix, validation = (read_split(dataset, split).features for split in BINNED)
        return hide_features(matrix, hidden_features, seed), validation
    documents = read_arrays(candidates)
    for file, noted in zip(files, documents.get("binned_sha256", ["", ""]), strict=True):
        if not file.exists() or sha256_of(file) != noted:
            raise UserError(
                f"{file}: these are not the binned features that were written with {candidates};"
                " make the candidates again, or delete them with their bins (.bin) where"
                " snakemake makes them"
            )
    train, vali = _parts(dataset, documents)
    train_file, vali_file = files
    import_lightgbm()
    return read_binned(train_file, vali_file, train, vali)

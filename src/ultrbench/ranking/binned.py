"""Features binned once for many fits, as LightGBM's own dataset in memory and on disk."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ultrbench.errors import UserError
from ultrbench.files import replacing
from ultrbench.ranking.model import BASE_PARAMETERS, refuse_blank

if TYPE_CHECKING:
    import lightgbm as lgb


@dataclass(frozen=True)
class BinnedFeatures:
    """Features of a split, some documents of which are binned.

    Indexing returns rows of `matrix`, so that it serves wherever a matrix does.

    Attributes
    ----------
    matrix : numpy.ndarray
        float32 ``[documents, features]``, all of the split.
    rows : numpy.ndarray
        int64, the documents that are binned, ascending.
    data : lightgbm.Dataset
        The bins of `rows`, constructed.
    """

    matrix: np.ndarray
    rows: np.ndarray
    data: "lgb.Dataset"

    def __getitem__(self, rows: Any) -> np.ndarray:
        return self.matrix[rows]


def bin_documents(
    features: np.ndarray | BinnedFeatures,
    rows: np.ndarray,
    parameters: dict[str, Any],
    reference: "lgb.Dataset | None" = None,
) -> "lgb.Dataset":
    """Return the bins of some documents, those that are there already where that is possible.

    Binning is a quarter of the cost of a hundred trees.

    Parameters
    ----------
    features : numpy.ndarray or BinnedFeatures
        Of the whole split.
    rows : numpy.ndarray
        int64, the documents, ascending. Bins that are there are used for a subset of them; other
        documents are binned afresh.
    parameters : dict
        Of LightGBM.
    reference : lightgbm.Dataset, optional
        For validation: whose bins to use.

    Returns
    -------
    lightgbm.Dataset
        Constructed.

    Raises
    ------
    UserError
        When every feature of the documents to train on is 0.

    Examples
    --------
    >>> matrix = np.arange(8.0, dtype=np.float32)[:, None]
    >>> data = bin_documents(matrix, np.arange(8), BASE_PARAMETERS)
    >>> binned = BinnedFeatures(matrix, np.arange(8), data)
    >>> bin_documents(binned, np.array([1, 5]), BASE_PARAMETERS).num_data()
    2
    """
    import lightgbm as lgb

    if isinstance(features, BinnedFeatures):
        aligned = reference is None or features.data.get_ref_chain() & reference.get_ref_chain()
        if aligned and np.array_equal(rows, features.rows):
            return features.data
        if aligned and np.isin(rows, features.rows).all():
            part = np.searchsorted(features.rows, rows)
            return features.data.subset(part.tolist(), params=parameters).construct()
    matrix = np.ascontiguousarray(features[rows])
    if reference is None:
        refuse_blank(matrix)
    return lgb.Dataset(matrix, params=parameters, reference=reference).construct()


def write_binned(
    train_file: Path,
    vali_file: Path,
    train: tuple[np.ndarray, np.ndarray],
    vali: tuple[np.ndarray, np.ndarray],
    seed: int,
) -> None:
    """Bin documents of the training split, and those of the validation split into the same bins.

    Parameters
    ----------
    train_file, vali_file : pathlib.Path
        ``.bin`` to write, in LightGBM's binary form.
    train, vali : tuple of numpy.ndarray
        Features of the split, float32 ``[documents, features]``, and the rows to bin, int64,
        ascending.
    seed : int
        Replicate seed.

    Raises
    ------
    UserError
        When every feature of the documents to train on is 0, or the disk takes no more.

    Examples
    --------
    >>> import tempfile
    >>> folder, matrix = Path(tempfile.mkdtemp()), np.arange(8, dtype=np.float32)[:, None]
    >>> train, vali = (matrix, np.arange(8)), (matrix, np.array([2, 3]))
    >>> write_binned(folder / "train.bin", folder / "vali.bin", train, vali, seed=1)
    >>> read = read_binned(folder / "train.bin", folder / "vali.bin", train, vali)
    >>> [part.data.num_data() for part in read]
    [8, 2]
    """
    import lightgbm as lgb

    parameters = BASE_PARAMETERS | {"seed": seed}
    data = bin_documents(*train, parameters)
    for file, part in (
        (train_file, data),
        (vali_file, bin_documents(*vali, parameters, reference=data)),
    ):
        with replacing(file) as half:
            half.touch()  # says why where it cannot be written; LightGBM wants a new file
            half.unlink()
            try:  # of a full disk LightGBM says nothing, until it reads
                part.save_binary(half)
                lgb.Dataset(half, params=parameters).construct()
            except lgb.basic.LightGBMError:
                raise UserError(
                    f"{file}: the disk took no more; make room or grant access, and start again"
                ) from None


def read_binned(
    train_file: Path,
    vali_file: Path,
    train: tuple[np.ndarray, np.ndarray],
    vali: tuple[np.ndarray, np.ndarray],
) -> tuple[BinnedFeatures, BinnedFeatures]:
    """Read what `write_binned` wrote of the same documents.

    Parameters
    ----------
    train_file, vali_file, train, vali
        As in `write_binned`, whose example reads it back.

    Returns
    -------
    tuple of BinnedFeatures
        Of the training and of the validation split.

    Raises
    ------
    UserError
        When LightGBM cannot read a file.
    """
    import lightgbm as lgb

    parts: list[BinnedFeatures] = []
    for file, (matrix, rows) in ((train_file, train), (vali_file, vali)):
        reference = parts[0].data if parts else None
        try:
            data = lgb.Dataset(file, params=BASE_PARAMETERS, reference=reference).construct()
        except lgb.basic.LightGBMError as error:
            raise UserError(
                f"{file}: LightGBM {lgb.__version__} cannot read it ({error}); delete it, and the"
                " next run bins the features again"
            ) from error
        if data.num_data() != len(rows):
            raise UserError(
                f"{file}: {data.num_data()} documents instead of {len(rows)}; delete it, and the"
                " next run bins the features again"
            )
        parts.append(BinnedFeatures(matrix, rows, data))
    return parts[0], parts[1]

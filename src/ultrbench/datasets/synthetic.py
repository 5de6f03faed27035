"""Synthetic LETOR-like data, version 1: frozen, so that a verdict on it can be repeated.

A document of a query has hidden factors (text matches, document quality). Its grade is a noisy,
non-linear function of them; a feature shows one factor through noise and a monotone transform, on
a scale of its own. Every query draws from a stream of its own, so that nothing about it depends on
how many queries there are or in what pieces they are written.

The constants were tuned once, on full lists and true grades, before any method for biased clicks
ran on the data. Verdicts on synthetic data are illustrations.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ultrbench.datasets.split import split_files
from ultrbench.files import replacing, write_arrays
from ultrbench.seeding import stream

VERSION = 1
YMAX = 4

_LENGTH_SIGMA = 0.5
_LENGTH_RANGE = (5, 1000)

_FACTORS = 8
# Factors 0-3 are matches of text fields, and correlate; 4-7 describe the document.
_MATCHES = 4
_MATCH_CORRELATION = 0.3
# Features alternate between the factors, the kind of query and pure noise.
_SOURCES = _FACTORS + 2
_QUERY_KIND = _FACTORS
_PURE_NOISE = _FACTORS + 1
_SHAPES = 5
_CLEAR_FEATURES = 2 * _SOURCES
_CLEAR_LOADING, _DIM_LOADING = 0.95, 0.7

_QUERY_SHIFT = 0.35
_NOISE = 0.55
_THRESHOLDS = np.array([0.75, 1.55, 2.35, 3.0])


def list_lengths(seed: int, split: str, queries: int, documents: float) -> np.ndarray:
    """Draw the number of documents of each query.

    Parameters
    ----------
    seed : int
        Seed of the data set.
    split : str
        ``train``, ``vali`` or ``test``.
    queries : int
        How many queries.
    documents : float
        Mean of the log-normal number of documents, before it is cut to 5..1000.

    Returns
    -------
    numpy.ndarray
        int64 ``[queries]``; the first numbers stay the same when `queries` grows.

    Examples
    --------
    >>> bool((list_lengths(1, "test", 3, 30.0) == list_lengths(1, "test", 9, 30.0)[:3]).all())
    True
    """
    rng = stream(seed, "synthetic", VERSION, split, "lengths")
    drawn = rng.lognormal(np.log(documents) - _LENGTH_SIGMA**2 / 2, _LENGTH_SIGMA, queries)
    return np.clip(np.rint(drawn), *_LENGTH_RANGE).astype(np.int64)


def draw_query(
    seed: int, split: str, query: int, documents: int, features: int
) -> tuple[np.ndarray, np.ndarray]:
    """Draw the documents of one query.

    Parameters
    ----------
    seed, split : int, str
        As in `list_lengths`.
    query : int
        Index of the query in its split, from 0.
    documents, features : int
        Shape of the query.

    Returns
    -------
    features : numpy.ndarray
        float32 ``[documents, features]``.
    grades : numpy.ndarray
        uint8 ``[documents]``, 0..4.

    Examples
    --------
    >>> features, grades = draw_query(1, "test", 0, documents=7, features=12)
    >>> features.shape, grades.shape
    ((7, 12), (7,))
    """
    rng = stream(seed, "synthetic", VERSION, split, query)
    kind, shift = rng.standard_normal(2)
    z = rng.standard_normal((documents, _FACTORS))
    common = rng.standard_normal((documents, 1))
    z[:, :_MATCHES] *= np.sqrt(1 - _MATCH_CORRELATION)
    z[:, :_MATCHES] += np.sqrt(_MATCH_CORRELATION) * common

    noise = _QUERY_SHIFT * shift + _NOISE * rng.standard_normal(documents)
    grades = np.searchsorted(_THRESHOLDS, _relevance(z, kind) + noise)

    column = np.arange(features)
    source = column % _SOURCES
    loading = np.where(column < _CLEAR_FEATURES, _CLEAR_LOADING, _DIM_LOADING)
    loading[source == _PURE_NOISE] = 0.0
    sources = np.column_stack([z, np.full(documents, kind), np.zeros(documents)])
    shown = loading * sources[:, source]
    shown += np.sqrt(1 - loading**2) * rng.standard_normal((documents, features))
    of_query = source == _QUERY_KIND
    shown[:, of_query] = shown[0, of_query]
    return _transform(shown).astype(np.float32), grades.astype(np.uint8)


def _relevance(z: np.ndarray, kind: float) -> np.ndarray:
    """The part of relevance that features can tell; a linear model sees its first line only."""
    return (
        (0.68 * z[:, 0] + 0.52 * z[:, 1] + 0.3 * z[:, 4] + 0.25 * z[:, 5])
        + 0.6 * np.maximum(z[:, 2], -0.5) * z[:, 6]
        - 0.4 * (z[:, 3] ** 2 - 1)
        + 0.5 * kind * z[:, 7]
    )


def _transform(shown: np.ndarray) -> np.ndarray:
    """Give each column its shape (the same five in turn for every source) and its scale."""
    column = np.arange(shown.shape[1])
    shape = (column // _SOURCES + column) % _SHAPES
    scale = 10.0 ** (column % 7 - 2)
    out = np.empty_like(shown)
    for number, transform in enumerate(
        (
            lambda u, s: s * u,
            lambda u, s: s * np.exp(1.5 * u + 2),
            lambda u, s: 1 / (1 + np.exp(-2 * u)),
            lambda u, s: np.floor(np.exp(0.8 * u + 0.5)),
            lambda u, s: (u > 0) + 1.0 * (u > 1),
        )
    ):
        own = shape == number
        out[:, own] = transform(shown[:, own], scale[own])
    return out


def write_synthetic(entry: Mapping[str, Any], split: str, folder: str | Path) -> None:
    """Write one split of a synthetic data set, query by query: memory does not grow with its size.

    Parameters
    ----------
    entry : mapping
        Registry entry with ``seed``, ``queries`` (a number a split), ``documents`` (the mean of a
        query) and ``features``.
    split : str
        ``train``, ``vali`` or ``test``.
    folder : path-like
        Where the two files of `ultrbench.datasets.split.split_files` go.

    Examples
    --------
    >>> import tempfile
    >>> from ultrbench.datasets.split import read_split
    >>> folder = tempfile.mkdtemp()
    >>> entry = {"seed": 1, "queries": {"test": 3}, "documents": 8, "features": 10}
    >>> write_synthetic(entry, "test", folder)
    >>> read_split(folder, "test").features.shape[1]
    10
    """
    seed, queries, features = entry["seed"], entry["queries"][split], entry["features"]
    query_ptr = np.zeros(queries + 1, dtype=np.int64)
    np.cumsum(list_lengths(seed, split, queries, entry["documents"]), out=query_ptr[1:])
    grades = np.empty(query_ptr[-1], dtype=np.uint8)
    features_path, lists_path = split_files(folder, split)
    with replacing(features_path) as half:
        shape = (int(query_ptr[-1]), features)
        matrix = np.lib.format.open_memmap(half, mode="w+", dtype=np.float32, shape=shape)
        for query in range(queries):
            start, stop = query_ptr[query : query + 2]
            matrix[start:stop], grades[start:stop] = draw_query(
                seed, split, query, int(stop - start), features
            )
        matrix.flush()
    names = np.array([f"{split}-{query + 1}" for query in range(queries)])
    write_arrays(lists_path, {"grades": grades, "query_ptr": query_ptr, "query_ids": names})

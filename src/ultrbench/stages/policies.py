"""Stage `policies`: train a logging policy and truncate every query to its candidates."""

from pathlib import Path
from typing import Any

import numpy as np

from ultrbench.datasets.split import SPLITS, read_split
from ultrbench.files import read_json, write_arrays, write_json
from ultrbench.simulation.policies import score_documents, split_queries, truncate
from ultrbench.stages.features import bin_candidates
from ultrbench.stages.job import import_lightgbm


def train_policy(
    dataset: Path,
    candidates: Path,
    report: Path,
    *,
    policy: dict[str, Any],
    policy_queries: dict[str, Any],
    list_size: int,
    seed: int,
) -> None:
    """Score all documents by a logging policy; keep the top `list_size` of each query.

    Parameters
    ----------
    dataset : pathlib.Path
        Folder of the prepared data set.
    candidates : pathlib.Path
        ``.npz`` to write; for each split ``{split}_queries`` (logged queries, int64 [queries]),
        ``{split}_documents`` (rows by descending score, int64 [queries, list_size], -1 pads) and
        ``{split}_scores`` (float64, NaN pads), and ``test_all_scores`` (float64 [documents]).
        Beside it ``.train.bin`` and ``.vali.bin``, the features of the candidates for LightGBM,
        whose checksums are its ``binned_sha256``.
    report : pathlib.Path
        ``.json`` to write: what the policy was trained on.
    policy, policy_queries, list_size, seed
        From the config; see ``config/README.md``.
    """
    import_lightgbm(policy["kind"])
    splits = {name: read_split(dataset, name) for name in SPLITS}
    ymax = read_json(dataset / "dataset.json")["ymax"]
    queries = split_queries(len(splits["train"].query_ids), **policy_queries, seed=seed)
    scores, sample = score_documents(policy, splits, queries.policy, ymax=ymax, seed=seed)
    arrays = {"test_all_scores": scores["test"]}
    for name, split in splits.items():
        logged = queries.logged if name == "train" else np.arange(len(split.query_ids))
        documents, top = truncate(split, scores[name], logged, list_size)
        arrays |= {
            f"{name}_queries": logged,
            f"{name}_documents": documents,
            f"{name}_scores": top,
        }
    arrays["binned_sha256"] = bin_candidates(dataset, candidates, arrays, seed)
    write_arrays(candidates, arrays)
    write_json(
        report,
        {
            "policy": policy,
            "queries_put_aside": 0 if policy_queries["mode"] == "shared" else len(queries.policy),
            "queries_logged": len(queries.logged),
            "queries_trained_on": splits["train"].query_ids[sample].tolist(),
        },
    )

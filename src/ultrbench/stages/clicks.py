"""Stage `clicks`: show the candidates and log what is clicked, or take in a log of one's own."""

from pathlib import Path
from typing import Any

import numpy as np

from ultrbench.datasets.split import Split, read_split
from ultrbench.errors import UserError
from ultrbench.files import read_arrays, read_json
from ultrbench.ranking.model import predict
from ultrbench.seeding import stream
from ultrbench.simulation import clicks
from ultrbench.simulation.display import order_by_score, shuffle
from ultrbench.simulation.external import read_external_log, read_external_truth
from ultrbench.simulation.log import ClickLog, concatenate, log_files, write_log
from ultrbench.simulation.truth import write_truth

LOGGED_SPLITS = ("train", "vali")


def _show(
    queries: np.ndarray,
    documents: np.ndarray,
    scores: np.ndarray,
    order: np.ndarray,
    *,
    round_: int,
    randomized: bool,
) -> ClickLog:
    """Put candidates in displayed order; the log has no sessions yet."""
    lists = len(order)
    none = np.empty(0, dtype=np.int64)
    shown = np.take_along_axis(documents, order, axis=1)
    score = (
        np.full(shown.shape, np.nan) if randomized else np.take_along_axis(scores, order, axis=1)
    )
    return ClickLog(
        shown,
        queries,
        score,
        np.full(lists, round_, dtype=np.uint8),
        np.full(lists, randomized),
        np.zeros(lists, dtype=np.uint8),
        none,
        none.astype(np.uint64),
        none,
    )


def _click(
    lists: ClickLog,
    sessions: np.ndarray,
    theta: np.ndarray,
    attraction: np.ndarray,
    rng: np.random.Generator,
    empty_sessions: str,
) -> ClickLog:
    probability = np.where(lists.shown, theta * attraction[lists.documents], 0.0)
    groups = clicks.simulate_sessions(sessions, probability, rng, empty_sessions=empty_sessions)
    return lists.with_clicks(*groups)


def _simulate_split(
    split: Split,
    candidates: tuple[np.ndarray, np.ndarray, np.ndarray],
    setting: dict[str, Any],
    *,
    sessions: int,
    ymax: int,
    log: str,
    name: str,
    round_: int,
    seed: int,
) -> tuple[ClickLog, np.ndarray]:
    queries, documents, scores = candidates
    theta = clicks.examination(
        documents.shape[1], eta=setting["eta"], values=setting["examination"]
    )
    attraction = clicks.attraction(split.grades, ymax, eps=setting["eps"])
    streams = (log, name, round_)
    randomized = round(setting["randomized_share"] * sessions) if log == "randomized" else 0
    # A popular query is popular in every round, and in the replica too.
    traffic = clicks.query_traffic(
        len(queries), setting["traffic_exponent"], stream(seed, "traffic", name)
    )
    rng = stream(seed, "sessions", *streams)
    counts = rng.multinomial(sessions - randomized, traffic)
    lists = _show(
        queries, documents, scores, order_by_score(documents, scores),
        round_=round_, randomized=False,
    )  # fmt: skip
    logs = [_click(lists, counts, theta, attraction, rng, setting["empty_sessions"])]
    if randomized:
        rng = stream(seed, "shuffle", *streams)
        each = setting["lists_per_query"]
        counts = rng.multinomial(
            rng.multinomial(randomized, traffic), np.full(each, 1 / each)
        ).ravel()
        repeated = (np.repeat(a, each, axis=0) for a in (queries, documents, scores))
        lists = _show(*repeated, shuffle(documents, each, rng), round_=round_, randomized=True)
        logs.append(_click(lists, counts, theta, attraction, rng, setting["empty_sessions"]))
    return concatenate(logs), theta


def simulate_clicks(
    dataset: Path,
    candidates: Path,
    out: Path,
    *,
    setting: dict[str, Any],
    log: str,
    round_: int,
    seed: int,
    ranker: tuple[Path, Path] | None = None,
) -> None:
    """Simulate one logging round on the training and validation queries.

    Parameters
    ----------
    dataset, candidates : pathlib.Path
        Outputs of the stages before.
    out : pathlib.Path
        Folder to write: ``{train,vali}.{lists,clicks}.parquet`` and ``truth.csv``.
    setting : dict
        Click model and sessions, from the config.
    log : {"initial", "randomized", "replica"}
        Which log of the setting; ``randomized`` shows a share of its sessions shuffled lists.
    round_ : int
        Logging round, from 0.
    seed : int
        Replicate seed.
    ranker : pair of pathlib.Path, optional
        Model text and report of the ranker of the round before, which displays this round with
        the trees of its first validation; the initial policy otherwise.
    """
    ymax = read_json(dataset / "dataset.json")["ymax"]
    arrays = read_arrays(candidates)
    per_query = setting["sessions"] / len(arrays["train_queries"])
    for name in LOGGED_SPLITS:
        split = read_split(dataset, name)
        queries, documents = arrays[f"{name}_queries"], arrays[f"{name}_documents"]
        scores = arrays[f"{name}_scores"]
        if ranker:
            model, report = ranker
            trees = next(iter(read_json(report)["trees"].values()))
            real = documents >= 0
            scores = np.full(documents.shape, np.nan)
            scores[real] = predict(model.read_text(), split.features[documents[real]], trees)
        simulated, theta = _simulate_split(
            split,
            (queries, documents, scores),
            setting,
            sessions=round(per_query * len(queries)),
            ymax=ymax,
            log=log,
            name=name,
            round_=round_,
            seed=seed,
        )
        write_log(simulated, *log_files(out, name))
    eps = setting["eps"]
    write_truth(out / "truth.csv", theta, alpha=theta * (1 - eps), beta=theta * eps)


def import_clicks(dataset: Path, source: Path, out: Path) -> None:
    """Check a click log of one's own and put it where a simulated round 0 would be.

    Parameters
    ----------
    dataset : pathlib.Path
        Folder of the prepared data set, whose rows and queries the log names.
    source : pathlib.Path
        Folder with ``train.lists.parquet`` and ``train.clicks.parquet``, and, as far as there
        are, ``vali.lists.parquet``, ``vali.clicks.parquet`` and ``truth.csv``.
    out : pathlib.Path
        As in `simulate_clicks`; what the source lacks is written empty.
    """
    logs = {
        name: read_external_log(
            *log_files(source, name), read_split(dataset, name), required=name == "train"
        )
        for name in LOGGED_SPLITS
    }
    truth = read_external_truth(source / "truth.csv")
    shown = logs["train"].positions
    if logs["vali"].positions > shown:
        raise UserError(
            f"{source}: the validation log shows {logs['vali'].positions} positions, the training"
            f" log {shown}; propensities are known for the latter only"
        )
    if 0 < len(truth) < shown:
        raise UserError(
            f"{source / 'truth.csv'}: it ends at position {len(truth)}, the log shows {shown}"
        )
    for name, log in logs.items():
        write_log(log, *log_files(out, name))
    write_truth(out / "truth.csv", truth)

"""Stage `clicks`: show the candidates and log what is clicked, or take in a log of one's own."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ultrbench.datasets.split import Split, read_split
from ultrbench.errors import UserError
from ultrbench.files import read_arrays, read_json
from ultrbench.own_code import read_only
from ultrbench.ranking.model import predict
from ultrbench.seeding import stream
from ultrbench.simulation import clicks
from ultrbench.simulation.behaviour import (
    Behaviour,
    find_click_model,
    mean_examination,
    refuse_wrong_behaviour,
)
from ultrbench.simulation.display import order_by_score, plackett_luce, shuffle
from ultrbench.simulation.external import read_external_log, read_external_truth
from ultrbench.simulation.log import ClickLog, concatenate, log_files, write_log
from ultrbench.simulation.truth import is_by_position, read_truth_columns, write_truth
from ultrbench.stages.job import import_lightgbm

LOGGED_SPLITS = ("train", "vali")


def _show(
    queries: np.ndarray,
    documents: np.ndarray,
    scores: np.ndarray,
    order: np.ndarray,
    *,
    contexts: int,
    round_: int,
    randomized: bool,
) -> ClickLog:
    """Put candidates in displayed order, in each context; the log has no sessions yet."""
    order = np.repeat(order, contexts, axis=0)
    lists = len(order)
    queries, documents, scores = (
        np.repeat(a, lists // len(queries), axis=0) for a in (queries, documents, scores)
    )
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
        np.tile(np.arange(contexts, dtype=np.uint8), lists // contexts),
        none,
        none.astype(np.uint64),
        none,
    )


def _behave(lists: ClickLog, attraction: np.ndarray, setting: dict[str, Any]) -> Behaviour:
    """Let the setting's click model say what users do on displayed lists."""
    kind, parameters = setting["click_model"]["kind"], dict(setting["click_model"])
    del parameters["kind"]
    users = find_click_model(kind)(
        np.where(lists.shown, attraction[lists.documents], 0.0),
        contexts=read_only(lists.contexts),
        eta=setting["eta"],
        examination=setting["examination"],
        **parameters,
    )
    refuse_wrong_behaviour(users, kind, lists.shown.shape)
    # Code of one's own may return other arrays, which numpy's generators and truth.csv do not take.
    return replace(
        users,
        attraction=np.where(lists.shown, np.asarray(users.attraction, dtype=np.float64), 0.0),
        examination=np.asarray(users.examination, dtype=np.float64),
        continuation=np.asarray(users.continuation, dtype=np.float64),
    )


def _truth(users: Sequence[Behaviour], log: ClickLog, sessions: np.ndarray) -> np.ndarray:
    """Theta, or the marginal probability of examination where theta alone does not say it all."""
    if users[0].by_position:
        return users[0].examination[0, :, 0]
    return mean_examination(np.concatenate([u.examined() for u in users]), log.shown, sessions)


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
) -> tuple[ClickLog, np.ndarray, Behaviour]:
    queries, documents, scores = candidates
    attraction = clicks.attraction(split.grades, ymax, eps=setting["eps"])
    contexts = len(setting["click_model"].get("etas", [setting["eta"]]))
    share = round(setting["randomized_share"] * sessions) if log == "randomized" else 0
    displays = {setting["display"]: sessions - share} | ({"shuffle": share} if share else {})

    # A popular query is popular in every round, and in the replica too.
    traffic = clicks.query_traffic(
        len(queries), setting["traffic_exponent"], stream(seed, "traffic", name)
    )

    logs, users, counts = [], [], []
    for display, total in displays.items():
        randomized = display == "shuffle"
        rng = stream(seed, "shuffle" if randomized else "sessions", log, name, round_)
        each = 1 if display == "policy" else setting["lists_per_query"]
        count = rng.multinomial(total, traffic)
        for parts in (each, contexts):
            count = rng.multinomial(count, np.full(parts, 1 / parts)).ravel()
        if display == "policy":
            order = order_by_score(documents, scores)
        elif randomized:
            order = shuffle(documents, each, rng)
        else:
            temperature = setting["temperature"]
            order = plackett_luce(documents, scores, each, rng, temperature=temperature)
        lists = _show(*candidates, order, contexts=contexts, round_=round_, randomized=randomized)
        users.append(_behave(lists, attraction, setting))
        groups = clicks.simulate_sessions(
            count, users[-1], rng, empty_sessions=setting["empty_sessions"]
        )
        logs.append(lists.with_clicks(*groups))
        counts.append(count)
    simulated = concatenate(logs)
    theta = _truth(users, simulated, np.concatenate(counts))
    return simulated, theta, users[0]


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
    splits: Sequence[str] = LOGGED_SPLITS,
) -> None:
    """Simulate one logging round.

    Parameters
    ----------
    dataset, candidates : pathlib.Path
        Outputs of the stages before.
    out : pathlib.Path
        Folder to write: ``{split}.{lists,clicks}.parquet`` and ``truth.csv``. Where
        examination is not a function of position alone, the truth is its mean over the training
        lists, weighted by the sessions drawn (before empty ones are dropped or drawn again).
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
    splits : sequence of str
        Whose queries are shown. Clicks on test queries are a held-out log: they serve
        counterfactual evaluation, and nothing learns from them.
    """
    ymax = read_json(dataset / "dataset.json")["ymax"]
    arrays = read_arrays(candidates)
    per_query = setting["sessions"] / len(arrays["train_queries"])
    for name in splits:
        split = read_split(dataset, name)
        queries, documents = arrays[f"{name}_queries"], arrays[f"{name}_documents"]
        scores = arrays[f"{name}_scores"]
        if ranker:
            import_lightgbm(setting["click_model"]["kind"])
            model, report = ranker
            trees = next(iter(read_json(report)["trees"].values()))
            real = documents >= 0
            scores = np.full(documents.shape, np.nan)
            scores[real] = predict(model.read_text(), split.features[documents[real]], trees)
        simulated, theta, users = _simulate_split(
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
        if name == "train":
            write_truth(out / "truth.csv", theta, by_position=users.by_position, **users.parameters)


def import_clicks(
    dataset: Path | None, source: Path, out: Path, *, later_rounds: bool = False
) -> None:
    """Check a click log of one's own and put it where a simulated round 0 would be.

    Parameters
    ----------
    dataset : pathlib.Path or None
        Folder of the prepared data set, whose rows and queries the log names; they are not looked
        up without one.
    source : pathlib.Path
        Folder with ``train.lists.parquet`` and ``train.clicks.parquet``, and, as far as there
        are, the same of ``vali`` and ``test``, and ``truth.csv``.
    out : pathlib.Path
        As in `simulate_clicks`; what the source lacks is written empty.
    later_rounds : bool
        Whether the log may be of a round after the first.
    """
    logs = {
        name: read_external_log(
            *log_files(source, name),
            read_split(dataset, name) if dataset else None,
            required=name == "train",
            later_rounds=later_rounds,
        )
        for name in (*LOGGED_SPLITS, "test")
    }
    truth = read_external_truth(source / "truth.csv")
    shown = logs["train"].positions
    for name, log in logs.items():
        if log.positions > shown:
            raise UserError(
                f"{source}: the log of {name} shows {log.positions} positions, that of train"
                f" {shown}; propensities are known for the latter only"
            )
    if 0 < len(truth) < shown:
        raise UserError(
            f"{source / 'truth.csv'}: it ends at position {len(truth)}, the log shows {shown}"
        )
    for name, log in logs.items():
        write_log(log, *log_files(out, name))
    paths = [source / "truth.csv"] if len(truth) else []
    write_truth(
        out / "truth.csv",
        truth,
        by_position=is_by_position(paths),
        **(read_truth_columns(paths) if paths else {}),
    )

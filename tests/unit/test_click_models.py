"""Every click model against its closed form, through the engine and through the stage."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from key_tables import SCHEMA
from scipy.special import expit, logit
from scipy.stats import chi2, chisquare
from toys import candidates, make_split

from ultrbench.configuration import read_config
from ultrbench.datasets.split import write_split
from ultrbench.errors import UserError
from ultrbench.files import write_arrays, write_json
from ultrbench.seeding import stream
from ultrbench.simulation import clicks
from ultrbench.simulation.behaviour import (
    CLICK_MODELS,
    Behaviour,
    find_click_model,
    mean_examination,
)
from ultrbench.simulation.click_models.ubm import EXAMINATION, examination_after
from ultrbench.simulation.display import plackett_luce
from ultrbench.simulation.external import read_external_truth
from ultrbench.simulation.log import log_files, read_log
from ultrbench.simulation.truth import (
    is_by_position,
    read_truth,
    read_truth_columns,
    write_truth,
)
from ultrbench.stages.clicks import import_clicks, simulate_clicks
from ultrbench.yaml_files import read_yaml

THETA = np.array([0.68, 0.61, 0.48, 0.34])
GAMMA = np.array([0.28, 0.1, 0.52, 0.16])
ETA = 1.5
MODELS = {
    "pbm": {},
    "ubm": {},
    "cascade": {},
    "dcm": {"continuation": [0.7, 0.5]},
    "trust": {"eps_plus": [0.98, 0.9, 0.8], "eps_minus": [0.6, 0.3, 0.2]},
    "contextual": {"etas": [0.5, 2.0]},
    "additive": {},
}


def independent(probability, mask):
    return np.prod([p if mask >> k & 1 else 1 - p for k, p in enumerate(probability)])


def ubm_mask(mask, gamma=GAMMA):
    chance, last = 1.0, 0
    for k in range(1, len(gamma) + 1):
        p = EXAMINATION[k - 1][k - last - 1] ** ETA * gamma[k - 1]
        clicked = mask >> (k - 1) & 1
        chance *= p if clicked else 1 - p
        last = k if clicked else last
    return chance


def dcm_mask(mask, on, gamma=GAMMA):
    clicked = [k for k in range(len(gamma)) if mask >> k & 1]
    if not clicked:
        return independent(gamma, 0)
    last = clicked[-1]
    reads_to_last = independent(gamma[: last + 1], mask) * np.prod([on[k] for k in clicked[:-1]])
    return reads_to_last * (1 - on[last] + on[last] * independent(gamma[last + 1 :], 0))


def closed_form(kind, mask, context=0):
    """P(mask) on one list, from the model's definition and nothing of the package's."""
    if kind == "ubm":
        return ubm_mask(mask)
    if kind == "cascade":
        return dcm_mask(mask, [0, 0, 0, 0])
    if kind == "dcm":
        return dcm_mask(mask, [0.7, 0.5, 0.5, 0.5])
    plus, minus = np.array([0.98, 0.9, 0.8, 0.8]), np.array([0.6, 0.3, 0.2, 0.2])
    probability = {
        "pbm": THETA**ETA * GAMMA,
        "trust": THETA**ETA * (plus * GAMMA + minus * (1 - GAMMA)),
        "contextual": THETA ** [0.5, 2.0][context] * GAMMA,
        "additive": expit(ETA * np.log(THETA / THETA[0]) + logit(THETA[0] ** ETA * GAMMA)),
    }
    return independent(probability[kind], mask)


def users_of(kind, gamma, contexts=None, eta=ETA, examination=tuple(THETA)):
    contexts = np.zeros(len(gamma), dtype=np.uint8) if contexts is None else contexts
    return find_click_model(kind)(
        gamma, contexts=contexts, eta=eta, examination=examination, **MODELS[kind]
    )


def drawn(kind, sessions, seed, context=0, empty="keep"):
    """Sessions by mask on the one list."""
    users = users_of(kind, GAMMA[None], np.array([context]))
    rng = np.random.default_rng(seed)
    groups = clicks.simulate_sessions(np.array([sessions]), users, rng, empty_sessions=empty)
    keys = groups[1].tolist()
    assert keys == sorted(set(keys)) and (groups[2] > 0).all()
    counts = np.zeros(16, dtype=int)
    counts[groups[1].astype(int)] = groups[2]
    return counts


def agree(counts, expected):
    possible = expected > 0
    assert not counts[~possible].any()
    assert 1e-3 < chisquare(counts[possible], expected[possible]).pvalue < 1 - 1e-3


@pytest.mark.parametrize("kind", CLICK_MODELS)
@pytest.mark.parametrize("context", [0, 1])
def test_masks_have_the_closed_form(kind, context):
    expected = np.array([closed_form(kind, mask, context) for mask in range(16)])
    assert expected.sum() == pytest.approx(1, abs=1e-12)
    agree(drawn(kind, 200_000, seed=context, context=context), 200_000 * expected)


@pytest.mark.parametrize("kind", CLICK_MODELS)
def test_resampled_masks_have_the_closed_form_given_a_click(kind):
    expected = np.array([closed_form(kind, mask) for mask in range(16)])
    given_click = np.append(0, expected[1:] / (1 - expected[0]))
    agree(drawn(kind, 100_000, seed=5, empty="resample"), 100_000 * given_click)


@pytest.mark.parametrize("kind", CLICK_MODELS)
def test_few_sessions_split_like_sessions_on_their_own(kind):
    """Three sessions on each of 20,000 lists: how many lists saw each mask exactly n times."""
    lists = 20_000
    users = users_of(kind, np.tile(GAMMA, (lists, 1)))
    rows, masks, counts = clicks.draw_masks(np.full(lists, 3), users, np.random.default_rng(6))
    table = np.zeros((lists, 16), dtype=int)
    table[rows, masks.astype(int)] = counts
    for mask in (0, 1, 4):
        p = closed_form(kind, mask)
        shares = np.array([(1 - p) ** 3, 3 * p * (1 - p) ** 2, 3 * p**2 * (1 - p), p**3])
        agree(np.bincount(table[:, mask], minlength=4), lists * shares)


@pytest.mark.parametrize("examination", [0.5, [0.5], np.full((1, 1), 0.5), np.full((4, 5), 0.5)])
def test_examination_of_any_shape_that_broadcasts_draws_the_same(examination):
    lists = np.tile(GAMMA, (50, 1))
    whole = Behaviour(lists, np.full((50, 4, 5), 0.5))
    part = Behaviour(lists, np.array(examination))
    drawn = [
        clicks.draw_masks(np.full(50, 9), users, np.random.default_rng(1))
        for users in (whole, part)
    ]
    for one, two in zip(*drawn, strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("kind", CLICK_MODELS)
def test_examination_times_attraction_is_the_click_rate_of_the_closed_form(kind):
    users = users_of(kind, GAMMA[None])
    rates = [sum(closed_form(kind, mask) for mask in range(16) if mask >> k & 1) for k in range(4)]
    np.testing.assert_allclose((users.examined() * users.attraction)[0], rates, rtol=1e-12)
    assert users.by_position == (kind in ("pbm", "trust"))


@pytest.mark.parametrize("kind", CLICK_MODELS)
def test_click_rates_at_63_positions(kind):
    """z-scores of all cells: their squares follow chi-square, and none is far out."""
    rng = np.random.default_rng(8)
    gamma = rng.uniform(0.02, 0.2, (3, 63))
    users = users_of(kind, gamma, np.array([0, 1, 1]), eta=0.3, examination=[0.9, 0.8, 0.7])
    sessions = np.array([4000, 3000, 0])
    rows, masks, counts = clicks.draw_masks(sessions, users, rng)
    bits = (masks[:, None] >> np.arange(63, dtype=np.uint64)) & np.uint64(1) == 1
    sums = np.array([counts[rows == row] @ bits[rows == row] for row in (0, 1)])
    p = (users.examined() * users.attraction)[:2]
    expected = sessions[:2, None] * p
    common = expected > 5  # the cascade hardly gets to the end
    z = ((sums - expected) / np.sqrt(expected * (1 - p)))[common]
    assert np.abs(z).max() < 4.5
    assert 1e-4 < chi2.sf((z**2).sum(), z.size) < 1 - 1e-4
    assert np.bincount(rows, counts, minlength=3).tolist() == sessions.tolist()


@pytest.mark.parametrize("kind", CLICK_MODELS)
def test_equal_streams_give_equal_sessions_and_their_number_costs_nothing(kind):
    one, two, other = (drawn(kind, 10**15, seed) for seed in (1, 1, 2))
    assert (one == two).all() and (one != other).any()
    assert one.sum() == 10**15


@pytest.mark.parametrize("kind", CLICK_MODELS)
@pytest.mark.parametrize("eta", [0, 100])
def test_extreme_severity_gives_probabilities(kind, eta):
    gamma = np.array([[1.0, 0.0, 1.0, 0.5]])
    users = users_of(kind, gamma, eta=eta, examination=[1, 1e-4])
    examined = users.examined()
    assert ((examined >= 0) & (examined <= 1)).all()
    clicks.draw_masks(np.array([100]), users, np.random.default_rng(0))


def test_ubm_reads_its_table_by_position_and_distance():
    table = examination_after(12)
    assert [table[2, last] for last in (0, 1, 2)] == [0.95, 0.62, 1.0]
    assert [table[9, last] for last in (0, 1, 9)] == [0.43, 0.12, 1.0]
    assert [table[11, last] for last in (0, 1, 2, 8, 11)] == [0.43, 0.12, 0.12, 0.96, 1.0]
    assert [len(row) for row in EXAMINATION] == list(range(1, 11))


def test_special_cases_coincide():
    gamma = np.random.default_rng(1).random((5, 6))
    keys = {"contexts": np.zeros(5, int), "eta": 1.5, "examination": [0.9, 0.5, 0.3]}

    def rates(kind, **own):
        users = find_click_model(kind)(gamma, **keys | own)
        return users.examined() * users.attraction

    pbm = rates("pbm")
    np.testing.assert_allclose(rates("trust", eps_plus=[1], eps_minus=[0]), pbm)
    np.testing.assert_allclose(rates("contextual", etas=[1.5]), pbm)
    np.testing.assert_allclose(rates("additive")[:, 0], pbm[:, 0])
    np.testing.assert_allclose(rates("dcm", continuation=[1]), gamma)
    np.testing.assert_allclose(rates("dcm", continuation=[0]), rates("cascade"))


def test_additive_clicks_add_up_in_the_logit():
    gamma = np.random.default_rng(2).uniform(0.1, 0.9, (4, 4))
    users = users_of("additive", gamma)
    logits = logit(users.examined() * users.attraction)
    position = np.log(THETA) * ETA
    relevance = logits - position
    np.testing.assert_allclose(
        relevance, logit(gamma * THETA[0] ** ETA) - ETA * np.log(THETA[0]), rtol=1e-12
    )


# Through the stage

QUERIES = 30
SIMULATION = {"sessions": 20_000, "methods": ["naive"]}


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A data set and its candidates; every third query has fewer than the list shows."""
    folder = tmp_path_factory.mktemp("world")
    arrays = {}
    for seed, name in enumerate(("train", "vali", "test")):
        split = make_split([8, 3, 9] * (QUERIES // 3), seed=seed)
        write_split(split, folder, name)
        documents = candidates(split, width=5, seed=seed)
        arrays |= {f"{name}_documents": documents, f"{name}_queries": np.arange(QUERIES)}
        scores = np.random.default_rng(seed).random(documents.shape)
        arrays[f"{name}_scores"] = np.where(documents < 0, np.nan, scores)
    write_json(folder / "dataset.json", {"ymax": 4})
    write_arrays(folder / "candidates.npz", arrays)
    return folder


def simulate(world, out, kind="pbm", log="initial", seed=1, **keys):
    keys = {"click_model": {"kind": kind, **MODELS[kind]}} | SIMULATION | keys
    settings = read_yaml(SCHEMA)["properties"]["settings"]
    setting = read_config({"it": keys}, settings)["it"]
    simulate_clicks(
        world, world / "candidates.npz", out, setting=setting, log=log, round_=0, seed=seed
    )
    return {name: read_log(*log_files(out, name)) for name in ("train", "vali")}


def contents(folder):
    return {path.name: path.read_bytes() for path in sorted(Path(folder).iterdir())}


@pytest.mark.parametrize("kind", CLICK_MODELS)
@pytest.mark.parametrize("empty", ["keep", "drop", "resample"])
def test_a_log_of_every_model_is_sound_and_repeatable(world, tmp_path, kind, empty):
    log = simulate(world, tmp_path / "one", kind, "randomized", empty_sessions=empty)["train"]
    simulate(world, tmp_path / "two", kind, "randomized", empty_sessions=empty)
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
    assert not log.clicks[~log.shown].any()
    assert (~log.shown).any() and log.clicks.sum() > 0
    assert (log.sessions.sum() == 20_000) == (empty in ("keep", "resample"))
    assert (log.mask == 0).any() == (empty == "keep")
    contexts = 2 if kind == "contextual" else 1
    assert len(log.queries) == QUERIES * contexts * (1 + 8)
    assert set(log.contexts) == set(range(contexts))
    truth = read_truth([tmp_path / "one/truth.csv"])
    assert len(truth) == 5 and ((truth > 0) & (truth <= 1)).all()
    assert is_by_position([tmp_path / "one/truth.csv"]) == (kind in ("pbm", "trust"))


@pytest.mark.parametrize("kind", CLICK_MODELS)
def test_the_written_truth_is_the_share_of_sessions_that_examined(world, tmp_path, kind):
    """With gamma = 1 at one position alone, its click rate there is P(examined)."""
    log = simulate(world, tmp_path, kind, "randomized", traffic_exponent=1.0)["train"]
    truth = read_truth([tmp_path / "truth.csv"])
    if kind in ("pbm", "trust"):
        assert truth.tolist() == clicks.examination(5).tolist()
        return
    gamma = clicks.attraction(make_split([8, 3, 9] * (QUERIES // 3)).grades, 4)
    gamma = np.where(log.shown, gamma[log.documents], 0)
    users = users_of(kind, gamma, log.contexts, eta=1, examination=clicks.examination(5))
    for k in range(5):
        seen = Behaviour(
            np.hstack([users.attraction[:, :k], np.ones((len(gamma), 1))]),
            users.examination[:, : k + 1, : k + 2],
            users.continuation[:, : k + 1],
        )
        rows, masks, counts = clicks.draw_masks(log.sessions, seen, stream(k, "examined"))
        hit = (masks >> np.uint64(k) & np.uint64(1) == 1) & log.shown[rows, k]
        shown = log.sessions[log.shown[:, k]].sum()
        error = np.sqrt(truth[k] * (1 - truth[k]) / shown)
        assert abs(counts[hit].sum() / shown - truth[k]) < 4.5 * error + 1e-12


def test_lists_weigh_as_their_sessions_and_alike_where_no_session_came():
    shown = np.array([[1, 1, 1, 0], [1, 1, 0, 0], [1, 1, 1, 0]], dtype=bool)
    examined = np.array([[1.0, 0.5, 0.9, 0.7], [0.8, 0.1, 0.6, 0.7], [1.0, 0.5, 0.3, 0.7]])
    theta = mean_examination(examined, shown, np.array([0, 1, 0]))
    np.testing.assert_allclose(theta, [0.8, 0.1, (0.9 + 0.3) / 2, np.nan])


def test_contexts_are_equally_frequent_and_differ_in_severity(world, tmp_path):
    log = simulate(world, tmp_path, "contextual", sessions=200_000)["train"]
    sessions = [log.sessions[log.contexts == c].sum() for c in (0, 1)]
    assert 1e-3 < chisquare(sessions).pvalue < 1 - 1e-3
    mild, severe = (log.select(log.contexts == c) for c in (0, 1))
    assert (mild.documents == severe.documents).all()
    ratio = np.log(severe.clicks.sum(axis=0) / mild.clicks.sum(axis=0))
    np.testing.assert_allclose(ratio, 1.5 * np.log(clicks.examination(5)), atol=0.1)


def test_truth_of_rounds_is_comparable_where_all_are(tmp_path):
    yes, no, none, own = (tmp_path / f"{name}.csv" for name in ("yes", "no", "none", "own"))
    write_truth(yes, np.array([0.5, 0.4]))
    write_truth(no, np.array([0.7, 0.2]), by_position=False)
    write_truth(none, np.array([]))
    own.write_text("position,theta\n1,0.5\n2,0.4\n")
    assert read_truth([yes, no]).round(12).tolist() == [0.6, 0.3]
    assert read_truth([yes, none]) is None
    assert is_by_position([yes, own])
    own.write_text("position,theta,by_position\n1,0.5\n2,0.4\n")
    assert is_by_position([own])
    assert not any(is_by_position(paths) for paths in ([yes, no], [none], [none, yes]))


def test_further_columns_are_the_mean_of_the_rounds_that_all_have_them(tmp_path):
    first, second, plain, empty = (tmp_path / f"{name}.csv" for name in "abcd")
    theta = np.array([0.8, 0.4])
    write_truth(first, theta, alpha=np.array([0.5, 0.25]), beta=np.array([0.1, 0.0]))
    write_truth(second, theta, alpha=np.array([0.7, 0.75]), continuation=np.array([0.9, 0.6]))
    write_truth(plain, theta)
    write_truth(empty, np.empty(0))
    columns = read_truth_columns([first, second])
    assert list(columns) == ["alpha"]
    np.testing.assert_allclose(columns["alpha"], [0.6, 0.5])
    assert read_truth_columns([first, plain]) == {}
    assert read_truth_columns([first, empty]) == {}
    assert read_truth([first, empty]) is None


def test_truths_of_rounds_with_different_lengths_are_refused(tmp_path):
    first, second, empty = (tmp_path / f"{name}.csv" for name in "abc")
    write_truth(first, np.array([0.8, 0.4]))
    write_truth(second, np.array([0.8]), beta=np.array([0.1]))
    write_truth(empty, np.empty(0))
    assert read_truth([first, empty]) is None
    for read in (read_truth, read_truth_columns):
        with pytest.raises(UserError, match=r"b\.csv has 1 positions, and that of another round 2"):
            read([first, second])


def test_blank_lines_of_a_truth_are_skipped(tmp_path):
    path = tmp_path / "truth.csv"
    path.write_text("\nposition,theta,beta\n\n1,0.5,0.1\n")
    assert read_truth([path]).tolist() == read_external_truth(path).tolist() == [0.5]
    assert read_truth_columns([path])["beta"].tolist() == [0.1]


def test_truth_is_no_function_of_position_where_one_position_says_so(tmp_path):
    path = tmp_path / "truth.csv"
    path.write_text("position,theta,by_position\n1,1.0,true\n2,0.5,false\n")
    assert not is_by_position([path])
    path.write_text("position,theta\n1,1.0\n2,0.5\n")
    assert is_by_position([path])


@pytest.mark.parametrize("row", ["2,", "2", "2,much", "2,0.5,true,0.1,x"])
def test_a_truth_that_is_cut_off_or_no_number_is_refused(tmp_path, row):
    path = tmp_path / "truth.csv"
    path.write_text(f"position,theta,by_position,alpha,beta\n1,1.0,true,0.4,0.1\n{row}\n")
    with pytest.raises(UserError, match=r"truth\.csv"):
        read_truth([path])


def test_a_simulated_log_can_be_taken_in_with_its_truth(world, tmp_path):
    simulate(world, tmp_path / "one", "dcm")
    import_clicks(world, tmp_path / "one", tmp_path / "two")
    one, two = contents(tmp_path / "one"), contents(tmp_path / "two")
    assert two.items() >= one.items()
    # What the simulation left out is there, and empty.
    assert two.keys() - one.keys() == {"test.lists.parquet", "test.clicks.parquet"}
    assert len(read_log(*log_files(tmp_path / "two", "test")).queries) == 0


# Plackett-Luce


def test_plackett_luce_orders_have_their_probabilities():
    documents, scores = np.array([[7, 3, 9, -1]]), np.array([[0.5, -0.2, 1.0, np.nan]])
    lists, temperature = 60_000, 0.7
    order = plackett_luce(
        documents, scores, lists, np.random.default_rng(1), temperature=temperature
    )
    assert (order[:, 3] == 3).all()
    odds = np.exp(scores[0, :3] / temperature)
    expected, counts = [], []
    for places in product(range(3), repeat=3):
        if len(set(places)) == 3:
            left = np.append(0, np.cumsum(odds[list(places)]))[:3]
            chance = np.prod(odds[list(places)] / (odds.sum() - left))
            expected.append(lists * chance)
            counts.append((order[:, :3] == places).all(axis=1).sum())
    agree(np.array(counts), np.array(expected))


def test_plackett_luce_display_logs_the_scores_of_the_policy(world, tmp_path):
    keys = {"display": "plackett_luce", "lists_per_query": 4}
    log = simulate(world, tmp_path / "warm", **keys, temperature=0.5)["train"]
    assert len(log.queries) == 4 * QUERIES and log.sessions.sum() == 20_000
    assert not log.randomized.any()
    assert (np.isfinite(log.scores) == log.shown).all()
    policy = simulate(world, tmp_path / "plain")["train"]
    score_of = dict(zip(policy.documents[policy.shown], policy.scores[policy.shown], strict=True))
    assert [score_of[d] for d in log.documents[log.shown]] == log.scores[log.shown].tolist()
    assert len(np.unique(log.documents, axis=0)) > 2 * QUERIES
    cold = simulate(world, tmp_path / "cold", **keys, temperature=1e-9)["train"]
    assert (cold.documents == np.repeat(policy.documents, 4, axis=0)).all()
    assert all((np.diff(row[row == row]) <= 0).all() for row in cold.scores)


def test_displays_are_drawn_anew_for_each_replicate(world, tmp_path):
    one, two = (
        simulate(world, tmp_path / str(seed), seed=seed, display="plackett_luce")["train"]
        for seed in (1, 2)
    )
    assert (one.documents != two.documents).any()

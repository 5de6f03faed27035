"""The report on what a click log can tell of propensities."""

import json
from dataclasses import replace

import numpy as np
import pytest
from moved_documents import GAMMA, expected_log, of_queries
from toys import make_log

from ultrbench.errors import UserError
from ultrbench.propensity.estimate import find_estimator
from ultrbench.propensity.identifiability import (
    effective_clicks,
    identifiability,
    score_overlap,
)


def works(report):
    return {row["estimator"]: row["works"] for row in report["estimators"]}


def test_counts_of_a_small_log():
    log = make_log(
        [[0, 1], [1, 0], [2, -1]],
        [(0, 1, 6), (0, 0, 4), (1, 3, 3), (2, 0, 2)],
        queries=[0, 0, 1],
        scores=[[1.0, 0.5], [np.nan, np.nan], [0.3, np.nan]],
        randomized=[False, True, False],
    )
    report = identifiability(log)
    expected = {
        "queries": 2,
        "lists": 3,
        "documents": 3,
        "sessions": 15,
        "sessions_without_click": 6,
        "lists_with_scores": 2,
        "randomized_lists": 1,
        "randomized_sessions": 3,
        "impressions_by_position": [15, 13],
        "clicks_by_position": [9, 3],
        "documents_moved": 2,
        "share_moved": 2 / 3,
        "groups": [[1, 2]],
        "clicked_groups": [[1, 2]],
        "effective_clicks": None,
    }
    assert {key: report[key] for key in expected} == expected
    json.dumps(report, allow_nan=False)


def test_a_static_log_lets_no_document_be_compared_with_itself():
    report = identifiability(expected_log(**of_queries([[0, 1, 2]], 13)))
    assert report["groups"] == [[1], [2], [3]]
    assert works(report) == {
        "ctr": "assumption",
        "randomization": "no",
        "harvest, adjacent": "no",
        "harvest, all": "no",
        "fixed_effects": "no",
        "dla": "assumption",
        "rem": "assumption",
        "upe": "assumption",
        "upe_scaled": "assumption",
        "crossfit": "assumption",
    }


def test_crossfit_wants_more_queries_than_it_has_parameters():
    def verdict(queries, rounds=1):
        log = expected_log(**of_queries([[0, 1, 2]], queries))
        later = np.arange(queries) % rounds
        log = replace(log, rounds=later.astype(np.uint8))
        row = identifiability(log)["estimators"][-1]
        assert (row["estimator"], row["works"]) == ("crossfit", "assumption")
        return row["why"].startswith("clicks are on")

    assert [verdict(12), verdict(13)] == [True, False]
    assert [verdict(22, rounds=2), verdict(23, rounds=2)] == [True, False]


LOGS = {
    "static": expected_log([[0, 1, 2]], GAMMA),
    "all moved": expected_log([[0, 1, 2], [1, 2, 0]], GAMMA),
    "third apart": expected_log([[0, 1, 2], [1, 0, 2]], GAMMA),
    "first and third": expected_log([[0, 1, 2], [2, 1, 0]], GAMMA),
    "no adjacent chain": expected_log(
        [[0, 1, 2], [2, 1, 0], [3, 4, 5], [3, 5, 4]],
        np.tile([1.0, 0.5, 0.25], 2),
        queries=[0, 0, 1, 1],
    ),
    "few clicks": make_log(
        [[0, 1], [1, 0], [2, 3]],
        [(0, 1, 6), (0, 0, 4), (1, 1, 3), (2, 2, 1)],
        queries=[0, 0, 1],
    ),
}


@pytest.mark.parametrize("name", LOGS)
def test_its_verdict_is_what_the_estimator_does(name):
    verdict = works(identifiability(LOGS[name]))
    for estimator, kind, parameters in [
        ("harvest, adjacent", "harvest", {"pairs": "adjacent"}),
        ("harvest, all", "harvest", {"pairs": "all"}),
        ("fixed_effects", "fixed_effects", {}),
    ]:
        try:
            find_estimator(kind)(LOGS[name], **parameters)
            possible = "yes"
        except UserError:
            possible = "no"
        assert verdict[estimator] == possible


def test_a_position_without_a_click_stops_every_estimator():
    log = make_log([[0, 1]], [(0, 1, 5), (0, 0, 5)])
    rows = identifiability(log)["estimators"]
    assert {(row["works"], row["why"]) for row in rows} == {("no", "no click at position 2")}


@pytest.mark.parametrize(
    ("documents", "groups", "works_on_it"),
    [
        ([[0, 1], [1, 0]], [(0, 3, 9), (1, 1, 9)], "no"),  # clicks at 2 in fixed order alone
        ([[0, 1], [2, 3], [4, -1]], [(0, 3, 9), (1, 2, 9), (2, 1, 9)], "no"),  # at 1 of short ones
        ([[0, 1], [1, 0]], [(0, 1, 9), (1, 3, 9)], "yes"),
    ],
)
def test_the_verdict_on_randomization_is_what_it_does(documents, groups, works_on_it):
    lists = len(documents)
    log = make_log(documents, groups, randomized=[False] + [True] * (lists - 1))
    assert works(identifiability(log))["randomization"] == works_on_it
    if works_on_it == "yes":
        find_estimator("randomization")(log)
    else:
        with pytest.raises(UserError, match="no click at position"):
            find_estimator("randomization")(log)


def test_without_empty_sessions_regression_em_cannot_work():
    report = identifiability(make_log([[0, 1]], [(0, 1, 5), (0, 2, 5)]))
    assert works(report)["rem"] == "no"
    assert works(report)["dla"] == "assumption"


def scored_log(scores):
    lists = len(scores)
    groups = [(row, mask, 4) for row in range(lists) for mask in (0, 1, 2)]
    documents = np.arange(2 * lists).reshape(lists, 2)
    return make_log(documents, groups, scores=scores)


def test_overlap_of_policy_scores():
    same = scored_log([[1.0, 0.0], [0.0, -1.0], [1.0, -1.0]])
    # Position 1 shows 1, 0, 1 and position 2 shows 0, -1, -1: a third is shared.
    assert score_overlap(same) == pytest.approx([1 / 3])
    apart = scored_log([[1.0, 0.0], [1.0, 0.0]])
    assert score_overlap(apart).tolist() == [0.0]
    overlapping = works(identifiability(scored_log([[1.0, 0.0], [0.0, -1.0]] * 6)))
    assert overlapping["upe_scaled"] == overlapping["crossfit"] == "yes"
    assert overlapping["upe"] == "assumption"  # that the scores have the right scale
    assert works(identifiability(scored_log([[1.0, 0.0]] * 12)))["crossfit"] == "assumption"
    assert np.isnan(score_overlap(scored_log(np.full((2, 2), np.nan)))).all()


def test_overlap_weighs_lists_by_their_sessions():
    log = scored_log([[1.0, 0.0], [0.0, -1.0]])
    log = replace(log, count=np.where(log.click_list == 0, 3 * log.count, log.count))
    # Score 0 has 1/4 of position 1's impressions and 3/4 of position 2's.
    assert score_overlap(log) == pytest.approx([1 / 4])


def test_overlap_does_not_depend_on_a_round_s_scale():
    scores = np.array([[1.0, 0.0], [0.0, -1.0], [1.0, 0.0], [0.0, -1.0]])
    log = replace(scored_log(scores), rounds=np.array([0, 0, 1, 1], dtype=np.uint8))
    scaled = replace(log, scores=np.where(log.rounds[:, None] == 1, 50 * scores + 7, scores))
    assert score_overlap(scaled) == pytest.approx(score_overlap(log))


def test_positions_that_nobody_looks_at_weigh_nothing():
    assert effective_clicks(np.array([10.0, 0.0]), np.array([1.0, 0.0])) == 10
    assert effective_clicks(np.array([0.0, 10.0, 0.0]), np.array([0.0, 0.5, np.nan])) == 10
    assert effective_clicks(np.zeros(2), np.zeros(2)) == 0


def test_effective_number_of_clicks():
    # Weights 1 and 4: (12 + 4 * 4)^2 / (12 + 4 * 16).
    assert effective_clicks(np.array([12.0, 4.0]), np.array([1.0, 0.25])) == pytest.approx(
        28**2 / 76
    )
    log = make_log([[0, 1]], [(0, 1, 12), (0, 2, 4), (0, 0, 5)])
    report = identifiability(log, np.array([1.0, 0.25]))
    assert report["effective_share"] == pytest.approx(28**2 / 76 / 16)

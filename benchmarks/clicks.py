"""Click simulation beside the loop of the public toolboxes, and beside its random numbers alone.

``python benchmarks/clicks.py [sessions]``. The loop draws every session document by document, as
the toolboxes' click feeds do; the random numbers are one uniform draw a displayed document.
"""

import random
import sys
from functools import partial

import numpy as np
from measure import HEADER, measure, report

from ultrbench.simulation.behaviour import find_click_model
from ultrbench.simulation.clicks import JOACHIMS_EXAMINATION, attraction, simulate_sessions

POSITIONS = 10


def grades_of(lists):
    return np.random.default_rng(1).integers(0, 5, (lists, POSITIONS))


def ultrbench(kind, lists, sessions):
    arguments = {"ubm": {}, "pbm": {"examination": JOACHIMS_EXAMINATION}}[kind]
    users = find_click_model(kind)(
        attraction(grades_of(lists), 4), contexts=np.zeros(lists, np.uint8), eta=1, **arguments
    )
    rng = np.random.default_rng(2)
    count = rng.multinomial(sessions, np.full(lists, 1 / lists))
    return partial(simulate_sessions, count, users, rng)


class ClickModel:
    """A click model as toolboxes have it: an object that is asked for every document."""

    def __init__(self, examination, attraction, rng):
        self.examination, self.attraction, self.rng = examination, attraction, rng

    def examination_at(self, rank):
        return self.examination[min(rank, len(self.examination) - 1)]

    def attraction_of(self, grade):
        return self.attraction[min(grade, len(self.attraction) - 1)]

    def sample_click(self, rank, grade):
        examined, attractive = self.examination_at(rank), self.attraction_of(grade)
        click = self.rng.random() < examined * attractive
        return int(click), examined, attractive

    def sample_list(self, grades):
        clicks, examined, attractive = [], [], []
        for rank, grade in enumerate(grades):
            click, e, a = self.sample_click(rank, grade)
            clicks.append(click)
            examined.append(e)
            attractive.append(a)
        return clicks, examined, attractive


def loop(lists, sessions):
    rng = random.Random(2)
    model = ClickModel(list(JOACHIMS_EXAMINATION), attraction(np.arange(5), 4).tolist(), rng)
    grades = grades_of(lists).tolist()

    def work():
        feed = []
        for _ in range(sessions):
            query = rng.randrange(lists)
            feed.append((query, model.sample_list(grades[query])[0]))
        return feed

    return work


def uniform_draws(sessions):
    rng = np.random.default_rng(2)

    def work():
        for start in range(0, sessions, 10_000):
            rng.random((min(10_000, sessions - start), POSITIONS))

    return work


def main(sessions=2_560_000, fewer=30_000):
    print(HEADER)
    draws = measure(uniform_draws, sessions).seconds
    for lists in (700, 13_471):
        theirs = measure(loop, lists, fewer, times=2).seconds * sessions / fewer
        for kind in ("pbm", "ubm"):
            ours = measure(ultrbench, kind, lists, sessions)
            case = f"{kind} on {lists} lists: {sessions / ours.seconds / 1e6:.0f} M sessions/s"
            report("clicks", f"{case} beside a loop", ours, theirs, ">= 200")
            report("clicks", f"{case} beside uniform draws", ours, draws, "<= 3")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))

"""Speed-ups worked out by hand."""

from math import isnan

import pytest

from analysis import cells, read_runs
from analysis.q2.speedup import contests, missing, ratio
from analysis.q2.timing import Timings


def q2(write_run, name, speed=1.0, lowest=8.0, seeds=(0, 1), **options):
    """Runs that pass perplexity 16 at 10 s, 11 at 20 s and `lowest` at 30 s, `speed` as fast."""
    for seed in seeds:
        points = [(0, 0, 300), (1, 10, 16), (2, 20, 11), (4, 30, lowest)]
        scaled = [(k, (1 + seed / 10) * t / speed, p) for k, t, p in points]
        write_run(f"{name}-{seed}", seed=seed, evaluations=scaled, clock="wall", **options)


def found(write_run):
    frames = read_runs(write_run.root)
    made = cells(frames)
    return contests(made, Timings(made, frames))


def test_speed_up_over_the_best_flush_and_the_one_of_equal_count(write_run):
    q2(write_run, "f4", accumulation=4)
    q2(write_run, "f8", accumulation=8, speed=1.5)
    q2(write_run, "p4", method="paci", accumulation=4, speed=3)
    (contest,) = found(write_run)
    assert (contest.fastest.label, contest.match.label) == ("1f1b-flush m=8", "1f1b-flush m=4")
    assert contest.first_to(12).label == "1f1b-flush m=8"
    for perplexity in (12, 8, None):
        best = ratio(contest.fastest, contest.paci, perplexity)
        equal = ratio(contest.match, contest.paci, perplexity)
        assert best.to_dict() == pytest.approx({0: 2, 1: 2})
        assert equal.to_dict() == pytest.approx({0: 3, 1: 3})


def test_speed_up_is_paired_by_seed(write_run):
    q2(write_run, "f", seeds=(0, 1, 2))
    q2(write_run, "p", method="paci", speed=2, seeds=(0,))
    q2(write_run, "q", method="paci", speed=4, seeds=(2,))
    (contest,) = found(write_run)
    assert ratio(contest.fastest, contest.paci, 8).to_dict() == pytest.approx({0: 2, 2: 4})


def test_a_seed_that_does_not_get_there_is_no_number(write_run):
    q2(write_run, "f")
    q2(write_run, "p", method="paci", seeds=(0,))
    q2(write_run, "q", method="paci", seeds=(1,), lowest=10)
    (contest,) = found(write_run)
    assert isnan(ratio(contest.fastest, contest.paci, 9)[1])
    assert missing(contest.paci, 9) == "not reached by paci a=4 in 1 of 2 seeds"
    assert missing(contest.paci, 301) == "paci a=4 is below it at its first evaluation"
    assert not missing(contest.paci, 12)


def test_other_recipes_are_not_compared(write_run):
    q2(write_run, "f", optimizer={"name": "sgd"})
    q2(write_run, "p", method="paci")
    assert found(write_run) == []

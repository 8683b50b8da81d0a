"""Times worked out by hand."""

from math import e, isnan, nan

import pandas as pd
import pytest

from analysis import CannotAnswer, cells, read_runs
from analysis.q2.speedup import BEST, EQUAL, speed_ups
from analysis.q2.thresholds import NOT_REACHED, derived_thresholds, lowest_common, time_to, timed

MEASURED = "simulated, measured costs"


def log(*points):
    return pd.DataFrame(points, columns=["update", "seconds", "perplexity"], dtype=float)


CURVE = log((0, 0, e**5), (1, 10, e**3), (2, 20, e**2), (3, 30, e**2.5), (4, 40, e))


@pytest.mark.parametrize(
    ("perplexity", "seconds"),
    [
        (e**4, 5),  # half way down in the logarithm
        (e**3, 10),
        (e**2.25, 17.5),
        (e**2, 20),  # where it is first reached, though it rises again
        (e**1.5, 30 + 10 * 1 / 1.5),
        (e, 40),
    ],
)
def test_time_is_interpolated_in_the_logarithm_of_the_perplexity(perplexity, seconds):
    assert time_to(CURVE, perplexity) == pytest.approx(seconds)


def test_nothing_is_extrapolated():
    assert time_to(CURVE, e - 1e-6) == NOT_REACHED
    assert isnan(time_to(CURVE, e**5 + 1))
    assert time_to(log(), 10) == NOT_REACHED


def test_an_undefined_perplexity_is_passed_over():
    curve = log((0, 0, e**3), (1, 10, float("inf")), (2, 20, nan), (3, 30, e**2), (4, 40, nan))
    assert time_to(curve, e**2.5) == pytest.approx(15)
    assert time_to(curve, e**1.5) == NOT_REACHED


def q2(write_run, name, speed=1.0, lowest=8.0, seeds=(0, 1), **options):
    """Runs that pass perplexity 16 at 10 s, 11 at 20 s and `lowest` at 30 s, `speed` as fast."""
    options = {"experiment": "q2", "clock": MEASURED} | options
    for seed in seeds:
        points = [(0, 0, 300), (1, 10, 16), (2, 20, 11), (4, 30, lowest)]
        scaled = [(k, (1 + seed / 10) * t / speed, p) for k, t, p in points]
        write_run(f"{name}-{seed}", seed=seed, evaluations=scaled, **options)


def group(write_run):
    return cells(read_runs(write_run.root), "q2")


def test_thresholds_are_round_and_passed_by_all(write_run):
    q2(write_run, "flush")
    q2(write_run, "paci", lowest=9.5, method="paci")
    assert derived_thresholds(group(write_run)) == [15, 14, 13, 12, 11, 10]
    assert lowest_common(group(write_run)) == 9.5


@pytest.mark.parametrize(
    ("lowest", "thresholds"),
    [(15.1, [15.8, 15.6, 15.4, 15.2]), (1, [15, 10, 5]), (16, []), (17, [])],
)
def test_the_step_between_thresholds_follows_what_is_passed(write_run, lowest, thresholds):
    points = [(0, 0, 300), (1, 10, 16), (4, 30, lowest)]
    write_run("flush", evaluations=points, clock=MEASURED, experiment="q2")
    assert derived_thresholds(group(write_run)) == thresholds


def test_speed_up_against_the_best_flush_and_the_one_of_equal_count(write_run):
    q2(write_run, "f4", accumulation=4)
    q2(write_run, "f8", accumulation=8, speed=1.5)
    q2(write_run, "p4", method="paci", accumulation=4, speed=3)
    made = list(speed_ups(group(write_run), [12]))
    assert [(it.against, it.flush.variant.label, it.perplexity, it.lowest) for it in made] == [
        (BEST, "1f1b-flush m=8", 12, False),
        (EQUAL, "1f1b-flush m=4", 12, False),
        (BEST, "1f1b-flush m=8", 8, True),
        (EQUAL, "1f1b-flush m=4", 8, True),
    ]
    assert [it.mean_and_std[0] for it in made] == pytest.approx([2, 3, 2, 3])
    assert [it.mean_and_std[1] for it in made] == pytest.approx([0] * 4, abs=1e-9)


def test_speed_up_is_paired_by_seed(write_run):
    q2(write_run, "f", seeds=(0, 1, 2))
    q2(write_run, "p", method="paci", speed=2, seeds=(0,))
    q2(write_run, "q", method="paci", speed=4, seeds=(2,))
    (made,) = (it for it in speed_ups(group(write_run), []) if it.against == BEST)
    assert made.by_seed.to_dict() == pytest.approx({0: 2, 2: 4})
    assert made.mean_and_std == pytest.approx((3, 2**0.5))


def test_a_seed_that_does_not_get_there_is_no_number(write_run):
    q2(write_run, "f")
    q2(write_run, "p", method="paci", seeds=(0,))
    q2(write_run, "q", method="paci", seeds=(1,), lowest=10)
    made = next(speed_ups(group(write_run), [9]))
    assert isnan(made.mean_and_std[0])
    assert made.why == "not reached by paci a=4 in 1 of 2 seeds"


def test_one_seed_has_no_spread(write_run):
    q2(write_run, "f", seeds=(0,))
    q2(write_run, "p", method="paci", seeds=(0,), speed=2)
    made = next(speed_ups(group(write_run), [9]))
    assert made.mean_and_std[0] == pytest.approx(2)
    assert isnan(made.mean_and_std[1])


def test_other_recipes_are_not_compared(write_run):
    q2(write_run, "f", optimizer={"name": "sgd"})
    q2(write_run, "p", method="paci")
    assert list(speed_ups(group(write_run))) == []


def test_given_costs_say_nothing_about_time(write_run):
    q2(write_run, "f", clock="simulated")
    with pytest.raises(
        CannotAnswer, match="2 runs on the clock 'simulated', whose costs are given"
    ):
        timed(group(write_run))
    q2(write_run, "g")
    able, said = timed(group(write_run))
    assert [cell.clock for cell in able] == [MEASURED]
    assert said.startswith("2 runs on the clock 'simulated'")


def test_two_measurements_of_one_size_are_not_compared(write_run):
    q2(write_run, "f", costs={"microbatch": 2, "forward": [1.0]})
    q2(write_run, "p", costs={"microbatch": 2, "forward": [1.1]}, method="paci", accumulation=8)
    with pytest.raises(CannotAnswer, match="f-0 and p-0 have different measured costs"):
        timed(group(write_run))


def test_a_diverged_seed_reaches_what_it_reached(write_run):
    q2(write_run, "f", losses=[2, nan], state="failed", why="diverged", seeds=(0,))
    (cell,) = group(write_run)
    assert lowest_common([cell]) == 8
    assert derived_thresholds([cell]) == []  # of completed runs there is none

"""Times worked out by hand."""

from math import e, isnan, nan

import pandas as pd
import pytest

from analysis import cells, read_runs
from analysis.q2.thresholds import NOT_REACHED, PAPERS_WAY, Thresholds, lowest_common

LOGARITHM = Thresholds(log_linear=True)


def log(*points):
    return pd.DataFrame(points, columns=["update", "seconds", "perplexity"], dtype=float)


CURVE = log((0, 0, e**5), (1, 10, e**3), (2, 20, e**2), (3, 30, e**2.5), (4, 40, e))
LINE = log((0, 0, 100), (1, 10, 20), (2, 20, 10), (3, 30, 15), (4, 40, 5))


@pytest.mark.parametrize(
    ("perplexity", "seconds"),
    [
        (60, 5),  # half way down
        (20, 10),
        (12.5, 17.5),
        (10, 20),  # where it is first reached, though it rises again
        (7.5, 37.5),
        (5, 40),
    ],
)
def test_time_is_interpolated_in_the_perplexity(perplexity, seconds):
    assert PAPERS_WAY.crossing(LINE, perplexity) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("perplexity", "seconds"), [(e**4, 5), (e**3, 10), (e**2.25, 17.5), (e**1.5, 30 + 10 / 1.5)]
)
def test_or_in_its_logarithm(perplexity, seconds):
    assert LOGARITHM.crossing(CURVE, perplexity) == pytest.approx(seconds)


@pytest.mark.parametrize("read", [PAPERS_WAY, LOGARITHM])
def test_nothing_is_extrapolated(read):
    assert read.crossing(CURVE, e - 1e-6) == NOT_REACHED
    assert isnan(read.crossing(CURVE, e**5 + 1))
    assert read.crossing(log(), 10) == NOT_REACHED


def test_an_undefined_perplexity_is_passed_over():
    curve = log((0, 0, 30), (1, 10, float("inf")), (2, 20, nan), (3, 30, 10), (4, 40, nan))
    assert PAPERS_WAY.crossing(curve, 20) == pytest.approx(15)
    assert PAPERS_WAY.crossing(curve, 5) == NOT_REACHED


def test_tokens_are_read_off_likewise():
    curve = LINE.assign(tokens=LINE["update"] * 8)
    assert PAPERS_WAY.crossing(curve, 60, "tokens") == pytest.approx(4)


def group(write_run, **lasts):
    for name, last in lasts.items():
        method, _, a = name.partition("_")
        write_run(
            name,
            method={"flush": "1f1b-flush", "paci": "paci", "async": "async-1f1b"}[method],
            accumulation=int(a),
            evaluations=[(0, 0, 300), (1, 10, 16), (4, 30, last)],
            clock="wall",
        )
    return cells(read_runs(write_run.root))


def test_thresholds_lie_above_the_lowest_of_all_as_the_papers_do(write_run):
    """The worst of flush and mild PACI ends at 10; 18, 17 and 16 are 15.632 times 1.15 to 1.02."""
    made = group(write_run, flush_8=9.0, paci_8=10.0, async_1=15.0)
    assert lowest_common(made) == 15
    assert PAPERS_WAY.of(made) == [11.5, 10.9, 10.2]


def test_thresholds_are_the_papers_at_its_scale_and_those_given_anywhere(write_run):
    write_run(scale="paper", evaluations=[(0, 0, 300), (4, 30, 30.0)])
    made = cells(read_runs(write_run.root))
    assert PAPERS_WAY.of(made) == [18, 17, 16]
    assert Thresholds((5.0, 7.0)).of(made) == [7, 5]


def test_of_diverged_runs_alone_there_is_no_threshold(write_run):
    points = [(0, 0, 300), (1, 10, 16)]
    write_run(losses=[2, nan], state="failed", why="diverged", evaluations=points)
    assert PAPERS_WAY.of(cells(read_runs(write_run.root))) == []

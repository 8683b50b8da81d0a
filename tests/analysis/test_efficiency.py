"""Update efficiency of curves worked out by hand."""

import math

import pytest

from analysis import cells, read_runs
from analysis.claims.efficiency import falls, rises
from analysis.claims.verdicts import FAILS, HOLDS, UNTESTED
from analysis.efficiency import at_share, flush_of, from_losses, from_perplexity, implied
from analysis.q2.speedup import contests
from analysis.q2.timing import Timings
from paper_figures.published import published

UPDATES = 400


def loss(update: float) -> float:
    return 3 + 4 * math.exp(-update / 200)


def curve(pace: float, offset: float = 0.0) -> list[float]:
    """The loss of flush, reached after so many times the updates."""
    return [loss(k * pace) + offset for k in range(1, UPDATES + 1)]


@pytest.fixture
def worth(write_run):
    def worth(*paces: float, **options):
        for seed, pace in enumerate(paces):
            write_run(f"f-{seed}", seed=seed, losses=curve(1.0), batch=16)
            write_run(
                f"p-{seed}", method="paci", seed=seed, losses=curve(pace), batch=16, **options
            )
        group = cells(read_runs(write_run.root))
        flush, method = sorted(group, key=lambda cell: cell.variant.asynchronous)
        assert flush_of(method, group) is flush
        return from_losses(method, flush), from_losses(flush, flush)

    return worth


def test_half_the_pace_is_half_the_efficiency(worth):
    efficiency, of_itself = worth(0.5, 0.75)
    late = at_share(efficiency, 1.0)
    assert late.to_dict() == pytest.approx({0: 0.5, 1: 0.75}, rel=0.02)
    assert efficiency[0].dropna().to_numpy() == pytest.approx(0.5, rel=0.05)
    assert of_itself.to_numpy() == pytest.approx(1.0)
    assert efficiency.index.min() >= 0.2


def test_nothing_is_extrapolated(worth):
    efficiency, _ = worth(1.5)
    assert efficiency[0].iloc[-1:].isna().all()  # flush ends above the method's last loss
    assert efficiency[0].dropna().to_numpy() == pytest.approx(1.5, rel=0.05)


def test_the_speed_up_is_throughput_times_efficiency(write_run):
    points = [(0, 0, 300.0), (100, 1, 100), (200, 2, 40), (300, 3, 20), (400, 4, 10)]
    slower = [(k, t / 3, p) for k, t, p in points[:2]] + [
        (200, 2 / 3, 60), (300, 1, 30), (400, 4 / 3, 12),
    ]  # fmt: skip
    common = {"clock": "wall", "batch": 16, "accumulation": 4}
    write_run("f", evaluations=points, losses=curve(1.0), **common)
    write_run("p", method="paci", evaluations=slower, losses=curve(0.8), **common)
    frames = read_runs(write_run.root)
    made = cells(frames)
    (contest,) = contests(made, Timings(made, frames))
    for perplexity in (60, 30, 20):
        speed_up = contest.match.time_to(perplexity) / contest.paci.time_to(perplexity)
        throughput = contest.match.total / contest.paci.total
        assert throughput[0] == pytest.approx(3)
        assert (throughput * from_perplexity(contest, perplexity))[0] == pytest.approx(speed_up[0])
    assert from_perplexity(contest, 5).isna().all()


def test_the_papers_tables_imply_what_is_quoted_of_them():
    points = {(it.batch, it.method, it.perplexity): it.efficiency for it in implied(published)}
    quoted = {
        ("paci a=4", 18): 0.86, ("paci a=4", 17): 0.91, ("paci a=4", 16): 0.94,
        ("paci a=8", 18): 0.92, ("paci a=8", 17): 0.95, ("paci a=8", 16): 0.98,
    }  # fmt: skip
    for (method, perplexity), efficiency in quoted.items():
        assert points[128, method, perplexity] == pytest.approx(efficiency, abs=0.006)
    assert len(points) == 12
    assert all(0 < it.share < 1 for it in implied(published))


def test_rising_and_falling(worth):
    flat, of_itself = worth(0.5, 0.5, 0.5)
    rising = flat.mul(flat.index, axis=0)
    rising[1] += 0.001
    assert rises(rising).verdict == HOLDS
    assert rises(rising[::-1].set_axis(rising.index)).verdict == FAILS
    late = [("a", 1, at_share(of_itself, 1)), ("b", 2, at_share(flat, 1))]
    assert falls(late).verdict == HOLDS
    assert falls(late[::-1]).verdict == HOLDS
    assert falls(late[:1]).verdict == UNTESTED

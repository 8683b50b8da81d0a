import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paci import SCHEDULES, Cost, Simulation, simulate
from paci.actions import Action
from paci.cost import Durations
from paci.schedules import build
from paci.simulation.event_loop import run_schedule
from paci.simulation.simulate import fixed_order
from tests.paci import toys


@given(
    st.sampled_from(["gpipe", "1f1b-flush"]),
    st.integers(1, 12), st.integers(1, 12), st.integers(1, 4),
    toys.eighths, toys.eighths, st.just(0.0) | toys.eighths,
)  # fmt: skip
def test_a_flush_takes_what_it_takes_on_paper(schedule, N, m, windows, forward, backward, update):
    """A window: m + N - 1 forwards and backwards, and the update of stage 0."""
    run = simulate(schedule, N, windows * m, m, cost=Cost(forward, backward, update=update))
    work = m * (forward + backward) + update
    window = work + (N - 1) * (forward + backward)
    assert run.makespan == windows * window
    if update == 0:
        assert run.utilization == pytest.approx(m / (m + N - 1), abs=1e-9)


@given(st.integers(1, 10), st.integers(1, 6), st.integers(1, 6), toys.eighths, toys.eighths)
def test_paci_is_one_endless_window_of_1f1b(N, a, windows, forward, backward):
    """With equal stages and no latency: same actions, same times; only updates are more."""
    m, cost = a * windows, Cost(forward, backward)
    paci = simulate("paci", N, m, a, cost=cost)
    flush = simulate("1f1b-flush", N, m, m, cost=cost)
    assert [step[:6] for step in paci.actions] == [step[:6] for step in flush.actions]
    assert paci.utilization == pytest.approx(m / (m + N - 1), abs=1e-9)


def test_what_the_paper_is_about():
    flush = simulate("1f1b-flush", 8, 512, 4)
    paci = simulate("paci", 8, 512, 4)
    assert flush.utilization == pytest.approx(4 / 11)
    assert paci.utilization == pytest.approx(512 / 519)
    assert paci.max_drift == [2, 2, 2, 1, 1, 1, 1, 0]
    assert paci.peak_in_flight == [8, 7, 6, 5, 4, 3, 2, 1]


def test_late_messages_cost_and_slack_buys_them_back():
    latency = Cost(transfer=0.5)
    tight, loose = (simulate("paci", 8, 512, 4, slack, latency) for slack in (0, 7))
    assert tight.utilization == pytest.approx(0.77, abs=0.01)
    assert loose.utilization > 0.98
    assert loose.max_drift[0] > tight.max_drift[0]


@given(toys.sizes(stages=4), st.sampled_from(["paci", "gpipe"]))
def test_peaks_and_drift_follow_from_the_rows(sizes, schedule):
    sizes["slack"] = sizes["slack"] if schedule == "paci" else 0
    run = simulate(schedule, **sizes)
    for stage in range(sizes["stages"]):
        forwards, backwards = (
            [s for s in run.actions if (s.stage, s.kind) == (stage, kind)] for kind in "FB"
        )
        in_flight = [
            sum(f.start <= now.start < b.end for f, b in zip(forwards, backwards, strict=True))
            for now in forwards
        ]
        drift = [b.version - f.version for f, b in zip(forwards, backwards, strict=True)]
        assert run.peak_in_flight[stage] == max(in_flight)
        assert run.max_drift[stage] == max(drift)


def test_the_seed_matters_with_jitter_only():
    def times(seed, jitter):
        return simulate("paci", 4, 16, cost=Cost(jitter=jitter), seed=seed).actions

    assert times(0, 0.1) == times(0, 0.1) != times(1, 0.1)
    assert times(0, 0.0) == times(1, 0.0)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_fixed_order_is_that_of_uniform_times_at_any_times(schedule):
    """With several stages on a rank where the schedule has them, over two windows."""
    rule = build(schedule, 4)
    taken = [[] for _ in rule.placement]
    for rank, stage, kind, microbatch, *_ in run_schedule(rule, 8, Durations(Cost(), 4, 8)):
        taken[rank].append(Action(stage, kind, microbatch))
    fixed = fixed_order(rule, 8)
    assert fixed.orders == taken
    assert (fixed.placement, fixed.accumulation) == (rule.placement, rule.accumulation)
    uneven = simulate(fixed, 4, 8, cost=Cost([1, 3, 2, 1], [2, 1, 5, 4], transfer=1.5))
    assert uneven.timeline.orders() == taken


def test_simulating_needs_no_torch():
    program = (
        "import sys, paci; paci.simulate('paci', stages=8, microbatches=512); "
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_a_simulation_prints_as_a_line():
    run = simulate("1f1b-flush", stages=8, microbatches=8, accumulation=8)
    assert repr(run) == (
        "<Simulation of 1f1b-flush: 8 stages, accumulation 8, utilization 0.533, largest drift 0>"
    )
    assert repr(Simulation(run.schedule, iter(run.actions))) == (
        "<Simulation of 1f1b-flush: 8 stages, accumulation 8, largest drift 0>"
    )

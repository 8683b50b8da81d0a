"""Properties of every schedule that drains between updates, for all sizes and times."""

from collections import Counter, defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paci import Cost, simulate
from paci.schedules import build, theory
from tests.paci import toys

PER_RANK = {
    "gpipe": 1, "1f1b-flush": 1, "interleaved-1f1b": 3, "zb-h1": 1, "zb-h2": 1, "zb-1p": 1,
    "zb-2p": 1, "zbv": 2, "interleaved-zb-h1": 3, "dualpipev": 2,
}  # fmt: skip


def options(schedule: str) -> dict:
    """With three stages a rank, so that the middle ones are tried too."""
    return {"stages_per_rank": 3} if schedule.startswith("interleaved") else {}


def fits(schedule: str, ranks: int, m: int) -> bool:
    if schedule.startswith("interleaved"):
        return m % max(1, m // ranks) == 0
    return schedule != "dualpipev" or m >= 2 * ranks


@st.composite
def runs(draw):
    schedule = draw(st.sampled_from([*PER_RANK]))
    ranks = draw(st.integers(1, 5))
    stages = ranks * PER_RANK[schedule]
    m = draw(st.integers(1, 12).filter(lambda m: fits(schedule, ranks, m)))

    def times(some):
        return draw(some | st.lists(some, min_size=stages, max_size=stages))

    backward = times(toys.eighths)
    shortest = min(backward) if isinstance(backward, list) else backward
    cost = Cost(
        forward=times(toys.eighths),
        backward=backward,
        weight=draw(st.none() | st.sampled_from([0.125, 0.5, 0.875]).map(lambda w: w * shortest)),
        update=times(st.just(0.0) | toys.eighths),
        transfer=times(st.just(0.0) | toys.eighths),
        jitter=draw(st.sampled_from([0.0, 0.1, 0.6])),
    )
    return {
        "schedule": build(schedule, stages, m, **options(schedule)),
        "stages": stages,
        "microbatches": m * draw(st.integers(1, 3)),
        "cost": cost,
        "seed": draw(st.integers(0, 3)),
    }


@given(runs())
def test_every_microbatch_once_and_in_order(run):
    """At every stage: its forward, and its backward either whole or in two halves."""
    done = defaultdict(list)
    for step in simulate(**run).actions:
        done[step.stage, step.kind].append(step.microbatch)
    for microbatches in done.values():
        assert microbatches == sorted(microbatches)
    everything = list(range(run["microbatches"]))
    for stage in range(run["stages"]):
        assert done[stage, "F"] == everything
        assert sorted(done[stage, "B"] + done[stage, "I"]) == everything
        assert done[stage, "I"] == done[stage, "W"]


@given(runs())
def test_nothing_starts_before_what_it_needs_has_arrived(run):
    actions, cost = simulate(**run).actions, run["cost"]
    a, last = run["schedule"].accumulation, run["stages"] - 1
    rank_of = {stage: r for r, own in enumerate(run["schedule"].placement) for stage in own}

    def at(times, stage):
        return times[stage] if isinstance(times, list) else times

    arrival = {(0, "F", m): 0.0 for m in range(run["microbatches"])}
    free = Counter()
    for rank, stage, kind, m, start, end, _ in actions:
        assert rank == rank_of[stage]
        assert start >= free[rank], "a rank does one thing at a time"
        free[rank] = end
        assert start >= arrival[stage, "B" if kind == "I" else kind, m]
        if kind in "BW" and (m + 1) % a == 0:
            end -= at(cost.update, stage)
        if kind == "I":
            arrival[stage, "W", m] = end
        if kind == "W":
            continue
        if kind == "F":
            to = (stage + 1, "F", m) if stage < last else (stage, "B", m)
        else:
            to = (stage - 1, "B", m)
        message = to[0] >= 0 and rank_of[to[0]] != rank
        arrival[to] = end + (at(cost.transfer, stage) if message else 0)


@given(runs())
def test_no_drift(run):
    done = simulate(**run)
    assert done.max_drift == [0] * run["stages"]
    a = run["schedule"].accumulation
    assert all(step.version == step.microbatch // a for step in done.actions)


@given(runs())
def test_the_order_is_the_same_in_every_window_and_at_any_cost(run):
    a = run["schedule"].accumulation
    window = simulate(run["schedule"], run["stages"], a).timeline.orders()
    for once, order in zip(window, simulate(**run).timeline.orders(), strict=True):
        assert order == [
            action._replace(microbatch=first + action.microbatch)
            for first in range(0, run["microbatches"], a)
            for action in once
        ]


@given(runs())
def test_peaks_follow_from_the_rows(run):
    done = simulate(**run)
    for rank, stages in enumerate(run["schedule"].placement):
        rows = [step for step in done.actions if step.stage in stages]
        held = [
            sum(step.kind == "F" for step in rows[: i + 1])
            - sum(step.kind in "BW" for step in rows[:i])
            for i in range(len(rows))
        ]
        assert done.peak_activations[rank] == max(held)


@given(runs())
def test_memory_is_what_the_closed_form_says(run):
    """At any cost, for it follows from the order alone."""
    name, a = run["schedule"].name, run["schedule"].accumulation
    ranks = len(run["schedule"].placement)
    assert simulate(**run).peak_activations == [
        theory.activation_units(name, run["stages"], rank, a, stages_per_rank=PER_RANK[name])
        for rank in range(ranks)
    ]


@pytest.mark.parametrize("schedule", PER_RANK)
@pytest.mark.parametrize("ranks", [1, 2, 3, 5, 8])
def test_bubbles_are_what_the_closed_form_says(schedule, ranks):
    """Counted where windows follow one another, at T_F = T_B = T_W."""
    v = PER_RANK[schedule]
    for m in (1, 2, 3, 4, 6, 8, 9, 10, 14, 15, 16, 24):
        if fits(schedule, ranks, m):
            rule = build(schedule, ranks * v, m, **options(schedule))
            two, three = (
                simulate(rule, ranks * v, windows * m, cost=Cost(1, 2)).makespan
                for windows in (2, 3)
            )
            rate = (three - two) / (3 * v * m) - 1
            assert rate == pytest.approx(theory.bubble_rate(schedule, ranks, m, v), abs=1e-9)

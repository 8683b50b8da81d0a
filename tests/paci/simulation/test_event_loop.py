import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paci import Cost, Schedule, simulate
from paci.cost import Durations
from paci.simulation.event_loop import Deadlock
from tests.paci import toys, twin

FLUSH = ("gpipe", "1f1b-flush")
any_schedule = st.sampled_from([*FLUSH, "paci"])


@st.composite
def runs(draw):
    schedule = draw(any_schedule)
    return {"schedule": schedule, **draw(toys.sizes(slack=schedule == "paci"))}


@given(toys.sizes())
def test_paci_is_the_papers_rule(sizes):
    """To the last bit of every time, whatever the times are."""
    N, count = sizes["stages"], sizes["microbatches"]
    d = Durations(sizes["cost"], N, count, sizes["seed"])
    rows = twin.clock(
        N, sizes["accumulation"], sizes["slack"], count,
        lambda kind, stage, m: d.of[kind][stage][m], d.update,
        [time for time, *_ in d.transfer],
    )  # fmt: skip
    actions = simulate("paci", **sizes).actions
    assert sorted(rows) == sorted(twin.Row(*step[1:]) for step in actions)


@given(runs())
def test_every_microbatch_once_and_in_order(run):
    expected = list(range(run["microbatches"]))
    actions = simulate(**run).actions
    for stage in range(run["stages"]):
        for kind in "FB":
            done = [s.microbatch for s in actions if (s.stage, s.kind) == (stage, kind)]
            assert done == expected


@given(runs())
def test_a_rank_does_one_thing_at_a_time(run):
    free = [0.0] * run["stages"]
    for step in simulate(**run).actions:
        assert step.start >= free[step.rank]
        free[step.rank] = step.end


@given(runs())
def test_nothing_starts_before_what_it_needs_has_arrived(run):
    actions, cost = simulate(**run).actions, run["cost"]
    a, last = run["accumulation"], run["stages"] - 1

    def at(times, stage):
        return times[stage] if isinstance(times, list) else times

    arrival = {(0, "F", m): 0.0 for m in range(run["microbatches"])}
    for rank, stage, kind, m, start, end, _ in actions:
        assert rank == stage
        assert start >= arrival[stage, kind, m]
        if kind == "F":
            to = (stage + 1, "F", m) if stage < last else (stage, "B", m)
        else:
            to = (stage - 1, "B", m)
            end -= at(cost.update, stage) if (m + 1) % a == 0 else 0
        arrival[to] = end + (at(cost.transfer, stage) if to[0] != stage else 0)


@given(runs())
def test_versions_count_the_finished_windows(run):
    for step in simulate(**run).actions:
        if step.kind == "B":
            assert step.version == step.microbatch // run["accumulation"]


@given(toys.sizes(slack=False), st.sampled_from(FLUSH))
def test_a_flush_has_no_drift(sizes, schedule):
    run = simulate(schedule, **sizes)
    assert run.max_drift == [0] * sizes["stages"]
    assert all(step.version == step.microbatch // sizes["accumulation"] for step in run.actions)


@given(runs())
def test_who_is_asked_first_at_one_instant_changes_nothing(run):
    actions = simulate(**run).actions

    def in_any_order(agenda, event):
        agenda.append(event)
        shuffled = random.sample(agenda, len(agenda))
        agenda[:] = sorted(shuffled, key=lambda event: event[0])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("paci.simulation.event_loop.heappush", in_any_order)
        patch.setattr("paci.simulation.event_loop.heappop", lambda agenda: agenda.pop(0))
        assert sorted(simulate(**run).actions) == sorted(actions)


def test_however_short_an_action_is_the_clock_is_right():
    short, shorter = (simulate("paci", 4, 32, cost=Cost(f, 1.0)) for f in (1e-9, 1e-12))
    assert shorter.max_drift == short.max_drift
    assert shorter.makespan == pytest.approx(short.makespan)


class Split(Schedule):
    """Two stages; input gradient first, then at once the weight gradient."""

    name = "split"

    def __init__(self, placement, never=False):
        super().__init__(2, 1)
        self.placement, self.never = placement, never

    def next(self, stages):
        for stage in stages:
            if stage.backwards > stage.weights and not self.never:
                return stage, "W"
            if stage.gradients > stage.backwards:
                return stage, "I"
            if stage.inputs > stage.forwards:
                return stage, "F"
        return None


def test_split_backwards():
    """The input gradient leaves as soon as it is there; the update belongs to the W."""
    run = simulate(Split(((0,), (1,))), 2, 1, cost=Cost(1, 3, 2, update=0.5, transfer=0.25))
    assert [step[:6] for step in run.actions] == [
        (0, 0, "F", 0, 0, 1),
        (1, 1, "F", 0, 1.25, 2.25),
        (1, 1, "I", 0, 2.25, 3.25),
        (1, 1, "W", 0, 3.25, 5.75),
        (0, 0, "I", 0, 3.5, 4.5),
        (0, 0, "W", 0, 4.5, 7),
    ]


def test_two_stages_of_one_rank_take_turns_and_send_nothing():
    run = simulate(Split(((0, 1),)), 2, 1, cost=Cost(1, 2, transfer=100))
    assert [(s.rank, s.stage, s.kind, s.start) for s in run.actions] == [
        (0, 0, "F", 0), (0, 1, "F", 1), (0, 1, "I", 2), (0, 0, "I", 3), (0, 0, "W", 4),
        (0, 1, "W", 5),
    ]  # fmt: skip


def test_a_rule_that_waits_for_ever_is_found_out():
    with pytest.raises(Deadlock, match=r"split waits for ever, of 2 .*: 0 \(2 forward, 0 back\)"):
        simulate(Split(((0,), (1,)), never=True), 2, 2)


@pytest.mark.parametrize("count", [8.0, -4])
def test_microbatches_are_counted_first(count):
    with pytest.raises(ValueError, match=f"whole windows of 4, not {count}"):
        simulate("paci", 2, count, accumulation=4, cost=Cost(jitter=0.1))


@pytest.mark.parametrize("count", [0, -4, 3, 9])
def test_microbatches_come_in_whole_windows(count):
    with pytest.raises(ValueError, match=f"whole windows of 4, not {count}"):
        simulate("paci", 2, count, accumulation=4)

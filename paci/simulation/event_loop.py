"""The discrete-event clock: which rank does what, and when, under a rule and a cost model.

`simulate` and `LocalPipeline` both run on it, so they perform the same actions in the same order.

    agenda ──▶ all events of the earliest instant ──▶ counts of the stages
      ▲                                                       │
      └── end of the action, arrival of its message ◀── rule: what next?  (each idle rank)

All events of one instant are delivered before any rank decides, and a rank sees only its own
counts, so the order in which ranks are asked at one instant changes nothing.
"""

from collections.abc import Iterator
from heapq import heappop, heappush
from typing import NamedTuple

from paci.actions import ENDS_BACKWARD, FORWARD, WEIGHT_GRADIENT
from paci.checks import is_whole
from paci.cost import Durations
from paci.schedules import Schedule, StageView


class Step(NamedTuple):
    """An action on the clock. `version` is the stage's count of updates when the action starts;
    `end` includes the update that the action may cause."""

    rank: int
    stage: int
    kind: str
    microbatch: int
    start: float
    end: float
    version: int


class Deadlock(RuntimeError):
    """The rule lets every rank wait although there is work left: a fault of the schedule."""


NOWHERE = -1  # no stage, but a number: the agenda sorts by it what else is equal


def play(schedule: Schedule, microbatches: int, durations: Durations) -> Iterator[tuple]:
    """Yield the fields of every `Step`, in the order in which the actions start.

    A step is yielded before it takes effect and after everything that it depends on. Plain
    tuples, because half a million of them a second go through here.

    Raises ValueError unless `microbatches` is a whole number of windows, and Deadlock if the rule
    leaves work undone.
    """
    N, a = schedule.stages, schedule.accumulation
    whole_windows(microbatches, a)

    views = [StageView(stage, is_last=stage == N - 1) for stage in range(N)]
    seen = [tuple(views[stage] for stage in stages) for stages in schedule.placement]
    rank_of = schedule.rank_of
    idle = [True] * len(seen)
    views[0].inputs = microbatches

    # An event: its time, the kind of the action, the stage whose action ends (the rank is free
    # again) and the stage that its message reaches; often both at once.
    agenda: list[tuple[float, str, int, int]] = []
    now, asked = 0.0, list(range(len(seen)))
    while True:
        for rank in asked:
            if not idle[rank] or (choice := schedule.next(seen[rank])) is None:
                continue
            view, kind = choice
            stage = view.index
            microbatch = view.microbatch(kind)
            to = stage + 1 if kind == FORWARD else stage - 1
            if kind == WEIGHT_GRADIENT or not 0 <= to < N:
                to = NOWHERE

            done = end = now + durations.of[kind][stage][microbatch]
            if kind in ENDS_BACKWARD and (view.weights + 1) % a == 0:
                end += durations.update[stage]
            idle[rank] = False
            yield rank, stage, kind, microbatch, now, end, view.weights // a

            arrival = done
            if to != NOWHERE and rank_of[to] != rank:
                arrival += durations.transfer[stage]
            if to == NOWHERE or arrival == end:
                heappush(agenda, (end, kind, stage, to))
            else:
                heappush(agenda, (end, kind, stage, NOWHERE))
                heappush(agenda, (arrival, kind, NOWHERE, to))

        if not agenda:
            break
        now, asked = agenda[0][0], []
        while agenda and agenda[0][0] == now:
            _, kind, ended, reached = heappop(agenda)
            if ended != NOWHERE:
                views[ended].finish(kind)
                rank = rank_of[ended]
                idle[rank] = True
                asked.append(rank)
            if reached != NOWHERE:
                views[reached].arrive(kind)
                asked.append(rank_of[reached])

    undone = [view for view in views if view.weights < microbatches]
    if undone:
        stuck = ", ".join(f"{v.index} ({v.forwards} forward, {v.weights} back)" for v in undone)
        raise Deadlock(f"{schedule.name} waits for ever, of {microbatches} micro-batches: {stuck}")


def whole_windows(microbatches: int, accumulation: int) -> None:
    """Raise ValueError unless `microbatches` is a positive whole number of windows."""
    if not is_whole(microbatches, 1) or microbatches % accumulation:
        raise ValueError(
            f"micro-batches must come in whole windows of {accumulation}, not {microbatches!r}"
        )

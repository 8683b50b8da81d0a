"""The discrete-event loop: which rank does what, and when, under a rule and a cost model.

`simulate` and `LocalPipeline` both run on it, so they perform the same actions in the same order.

    agenda ──▶ all events of the earliest instant ──▶ counts of the stages
      ▲                                                       │
      └── end of the action, arrival of its message ◀── rule: what next?  (each idle rank)

All events of one instant are delivered before any rank decides, and a rank sees only its own
counts, so the order in which ranks decide at one instant changes nothing.
"""

from collections.abc import Iterator
from heapq import heappop, heappush
from typing import NamedTuple

from paci.actions import ENDS_BACKWARD, FORWARD, WEIGHT_GRADIENT
from paci.checks import is_whole
from paci.cost import Durations
from paci.schedules import Schedule, StageView


class Step(NamedTuple):
    """An action with its times.

    `version` is the stage's count of updates when the action starts; `end` includes the update
    that the action may cause.
    """

    rank: int
    stage: int
    kind: str
    microbatch: int
    start: float
    end: float
    version: int


StepFields = tuple[int, int, str, int, float, float, int]
"""The fields of a `Step` as a plain tuple."""


class Deadlock(RuntimeError):
    """Every rank waits although there is work left: a fault of the schedule."""


NO_STAGE = -1  # a number, because the agenda sorts simultaneous events by it


def run_schedule(
    schedule: Schedule, microbatches: int, durations: Durations
) -> Iterator[StepFields]:
    """Yield the fields of every `Step`, in the order in which the actions start.

    A step is yielded before it takes effect and after everything that it depends on. The tuples
    are plain because half a million of them a second pass through here.

    Raises ValueError unless `microbatches` is a whole number of windows, and Deadlock if the rule
    leaves work undone.
    """
    N, a = schedule.stages, schedule.accumulation
    whole_windows(microbatches, a)

    views = [StageView(stage, is_last=stage == N - 1) for stage in range(N)]
    views_of = [tuple(views[stage] for stage in stages) for stages in schedule.placement]
    rank_of = schedule.rank_of
    idle = [True] * len(views_of)
    views[0].inputs = microbatches

    # An event: its time, the kind of the action, the stage whose action ends (its rank is idle
    # again) and the stage that its message reaches; often both at once.
    agenda: list[tuple[float, str, int, int]] = []
    now, to_decide = 0.0, list(range(len(views_of)))
    while True:
        for rank in to_decide:
            if not idle[rank] or (choice := schedule.next(views_of[rank])) is None:
                continue
            view, kind = choice
            stage = view.index
            microbatch = view.microbatch(kind)
            receiver = stage + 1 if kind == FORWARD else stage - 1
            if kind == WEIGHT_GRADIENT or not 0 <= receiver < N:
                receiver = NO_STAGE

            done = end = now + durations.of[kind][stage][microbatch]
            if kind in ENDS_BACKWARD and (view.weights + 1) % a == 0:
                end += durations.update[stage]
            idle[rank] = False
            yield rank, stage, kind, microbatch, now, end, view.weights // a

            arrival = done
            if receiver != NO_STAGE and rank_of[receiver] != rank:
                arrival += durations.transfer[stage][microbatch]
            if receiver == NO_STAGE or arrival == end:
                heappush(agenda, (end, kind, stage, receiver))
            else:
                heappush(agenda, (end, kind, stage, NO_STAGE))
                heappush(agenda, (arrival, kind, NO_STAGE, receiver))

        if not agenda:
            break
        now, to_decide = agenda[0][0], []
        while agenda and agenda[0][0] == now:
            _, kind, ended, reached = heappop(agenda)
            if ended != NO_STAGE:
                views[ended].finish(kind)
                rank = rank_of[ended]
                idle[rank] = True
                to_decide.append(rank)
            if reached != NO_STAGE:
                views[reached].arrive(kind)
                to_decide.append(rank_of[reached])

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

"""PACI (Elam et al., arXiv 2606.07881): no bubbles, one copy of the weights, bounded drift.

A stage runs a backward as soon as its gradient is here. Otherwise it runs a forward, if the input
is here and few enough micro-batches are in flight. It updates on its own after `accumulation`
backwards, and nothing waits for that. Three stages, a = 2, a backward as long as a forward; `|` is
the stage's own update (digits are micro-batches, backwards primed):

    stage 0   0  1  2  .  .  0' 3  1'|4  2' 5  3'|6  4' 7
    stage 1   .  0  1  .  0' 2  1'|3  2' 4  3'|5  4' 6  5'|
    stage 2   .  .  0  0' 1  1'|2  2' 3  3'|4  4' 5  5'|6

Micro-batch 2 at stage 0 runs forward before the first update and backward after it: its drift
is 1.
"""

from collections.abc import Sequence

from paci.actions import BACKWARD, FORWARD
from paci.checks import is_whole, not_negative
from paci.schedules import theory
from paci.schedules.placement import contiguous
from paci.schedules.rule import Choice, Schedule, StageView


class PACI(Schedule):
    """The paper's rule, and what its authors' code can do beyond it.

    slack            forwards admitted beyond those that fill the pipeline, at every rank but the
                     last. They hide late messages and uneven times, and cost activation memory and
                     drift.
    stages_per_rank  v adjacent stages on each rank. The rank runs a backward of its most downstream
                     stage that has a gradient, else a forward of its most downstream stage that may
                     run one. Adjacent stages send each other no messages. Looping stages over the
                     ranks, as interleaved 1F1B does, would multiply the messages and the
                     micro-batches in flight to shorten a bubble that PACI does not have.
    in_flight        the limits themselves, instead of N - i + slack: one number for all stages, or
                     one for each. Less than fills the pipeline lowers utilisation, but never
                     deadlocks: the oldest micro-batch in the pipeline may always go on.

    `theory.in_flight_bound` and `theory.drift_bound` are the bounds that follow. Raises ValueError
    for limits below 1, and for `in_flight` together with `slack`.
    """

    name = "paci"
    flushes = False

    def __init__(
        self,
        stages: int,
        accumulation: int | None = None,
        slack: int = 0,
        stages_per_rank: int = 1,
        in_flight: int | Sequence[int] | None = None,
    ):
        super().__init__(stages, accumulation)
        self.slack = not_negative("slack", slack)
        self.placement = contiguous(self.name, stages, stages_per_rank)
        self.stages_per_rank = stages_per_rank
        _check_in_flight(in_flight, stages, slack)
        self.limit = [
            theory.in_flight_bound(stages, i, slack, stages_per_rank, in_flight)
            for i in range(stages)
        ]

    def next(self, stages: tuple[StageView, ...]) -> Choice:
        for stage in reversed(stages):
            if stage.gradients > stage.backwards:
                return stage, BACKWARD
        for stage in reversed(stages):
            if stage.inputs > stage.forwards and stage.in_flight < self.limit[stage.index]:
                return stage, FORWARD
        return None

    def in_flight_limit(self, stage: int) -> int:
        return self.limit[stage]

    def drift_bound(self, stage: int) -> int:
        return theory.drift_of_limit(self.limit[stage], self.accumulation)


class Async1F1B(PACI):
    """Naive asynchronous 1F1B: PACI that updates after every micro-batch."""

    name = "async-1f1b"
    default_accumulation = 1

    @classmethod
    def window(cls, accumulation: int | None) -> int:
        if super().window(accumulation) != 1:
            raise ValueError(
                f"async-1f1b updates after every micro-batch: accumulation must be 1, "
                f"not {accumulation} (that would be paci)"
            )
        return 1


def _check_in_flight(in_flight: int | Sequence[int] | None, stages: int, slack: int) -> None:
    if in_flight is None:
        return
    limits = list(in_flight) if isinstance(in_flight, Sequence) else [in_flight] * stages
    if len(limits) != stages or not all(is_whole(limit, 1) for limit in limits):
        raise ValueError(
            "in_flight must be a whole number of at least 1, or one for each of the "
            f"{stages} stages, not {in_flight!r}"
        )
    if slack:
        raise ValueError(
            f"in_flight sets the limits that slack would raise: give one of the two, not "
            f"in_flight={in_flight!r} and slack={slack}"
        )

"""PACI (Elam et al., arXiv 2606.07881): no bubbles, one copy of the weights, bounded drift.

A stage runs a backward as soon as its gradient is here. Otherwise it admits a forward, if its
input is here and few enough are in flight. It updates alone after `accumulation` backwards, and
nothing waits for that. Three stages, a = 2, a backward as long as a forward; `|` is the stage's
own update (digits are micro-batches, backwards primed):

    stage 0   0  1  2  .  .  0' 3  1'|4  2' 5  3'|6  4' 7
    stage 1   .  0  1  .  0' 2  1'|3  2' 4  3'|5  4' 6  5'|
    stage 2   .  .  0  0' 1  1'|2  2' 3  3'|4  4' 5  5'|6

Micro-batch 2 at stage 0 runs forward before the first update and backward after it: its drift
is 1.
"""

from paci.actions import BACKWARD, FORWARD
from paci.checks import not_negative
from paci.schedules.rule import Choice, Schedule, StageView
from paci.schedules.theory import in_flight_bound


class PACI(Schedule):
    """`slack` more forwards are admitted at every stage but the last.

    Slack rides out late messages and uneven times, and costs activation memory and drift.
    """

    name = "paci"
    flushes = False

    def __init__(self, stages: int, accumulation: int | None = None, slack: int = 0):
        super().__init__(stages, accumulation)
        self.slack = not_negative("slack", slack)
        self.limit = [in_flight_bound(stages, i, slack) for i in range(stages)]

    def next(self, stages: tuple[StageView, ...]) -> Choice:
        (stage,) = stages
        if stage.gradients > stage.backwards:
            return stage, BACKWARD
        if stage.inputs > stage.forwards and stage.in_flight < self.limit[stage.index]:
            return stage, FORWARD
        return None


class Async1F1B(PACI):
    """Naive asynchronous 1F1B: PACI that updates after every micro-batch."""

    name = "async-1f1b"
    default_accumulation = 1

    def __init__(self, stages: int, accumulation: int | None = None, slack: int = 0):
        super().__init__(stages, accumulation, slack)
        if self.accumulation != 1:
            raise ValueError(
                f"async-1f1b updates after every micro-batch: accumulation must be 1, "
                f"not {accumulation} (that would be paci)"
            )

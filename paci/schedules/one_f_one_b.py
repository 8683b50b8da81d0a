"""1F1B with a flush (Narayanan et al., SC 2021): the fewest in flight that fill the pipeline.

Three stages, m = 4, a backward as long as a forward (digits are micro-batches, backwards primed):

    stage 0   0  1  2  .  .  0' 3  1' .  2' .  3'
    stage 1   .  0  1  .  0' 2  1' 3  2' .  3' .
    stage 2   .  .  0  0' 1  1' 2  2' 3  3' .  .

The order is fixed: a stage runs forwards until N - i micro-batches are in flight, then alternates
backward and forward, and waits for whichever is next.
"""

from itertools import pairwise

from paci.actions import BACKWARD, FORWARD
from paci.schedules.placement import contiguous
from paci.schedules.rule import Choice, Schedule, StageView, if_ready
from paci.schedules.theory import in_flight_bound


class OneFOneBFlush(Schedule):
    """1F1B, drained between updates.

    stages_per_rank   v adjacent stages on each rank. A rank runs a micro-batch through all of them
                      in a row, so its order is that of one stage as large as the v together.
    """

    name = "1f1b-flush"

    def __init__(self, stages: int, accumulation: int | None = None, stages_per_rank: int = 1):
        super().__init__(stages, accumulation)
        self.placement = contiguous(self.name, stages, stages_per_rank)
        self.stages_per_rank = stages_per_rank
        self.limit = [
            in_flight_bound(stages, i, stages_per_rank=stages_per_rank) for i in range(stages)
        ]

    def next(self, stages: tuple[StageView, ...]) -> Choice:
        first, last = stages[0], stages[-1]
        for upstream, stage in pairwise(stages):
            if stage.forwards < upstream.forwards:
                return if_ready(stage, FORWARD)
            if upstream.backwards < stage.backwards:
                return if_ready(upstream, BACKWARD)
        if first.in_flight < self.limit[first.index] and self.window_is_open(first):
            return if_ready(first, FORWARD)
        return if_ready(last, BACKWARD)

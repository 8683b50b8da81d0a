"""1F1B with a flush (Narayanan et al., SC 2021): as few micro-batches in flight as fill the pipe.

Three stages, m = 4, a backward as long as a forward (digits are micro-batches, backwards primed):

    stage 0   0  1  2  .  .  0' 3  1' .  2' .  3'
    stage 1   .  0  1  .  0' 2  1' 3  2' .  3' .
    stage 2   .  .  0  0' 1  1' 2  2' 3  3' .  .

The order is fixed: a stage fills up to N - i micro-batches in flight, then alternates, and waits
for whichever is next.
"""

from paci.actions import BACKWARD, FORWARD
from paci.schedules.rule import Choice, Schedule, StageView, if_ready


class OneFOneBFlush(Schedule):
    name = "1f1b-flush"

    def next(self, stages: tuple[StageView, ...]) -> Choice:
        (stage,) = stages
        if stage.in_flight < self.stages - stage.index and self.window_is_open(stage):
            return if_ready(stage, FORWARD)
        return if_ready(stage, BACKWARD)

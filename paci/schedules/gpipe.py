"""GPipe (Huang et al., NeurIPS 2019): all forwards of a window, then all its backwards.

Three stages, m = 4, a backward as long as a forward (digits are micro-batches, backwards primed):

    stage 0   0  1  2  3  .  .  .  .  0' 1' 2' 3'
    stage 1   .  0  1  2  3  .  .  0' 1' 2' 3' .
    stage 2   .  .  0  1  2  3  0' 1' 2' 3' .  .
"""

from paci.actions import BACKWARD, FORWARD
from paci.schedules.rule import Choice, Schedule, StageView, if_ready


class GPipe(Schedule):
    """Forward while the window is open, then backward."""

    name = "gpipe"

    def next(self, stages: tuple[StageView, ...]) -> Choice:
        (stage,) = stages
        if self.window_is_open(stage):
            return if_ready(stage, FORWARD)
        return if_ready(stage, BACKWARD)

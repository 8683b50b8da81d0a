"""ZB-H1 (Qi et al., ICLR 2024): 1F1B with a split backward, which leaves a third of the bubble.

Three stages, m = 5, all actions equally long (digits are micro-batches; `i` is the gradient of the
input, `w` the gradients of the weights):

    stage 0   0  1  2  .  .  0i 0w 3  1i 1w 4  2i 2w 3i 3w 4i 4w
    stage 1   .  0  1  .  0i 2  1i 0w 3  2i 1w 4  3i 2w 4i 3w 4w
    stage 2   .  .  0  0i 1  1i 2  2i 0w 3  3i 1w 4  4i 2w 3w 4w

A stage sends the gradient of its input as soon as it can (`0i`) and computes the gradients of its
weights later (`0w`), when it would otherwise wait. At stage i the weight gradients run i
micro-batches behind the input gradients, so that every stage has N micro-batches in flight, as the
first stage of 1F1B has.
"""

from paci.actions import FORWARD, INPUT_GRADIENT, WEIGHT_GRADIENT
from paci.schedules.rule import Choice, Schedule, StageView, if_ready


class ZBH1(Schedule):
    """The handcrafted order, for equal times of forward and both halves of the backward."""

    name = "zb-h1"
    depth = 1  # micro-batches in flight per stage below, beyond the stage's own one

    def next(self, stages: tuple[StageView, ...]) -> Choice:
        (stage,) = stages
        below = self.stages - 1 - stage.index
        behind = stage.backwards - stage.weights
        window_is_through = stage.backwards % self.accumulation == 0
        if behind > (0 if window_is_through else self.depth * stage.index):
            return stage, WEIGHT_GRADIENT
        if stage.forwards - stage.backwards <= self.depth * below and self.window_is_open(stage):
            return if_ready(stage, FORWARD)
        return if_ready(stage, INPUT_GRADIENT)

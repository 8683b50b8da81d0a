"""ZB-V (Qi et al., ICLR 2024): no bubble with the memory of 1F1B.

Four stages on two ranks, m = 3, all actions equally long (stage, kind, micro-batch; I is the half
of a backward that gives the gradient of the input, W the half that gives those of the weights):

    rank 0   0F0 0F1 0F2 3F0 3I0 3W0 3F1 3I1 3W1 0I0 0W0 3F2 3I2 3W2 0I1 0W1 0I2 0W2
    rank 1   .   1F0 2F0 1F1 2F1 2I0 2W0 1F2 1I0 1W0 2F2 2I1 2W1 1I1 2I2 1I2 1W1 2W2 1W2

Each rank owns a stage on the way down and one on the way up, so the last stage is at rank 0 and
the first gradient is back at every rank as soon as the pipe is full. Stages are half as large as
with one a rank: the 2N of them in flight at a rank weigh as much as the N of 1F1B's first rank.
"""

from collections.abc import Iterator

from paci.actions import FORWARD, INPUT_GRADIENT, WEIGHT_GRADIENT
from paci.schedules.ordered import Ordered
from paci.schedules.placement import v_shaped


class ZBV(Ordered):
    """The handcrafted order for equal times of forward and both halves of the backward."""

    name = "zbv"
    stages_per_rank = 2

    def __init__(self, stages: int, accumulation: int | None = None):
        super().__init__(v_shaped(self.name, stages), accumulation)

    def order(self, rank: int) -> Iterator[tuple[int, str]]:
        down, up = self.placement[rank]
        ranks = len(self.placement)
        below = ranks - 1 - rank
        m = max(self.accumulation, 2 * ranks - 1)  # what fills the pipe, if a window does not
        admitted = 2 * below + 1 + rank

        # Fill: down until the first comes up again, then both ways, then turn what comes up round.
        yield from [(down, FORWARD)] * (2 * below + 1)
        yield from [(up, FORWARD), (down, FORWARD)] * rank
        yield from [(up, FORWARD), (up, INPUT_GRADIENT), (up, WEIGHT_GRADIENT)] * (below + 1)
        # Steady: everything of one micro-batch down, everything of another up.
        for step in range(m - ranks):
            if admitted + step < m:
                yield down, FORWARD
            yield from [(down, INPUT_GRADIENT), (down, WEIGHT_GRADIENT)]
            yield from [(up, FORWARD), (up, INPUT_GRADIENT), (up, WEIGHT_GRADIENT)]
        # Drain: what others wait for first, weight gradients last.
        yield from [(down, INPUT_GRADIENT), (up, INPUT_GRADIENT)] * rank
        yield from [(down, INPUT_GRADIENT), (down, WEIGHT_GRADIENT)] * (below + 1)
        yield from [(up, WEIGHT_GRADIENT)] * rank
        yield from [(down, WEIGHT_GRADIENT)] * rank

"""ZB-V (Qi et al., ICLR 2024): no bubble, at the activation memory of 1F1B.

Four stages on two ranks, m = 3, all actions equally long (stage, kind, micro-batch; I is the
gradient of the input, W the gradients of the weights):

    rank 0   0F0 0F1 0F2 3F0 3I0 3W0 3F1 3I1 3W1 0I0 0W0 3F2 3I2 3W2 0I1 0W1 0I2 0W2
    rank 1   .   1F0 2F0 1F1 2F1 2I0 2W0 1F2 1I0 1W0 2F2 2I1 2W1 1I1 2I2 1I2 1W1 2W2 1W2

Each rank owns one stage on the way down and one on the way up. The last stage is thus at rank 0,
and the first gradient is back at every rank as soon as the pipeline is full. A stage is half as
large as with one per rank, so the 2N in flight at a rank take as much memory as the N of 1F1B's
first rank.
"""

from collections.abc import Iterator

from paci.actions import FORWARD, INPUT_GRADIENT, WEIGHT_GRADIENT
from paci.schedules.fixed_order import FixedOrder, number_actions
from paci.schedules.placement import Placement, v_shaped


class ZBV(FixedOrder):
    """The handcrafted order, for equal times of forward and both halves of the backward."""

    name = "zbv"
    stages_per_rank = 2
    flushes = True

    def __init__(self, stages: int, accumulation: int | None = None):
        placement, m = v_shaped(self.name, stages), self.window(accumulation)
        ranks = range(len(placement))
        super().__init__([number_actions(_steps(placement, r, m), m) for r in ranks], m)


def _steps(placement: Placement, rank: int, microbatches: int) -> Iterator[tuple[int, str]]:
    """Yield the stage and the kind of each action of `rank` in a window."""
    down, up = placement[rank]
    ranks = len(placement)
    below = ranks - 1 - rank
    m = max(microbatches, 2 * ranks - 1)  # enough to fill the pipeline; number_actions cuts it
    admitted = 2 * below + 1 + rank

    # Fill: down until the first comes up again, then both ways, then turn what comes up around.
    yield from [(down, FORWARD)] * (2 * below + 1)
    yield from [(up, FORWARD), (down, FORWARD)] * rank
    yield from [(up, FORWARD), (up, INPUT_GRADIENT), (up, WEIGHT_GRADIENT)] * (below + 1)
    # Steady: everything of one micro-batch down, everything of another up.
    for step in range(m - ranks):
        if admitted + step < m:
            yield down, FORWARD
        yield from [(down, INPUT_GRADIENT), (down, WEIGHT_GRADIENT)]
        yield from [(up, FORWARD), (up, INPUT_GRADIENT), (up, WEIGHT_GRADIENT)]
    # Drain: first what other ranks wait for, weight gradients last.
    yield from [(down, INPUT_GRADIENT), (up, INPUT_GRADIENT)] * rank
    yield from [(down, INPUT_GRADIENT), (down, WEIGHT_GRADIENT)] * (below + 1)
    yield from [(up, WEIGHT_GRADIENT)] * rank
    yield from [(down, WEIGHT_GRADIENT)] * rank

"""DualPipeV (DeepSeek-AI, 2025): DualPipe cut in half, a V of stages that works in both directions.

Four stages on two ranks, m = 4, a full backward twice as long as any other action (stage, kind,
micro-batch; I and W are the halves of a split backward):

    rank 0   0F0 0F1 0F2 3F0 3I0 3W0 3F1 0F3 3B1---- 3F2 0B0---- 3B2---- 3F3 .   0B1---- 3B3- ...
    rank 1   .   1F0 2F0 1F1 2F1 1F2 2B0---- 2F2 1B0---- 1F3 2B1---- 2F3 1B1---- 2B2---- 1B2- ...

In its steady state a rank pairs the forward of one micro-batch with the full backward of another,
so that a device can hide the messages of one behind the computation of the other. Here a rank runs
one action at a time, so the two follow each other. The backward is split only while the pipeline
fills and drains.
"""

from collections import deque
from collections.abc import Iterator

from paci.actions import BACKWARD, FORWARD, INPUT_GRADIENT, WEIGHT_GRADIENT
from paci.schedules.fixed_order import FixedOrder, number_actions
from paci.schedules.placement import Placement, v_shaped


class DualPipeV(FixedOrder):
    """The published order. Raises ValueError for fewer micro-batches per update than stages."""

    name = "dualpipev"
    stages_per_rank = 2
    flushes = True

    def __init__(self, stages: int, accumulation: int | None = None):
        placement, m = v_shaped(self.name, stages), self.window(accumulation)
        if m < stages:
            raise ValueError(
                f"{self.name} needs at least as many micro-batches an update as stages: "
                f"accumulation must be at least {stages}, not {m}"
            )
        ranks = range(len(placement))
        super().__init__([number_actions(_steps(placement, r, m), m) for r in ranks], m)


def _steps(placement: Placement, rank: int, microbatches: int) -> Iterator[tuple[int, str]]:
    """Yield the stage and the kind of each action of `rank` in a window."""
    down, up = placement[rank]
    below = len(placement) - 1 - rank
    steady = microbatches - 2 * len(placement) + rank + 1

    # Fill: down until the first comes up again, then both ways, then turn what comes up around.
    yield from [(down, FORWARD)] * (2 * below)
    yield from [(down, FORWARD), (up, FORWARD)] * (rank + 1)
    yield from [(up, INPUT_GRADIENT), (up, WEIGHT_GRADIENT), (up, FORWARD)] * below
    # Steady: forwards and backwards in pairs, until no more micro-batches enter.
    yield from [(down, FORWARD), (up, BACKWARD), (up, FORWARD), (down, BACKWARD)] * steady
    yield from [(up, BACKWARD), (up, FORWARD), (down, BACKWARD)] * below
    # Drain: backwards in turn, the first half of them full, then the postponed weight gradients.
    yield from ([(up, BACKWARD), (down, BACKWARD)] * (rank + 1))[: rank + 1]
    halves = ([(up, INPUT_GRADIENT), (down, INPUT_GRADIENT)] * (rank + 1))[rank + 1 :]
    yield from halves
    postponed = deque(stage for stage, _ in halves)
    for _ in range(below):
        yield postponed.popleft(), WEIGHT_GRADIENT
        yield down, INPUT_GRADIENT
        postponed.append(down)
    yield from ((stage, WEIGHT_GRADIENT) for stage in postponed)

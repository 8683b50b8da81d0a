"""DualPipeV (DeepSeek-AI, 2025): DualPipe cut in half, a V of stages that works in both directions.

Four stages on two ranks, m = 4, a whole backward twice as long as the rest (stage, kind,
micro-batch; I and W are the halves of a backward):

    rank 0   0F0 0F1 0F2 3F0 3I0 3W0 3F1 0F3 3B1---- 3F2 0B0---- 3B2---- 3F3 .   0B1---- 3B3- ...
    rank 1   .   1F0 2F0 1F1 2F1 1F2 2B0---- 2F2 1B0---- 1F3 2B1---- 2F3 1B1---- 2B2---- 1B2- ...

In its steady state a rank pairs the forward of one micro-batch with the whole backward of another,
so that on a device the messages of one can hide behind the work of the other. Here, where a rank
does one thing at a time, the two follow one another. Only while the pipe fills and drains is the
backward split.
"""

from collections import deque
from collections.abc import Iterator

from paci.actions import BACKWARD, FORWARD, INPUT_GRADIENT, WEIGHT_GRADIENT
from paci.schedules.ordered import Ordered
from paci.schedules.placement import v_shaped


class DualPipeV(Ordered):
    name = "dualpipev"
    stages_per_rank = 2

    def __init__(self, stages: int, accumulation: int | None = None):
        super().__init__(v_shaped(self.name, stages), accumulation)

    def prepare(self) -> None:
        if self.accumulation < self.stages:
            raise ValueError(
                f"{self.name} needs at least as many micro-batches an update as stages: "
                f"accumulation must be at least {self.stages}, not {self.accumulation}"
            )

    def order(self, rank: int) -> Iterator[tuple[int, str]]:
        down, up = self.placement[rank]
        below = len(self.placement) - 1 - rank
        steady = self.accumulation - self.stages + rank + 1

        # Fill: down until the first comes up again, then both ways, then turn what comes up round.
        yield from [(down, FORWARD)] * (2 * below)
        yield from [(down, FORWARD), (up, FORWARD)] * (rank + 1)
        yield from [(up, INPUT_GRADIENT), (up, WEIGHT_GRADIENT), (up, FORWARD)] * below
        # Steady: forwards and backwards in pairs, until no more micro-batches enter.
        yield from [(down, FORWARD), (up, BACKWARD), (up, FORWARD), (down, BACKWARD)] * steady
        yield from [(up, BACKWARD), (up, FORWARD), (down, BACKWARD)] * below
        # Drain: backwards in turn, the first half of them whole, then what was split off.
        yield from ([(up, BACKWARD), (down, BACKWARD)] * (rank + 1))[: rank + 1]
        halves = ([(up, INPUT_GRADIENT), (down, INPUT_GRADIENT)] * (rank + 1))[rank + 1 :]
        yield from halves
        behind = deque(stage for stage, _ in halves)
        for _ in range(below):
            yield behind.popleft(), WEIGHT_GRADIENT
            yield down, INPUT_GRADIENT
            behind.append(down)
        yield from ((stage, WEIGHT_GRADIENT) for stage in behind)

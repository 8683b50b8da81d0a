"""Interleaved 1F1B (Narayanan et al., SC 2021): several stages a rank, to fill the pipe sooner.

Four stages on two ranks, m = 4, a backward as long as a forward (stage, kind, micro-batch):

    rank 0   0F0 0F1 2F0 2F1 0F2 2B0 0F3 2B1 2F2 0B0 2F3 0B1 .   2B2 .   2B3 0B2 0B3
    rank 1   .   1F0 1F1 3F0 3B0 3F1 3B1 1F2 1B0 1F3 1B1 3F2 3B2 3F3 3B3 1B2 1B3

Micro-batches go in rounds of about as many as there are ranks: a rank does a round at its first
stage, then the same round at its second, and so on, and backwards likewise from its last stage.
It fills (v-1) rounds and two more micro-batches for each rank below it, then alternates.
"""

from collections.abc import Iterator

from paci.actions import BACKWARD, FORWARD
from paci.schedules.ordered import Ordered
from paci.schedules.placement import looped


class Interleaved1F1B(Ordered):
    """`stages` in all, `stages_per_rank` (v) of them on each rank: r, r + N/v, r + 2N/v, ..."""

    name = "interleaved-1f1b"
    stages_per_rank = 2

    def __init__(self, stages: int, accumulation: int | None = None, stages_per_rank: int = 2):
        if stages_per_rank == 1:
            raise ValueError(
                f"{self.name} needs at least 2 stages_per_rank, not 1 (that would be 1f1b-flush)"
            )
        super().__init__(looped(self.name, stages, stages_per_rank), accumulation)

    def prepare(self) -> None:
        m, rounds = self.accumulation, max(1, self.accumulation // len(self.placement))
        if m % rounds:
            raise ValueError(
                f"{self.name} works in {rounds} rounds of about one micro-batch for each of the "
                f"{len(self.placement)} ranks: accumulation must be a multiple of {rounds}, "
                f"not {m}"
            )
        self.round = m // rounds

    def order(self, rank: int) -> Iterator[tuple[int, str]]:
        own, ranks = self.placement[rank], len(self.placement)
        v, total = len(own), len(own) * self.accumulation
        forwards = [(own[step // self.round % v], FORWARD) for step in range(total)]
        backwards = [(own[-1 - step // self.round % v], BACKWARD) for step in range(total)]
        warm_up = min((v - 1) * self.round + 2 * (ranks - 1 - rank), total)

        yield from forwards[:warm_up]
        for forward, backward in zip(forwards[warm_up:], backwards, strict=False):
            yield forward
            yield backward
        yield from backwards[total - warm_up :]

"""Interleaved 1F1B (Narayanan et al., SC 2021): several stages per rank fill the pipeline sooner.

Four stages on two ranks, m = 4, a backward as long as a forward (stage, kind, micro-batch):

    rank 0   0F0 0F1 2F0 2F1 0F2 2B0 0F3 2B1 2F2 0B0 2F3 0B1 .   2B2 .   2B3 0B2 0B3
    rank 1   .   1F0 1F1 3F0 3B0 3F1 3B1 1F2 1B0 1F3 1B1 3F2 3B2 3F3 3B3 1B2 1B3

Micro-batches go in rounds of about as many as there are ranks. A rank runs a round at its first
stage, then the same round at its second, and so on; backwards likewise from its last stage. It
warms up with (v-1) rounds and two more micro-batches for each rank below it, then alternates.
"""

from collections.abc import Iterator

from paci.actions import BACKWARD, FORWARD
from paci.schedules.fixed_order import FixedOrder, number_actions
from paci.schedules.placement import Placement, looped


class Interleaved1F1B(FixedOrder):
    """`stages` in all, of which rank r has `stages_per_rank` (v): r, r + N/v, r + 2N/v, ...

    Raises ValueError unless the micro-batches of a window divide evenly into rounds.
    """

    name = "interleaved-1f1b"
    stages_per_rank = 2
    flushes = True

    def __init__(self, stages: int, accumulation: int | None = None, stages_per_rank: int = 2):
        if stages_per_rank == 1:
            raise ValueError(
                f"{self.name} needs at least 2 stages_per_rank, not 1 (that would be 1f1b-flush)"
            )
        placement, m = looped(self.name, stages, stages_per_rank), self.window(accumulation)
        round, ranks = round_of(self.name, m, len(placement)), range(len(placement))
        super().__init__([number_actions(_steps(placement, r, m, round), m) for r in ranks], m)


def round_of(name: str, microbatches: int, ranks: int) -> int:
    """Return the micro-batches of a round; raise ValueError unless they divide a window evenly."""
    rounds = max(1, microbatches // ranks)
    if microbatches % rounds:
        raise ValueError(
            f"{name} works in {rounds} rounds of about one micro-batch for each of the {ranks} "
            f"ranks: accumulation must be a multiple of {rounds}, not {microbatches}"
        )
    return microbatches // rounds


def _steps(
    placement: Placement, rank: int, microbatches: int, round: int
) -> Iterator[tuple[int, str]]:
    """Yield the stage and the kind of each action of `rank` in a window of rounds of `round`."""
    own, ranks = placement[rank], len(placement)
    v, total = len(own), len(own) * microbatches
    forwards = [(own[step // round % v], FORWARD) for step in range(total)]
    backwards = [(own[-1 - step // round % v], BACKWARD) for step in range(total)]
    warm_up = min((v - 1) * round + 2 * (ranks - 1 - rank), total)

    yield from forwards[:warm_up]
    for forward, backward in zip(forwards[warm_up:], backwards, strict=False):
        yield forward
        yield backward
    yield from backwards[total - warm_up :]

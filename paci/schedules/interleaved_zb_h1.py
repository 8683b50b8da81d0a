"""Interleaved ZB-H1: interleaved 1F1B with a split backward, as PyTorch has it
(`ScheduleInterleavedZeroBubble`).

Four stages on two ranks, m = 4, all actions equally long (stage, kind, micro-batch; I is the
gradient of the input, W the gradients of the weights):

    rank 0   0F0 0F1 2F0 2F1 .   2I0 2W0 0F2 2I1 2W1 0F3 0I0 0W0 2F2 0I1 0W1 2F3 2I2 2W2 2I3 2W3 ...
    rank 1   .   1F0 1F1 3F0 3I0 3F1 3I1 3W0 1F2 1I0 3W1 1F3 1I1 1W0 3F2 3I2 1W1 3F3 3I3 3W2 1I2 ...

A rank warms up with (v-1) rounds and one more micro-batch for each rank below it. Then it
alternates as in interleaved 1F1B, and computes the gradients of the weights `rank` micro-batches
behind those of the input. With one stage per rank this is ZB-H1.
"""

from collections.abc import Iterator

from paci.actions import FORWARD, INPUT_GRADIENT, WEIGHT_GRADIENT
from paci.schedules.fixed_order import FixedOrder, number_actions
from paci.schedules.interleaved import round_of
from paci.schedules.placement import Placement, looped


class InterleavedZBH1(FixedOrder):
    """`stages` in all, of which rank r has `stages_per_rank` (v): r, r + N/v, r + 2N/v, ...

    Raises ValueError unless the micro-batches of a window divide evenly into rounds.
    """

    name = "interleaved-zb-h1"
    stages_per_rank = 2
    flushes = True

    def __init__(self, stages: int, accumulation: int | None = None, stages_per_rank: int = 2):
        if stages_per_rank == 1:
            raise ValueError(
                f"{self.name} needs at least 2 stages_per_rank, not 1 (that would be zb-h1)"
            )
        placement, m = looped(self.name, stages, stages_per_rank), self.window(accumulation)
        round, ranks = round_of(self.name, m, len(placement)), range(len(placement))
        super().__init__([number_actions(_steps(placement, r, m, round), m) for r in ranks], m)


def _steps(
    placement: Placement, rank: int, microbatches: int, round: int
) -> Iterator[tuple[int, str]]:
    """Yield the stage and the kind of each action of `rank` in a window of rounds of `round`."""
    own, ranks = placement[rank], len(placement)
    v, total = len(own), len(own) * microbatches
    forwards = [(own[step // round % v], FORWARD) for step in range(total)]
    inputs = [(own[-1 - step // round % v], INPUT_GRADIENT) for step in range(total)]
    weights = [(stage, WEIGHT_GRADIENT) for stage, _ in inputs]
    warm_up = min((v - 1) * round + ranks - 1 - rank, total)

    yield from forwards[:warm_up]
    for step in range(total):
        yield from forwards[warm_up + step : warm_up + step + 1]
        yield inputs[step]
        if step >= rank:
            yield weights[step - rank]
    yield from weights[max(0, total - rank) :]

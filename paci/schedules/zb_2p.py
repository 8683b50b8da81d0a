"""ZB-1p and ZB-2p (Qi et al., ICLR 2024): the greedy order under a limit of N, or 2N, in flight.

ZB-2p, three stages, m = 6, all actions equally long (digits are micro-batches; `i` is the half of
a backward that gives the gradient of the input, `w` the half that gives those of the weights):

    stage 0   0  1  2  3  4  0i 5  1i 0w 2i 1w 3i 2w 4i 3w 5i 4w 5w
    stage 1   .  0  1  2  0i 3  1i 4  2i 5  3i 0w 4i 1w 5i 2w 3w 4w 5w
    stage 2   .  .  0  0i 1  1i 2  2i 3  3i 4  4i 5  5i 0w 1w 2w 3w 4w 5w

Where ZB-H1 and ZB-H2 are made for equal times, these are planned for `measured` ones, once for
each window length; without them they are planned for equal times.
"""

from collections.abc import Mapping

from paci.checks import is_number, positive
from paci.cost import Cost
from paci.schedules.greedy import greedy_orders
from paci.schedules.ordered import Ordered


class ZB2P(Ordered):
    """measured   the `Cost` to plan for, or a mapping of its fields
    limit      micro-batches in flight at a stage, at least N
    held       share of a micro-batch's activations that its weight gradient needs: what stays in
               memory, and counts towards the limit, once its input gradient is done
    """

    name = "zb-2p"
    limit_per_stage = 2

    def __init__(
        self,
        stages: int,
        accumulation: int | None = None,
        measured: Cost | Mapping | None = None,
        limit: int | None = None,
        held: float = 1.0,
    ):
        positive("stages", stages)
        self.limit = self.limit_per_stage * stages if limit is None else positive("limit", limit)
        if self.limit < stages:
            raise ValueError(
                f"{self.name} needs a limit of at least one micro-batch a stage ({stages}), "
                f"not {limit}"
            )
        if not is_number(held) or not 0 <= held <= 1:
            raise ValueError(f"held must be a share from 0 to 1, not {held!r}")
        self.held = held
        self.measured = _cost(measured)
        super().__init__(tuple((stage,) for stage in range(stages)), accumulation)

    def prepare(self) -> None:
        self._plan = greedy_orders(
            self.stages, self.accumulation, self.limit, self.measured, self.held
        )

    def order(self, rank: int) -> list[tuple[int, str]]:
        return [(action.stage, action.kind) for action in self._plan[rank]]


class ZB1P(ZB2P):
    name = "zb-1p"
    limit_per_stage = 1


def _cost(measured: Cost | Mapping | None) -> Cost:
    if measured is None:
        return Cost()
    if isinstance(measured, Cost):
        return measured
    try:
        return Cost(**measured)
    except TypeError as error:
        raise ValueError(
            f"measured must be a paci.Cost, or a mapping of its fields, not {measured!r}"
        ) from error

"""ZB-1p and ZB-2p (Qi et al., ICLR 2024): the greedy order under a limit of N, or 2N, in flight.

ZB-2p, three stages, m = 6, all actions equally long (digits are micro-batches; `i` is the gradient
of the input, `w` the gradients of the weights):

    stage 0   0  1  2  3  4  0i 5  1i 0w 2i 1w 3i 2w 4i 3w 5i 4w 5w
    stage 1   .  0  1  2  0i 3  1i 4  2i 5  3i 0w 4i 1w 5i 2w 3w 4w 5w
    stage 2   .  .  0  0i 1  1i 2  2i 3  3i 4  4i 5  5i 0w 1w 2w 3w 4w 5w

ZB-H1 and ZB-H2 are made for equal times. These two plan an order for `measured` times, once for
each length of a window; without measured times they plan for equal ones.
"""

from collections.abc import Mapping
from typing import Any

from paci.checks import is_number, positive
from paci.cost import Cost
from paci.schedules.fixed_order import FixedOrder
from paci.schedules.greedy import greedy_orders


class ZB2P(FixedOrder):
    """The greedy order for at most `limit` micro-batches in flight at a stage.

    measured   the `Cost` to plan for, or a mapping of its fields; None: equal times
    limit      micro-batches in flight at a stage, at least N; None: 2N (ZB-1p: N)
    held       the share of a micro-batch's activations that its weight gradient needs, from 0 to
               1: it stays in memory, and counts towards the limit, after the input gradient

    Raises ValueError for values outside these ranges.
    """

    name = "zb-2p"
    limit_per_stage = 2
    flushes = True

    def __init__(
        self,
        stages: int,
        accumulation: int | None = None,
        measured: Cost | Mapping[str, Any] | None = None,
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
        m = self.window(accumulation)
        super().__init__(greedy_orders(stages, m, self.limit, _cost(measured), held), m)


class ZB1P(ZB2P):
    """ZB-2p with at most N micro-batches in flight: the activation memory of 1F1B."""

    name = "zb-1p"
    limit_per_stage = 1


def _cost(measured: Cost | Mapping[str, Any] | None) -> Cost:
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

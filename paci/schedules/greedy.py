"""The greedy order of a pipeline with split backwards, for measured times and a memory limit.

The idea is that of the automatic scheduler of Qi et al., ICLR 2024; what is below is our own rule.
Each rank of one stage, whenever it is free, at the times that `cost` says:

    fewer in flight than the rank's depth?   forward, if its input is here and memory has room
    otherwise                                input gradient, if its gradient is here
    while that has not come                  weight gradient, if there is time for it, or no room

How deep a rank should be, and how much of a weight gradient may overlap the next arrival, depends
on the times. So a few of both are tried, and the order with the shortest window is kept. Among
them are those of ZB-H1 and ZB-H2, where weight gradients run a fixed number behind.
"""

from heapq import heappop, heappush
from math import ceil, floor, inf

from paci.actions import FORWARD, INPUT_GRADIENT, WEIGHT_GRADIENT, Action
from paci.cost import Cost, Durations

# Start a weight gradient if the next arrival is so much of its time away, or not known yet;
# without patience when more are behind than the handcrafted orders let be.
PATIENCE = (0.5, 1.0, None)


def greedy_orders(
    stages: int, microbatches: int, limit: float, cost: Cost, held: float = 1.0
) -> list[list[Action]]:
    """The orders of one window: at most `limit` micro-batches' activations at a stage, of which
    `held` is the share that is kept from the input gradient until the weight gradient."""
    deepest = (limit - 1) / max(1, stages - 1)  # more would never have room at the first rank
    depths = {1.0, min(1.5, deepest), min(2.0, deepest), (1 + deepest) / 2, deepest}
    durations = Durations(cost, stages, 1)
    times = {kind: [time for (time,) in each] for kind, each in durations.of.items()}
    plans = [
        _plan(stages, microbatches, limit, times, durations.transfer, held, depth, patience)
        for depth in sorted(depths)
        for patience in PATIENCE
    ]
    return min(plans, key=lambda plan: plan[0])[1]


class _Rank:
    def __init__(self, depth: int, lag: int):
        self.depth = depth  # forwards admitted before their input gradient
        self.lag = lag  # weight gradients that may be behind, in a handcrafted order
        self.inputs: list[float] = []  # when they arrive, as far as that is known
        self.gradients: list[float] = []
        self.forwards = self.backwards = self.weights = 0
        self.start: float | None = None
        self.free = 0.0
        self.order: list[Action] = []


def _plan(
    stages: int,
    microbatches: int,
    limit: float,
    times: dict[str, list[float]],
    transfer: list[float],
    held: float,
    depth: float,
    patience: float | None,
) -> tuple[float, list[list[Action]]]:
    """The longest time from a rank's first start to its last end, and the orders."""
    ranks = [
        _Rank(1 + ceil(depth * (stages - 1 - i) - 1e-9), floor(depth * i + 1e-9))
        for i in range(stages)
    ]
    ranks[0].inputs = [0.0] * microbatches
    agenda = [(0.0, 0)]  # when something ends or arrives, and at which rank
    while agenda:
        now, i = heappop(agenda)
        rank = ranks[i]
        if rank.free > now:
            continue
        gap = None if patience is None else patience * times[WEIGHT_GRADIENT][i]
        kind = _choose(rank, now, microbatches, limit, held, gap)
        if kind is None:
            continue
        end = now + times[kind][i]
        arrival = end + transfer[i]
        if kind == FORWARD:
            microbatch, rank.forwards = rank.forwards, rank.forwards + 1
            if i < stages - 1:
                ranks[i + 1].inputs.append(arrival)
                heappush(agenda, (arrival, i + 1))
            else:
                rank.gradients.append(end)
        elif kind == INPUT_GRADIENT:
            microbatch, rank.backwards = rank.backwards, rank.backwards + 1
            if i > 0:
                ranks[i - 1].gradients.append(arrival)
                heappush(agenda, (arrival, i - 1))
        else:
            microbatch, rank.weights = rank.weights, rank.weights + 1
        rank.order.append(Action(i, kind, microbatch))
        rank.start = now if rank.start is None else rank.start
        rank.free = end
        heappush(agenda, (end, i))
    return max(rank.free - rank.start for rank in ranks), [rank.order for rank in ranks]


def _choose(
    rank: _Rank, now: float, microbatches: int, limit: float, held: float, gap: float | None
) -> str | None:
    in_flight = rank.forwards - rank.backwards
    behind = rank.backwards - rank.weights
    if gap is None and behind > rank.lag:
        return WEIGHT_GRADIENT
    if rank.forwards < microbatches and in_flight < rank.depth:
        room = in_flight + held * behind + 1 <= limit + 1e-9
        kind, arrivals, next = FORWARD, rank.inputs, rank.forwards
    else:
        room = True
        kind, arrivals, next = INPUT_GRADIENT, rank.gradients, rank.backwards
    arrival = arrivals[next] if next < len(arrivals) else inf
    if room and arrival <= now:
        return kind
    through = rank.backwards == microbatches
    if behind and (not room or through or (gap is not None and arrival - now >= gap)):
        return WEIGHT_GRADIENT
    return None

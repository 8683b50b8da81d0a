"""Greedy planning of a split-backward schedule, for measured times and a memory limit.

The idea is that of the automatic scheduler of Qi et al., ICLR 2024; the rule below is our own.
Each rank has one stage. Whenever it is free:

    fewer in flight than the rank's depth   forward, if its input is here and memory has room
    otherwise                               input gradient, if its gradient is here
    while neither can run                   weight gradient, if there is time for it or no room

The best depth of a rank, and the best overlap of a weight gradient with the next arrival, depend on
the times. So several of both are tried, and the order with the shortest window is kept. Among them
are the orders of ZB-H1 and ZB-H2, where weight gradients run a fixed number behind.

The planner has an event loop of its own because its rule looks ahead: it compares the time until
the *next* arrival with the time of a weight gradient. A `Schedule` in `simulation.event_loop` sees
only what has arrived, as a rank of a real pipeline does, so it cannot be such a rule.
"""

from collections.abc import Mapping
from heapq import heappop, heappush
from math import ceil, floor, inf

from paci.actions import FORWARD, INPUT_GRADIENT, WEIGHT_GRADIENT, Action
from paci.cost import Cost, Durations

PATIENCES = (0.5, 1.0, None)
"""The share of its own time by which a weight gradient must precede the next arrival to be started
first. None: it is started when more of them are postponed than in the handcrafted orders."""


def greedy_orders(
    stages: int, microbatches: int, limit: float, cost: Cost, held: float = 1.0
) -> list[list[Action]]:
    """Return the orders of one window, one list per rank.

    At most `limit` micro-batches' activations are in memory at a stage; `held` is the share of one
    that stays from its input gradient until its weight gradient.
    """
    deepest = (limit - 1) / max(1, stages - 1)  # more would never have room at the first rank
    depths = {1.0, min(1.5, deepest), min(2.0, deepest), (1 + deepest) / 2, deepest}
    planner = _Planner(stages, microbatches, limit, cost, held)
    candidates = [
        planner.plan(depth, patience) for depth in sorted(depths) for patience in PATIENCES
    ]
    return min(candidates, key=lambda candidate: candidate[0])[1]


class _Rank:
    """One rank's state while an order is planned."""

    def __init__(self, depth: int, lag: int):
        self.depth = depth  # forwards admitted before their input gradient
        self.lag = lag  # weight gradients that may be postponed, in a handcrafted order
        self.inputs: list[float] = []  # times of arrival, as far as they are known
        self.gradients: list[float] = []
        self.forwards = self.backwards = self.weights = 0
        self.start: float | None = None
        self.free = 0.0
        self.order: list[Action] = []

    @property
    def length(self) -> float:
        """Time from the first start to the last end."""
        return self.free - (self.start or 0.0)


class _Planner:
    """Plans the orders of one window for given times and a given memory limit."""

    def __init__(self, stages: int, microbatches: int, limit: float, cost: Cost, held: float):
        durations = Durations(cost, stages, 1)
        self.times: Mapping[str, list[float]] = {
            kind: [time for (time,) in each] for kind, each in durations.of.items()
        }
        self.transfer = [time for (time,) in durations.transfer]
        self.stages = stages
        self.microbatches = microbatches
        self.limit = limit
        self.held = held

    def plan(self, depth: float, patience: float | None) -> tuple[float, list[list[Action]]]:
        """Return the length of the window at its slowest rank, and the orders."""
        ranks = [
            _Rank(1 + ceil(depth * (self.stages - 1 - i) - 1e-9), floor(depth * i + 1e-9))
            for i in range(self.stages)
        ]
        ranks[0].inputs = [0.0] * self.microbatches
        agenda = [(0.0, 0)]  # times at which an action ends or a message arrives, with the rank
        while agenda:
            now, i = heappop(agenda)
            rank = ranks[i]
            if rank.free > now:
                continue
            gap = None if patience is None else patience * self.times[WEIGHT_GRADIENT][i]
            kind = self._choose(rank, now, gap)
            if kind is None:
                continue
            end = now + self.times[kind][i]
            arrival = end + self.transfer[i]
            if kind == FORWARD:
                microbatch, rank.forwards = rank.forwards, rank.forwards + 1
                if i < self.stages - 1:
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
        return max(rank.length for rank in ranks), [rank.order for rank in ranks]

    def _choose(self, rank: _Rank, now: float, gap: float | None) -> str | None:
        """Return the kind of the next action of `rank`, or None to wait.

        A weight gradient is worth starting if the next arrival is at least `gap` away.
        """
        in_flight = rank.forwards - rank.backwards
        postponed = rank.backwards - rank.weights
        if gap is None and postponed > rank.lag:
            return WEIGHT_GRADIENT
        if rank.forwards < self.microbatches and in_flight < rank.depth:
            room = in_flight + self.held * postponed + 1 <= self.limit + 1e-9
            kind, arrivals, next = FORWARD, rank.inputs, rank.forwards
        else:
            room = True
            kind, arrivals, next = INPUT_GRADIENT, rank.gradients, rank.backwards
        arrival = arrivals[next] if next < len(arrivals) else inf
        if room and arrival <= now:
            return kind
        is_through = rank.backwards == self.microbatches
        has_time = gap is not None and arrival - now >= gap
        if postponed and (not room or is_through or has_time):
            return WEIGHT_GRADIENT
        return None

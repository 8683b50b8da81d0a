"""Figures that are measured again and again, until their intervals are narrow.

    round 1   A B C      round 2   C B A      round 3   A B C      ...

Every round runs all sides, one after the other, and gives one value of each figure: mostly a ratio
of two sides. A machine that slows down for a while hits both of them. Every other round runs in
reverse order, so that one that slows down steadily favours none.
"""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, stdev
from typing import TypeVar

from scipy.stats import t as student

T = TypeVar("T")
LEAST = 3
"""The rounds that are run however long they take."""
NARROW = 0.02
"""The width of an interval, as a share of the value, at which no more rounds are run."""


@dataclass(frozen=True)
class Estimate:
    """The geometric mean of a figure over `rounds`, and its 95 % interval by Student's t on the
    logarithms. The interval of one round is infinite."""

    value: float
    low: float
    high: float
    rounds: int

    @classmethod
    def of(cls, values: Sequence[float]) -> "Estimate":
        """Return the estimate from one positive value per round."""
        logs, count = [math.log(value) for value in values], len(values)
        centre, half = mean(logs), math.inf
        if count > 1:
            half = float(student.ppf(0.975, count - 1)) * stdev(logs) / math.sqrt(count)
        return cls(
            math.exp(centre), math.exp(centre - half), math.exp(min(centre + half, 700)), count
        )

    @property
    def width(self) -> float:
        """The width of the interval as a share of the value."""
        return (self.high - self.low) / self.value


def in_rounds(
    sides: Sequence[Callable[[], T]],
    figures: Callable[[Sequence[T]], Mapping[str, float]],
    most_seconds: float,
    narrow: float = NARROW,
) -> dict[str, Estimate]:
    """Return the estimate of every figure, from rounds of all `sides`.

    `figures` makes the figures of a round from what the sides have returned, in their order. Rounds
    end when all intervals are `narrow`, or when another one would end after `most_seconds`; there
    are at least LEAST.
    """
    start, rounds = time.monotonic(), []
    while True:
        order = range(len(sides))[:: -1 if len(rounds) % 2 else 1]
        results = {side: sides[side]() for side in order}
        rounds.append(figures([results[side] for side in range(len(sides))]))
        estimates = {key: Estimate.of([each[key] for each in rounds]) for key in rounds[0]}
        if len(rounds) < LEAST:
            continue
        spent = time.monotonic() - start
        if spent + spent / len(rounds) > most_seconds:
            return estimates
        if all(estimate.width <= narrow for estimate in estimates.values()):
            return estimates

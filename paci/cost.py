"""Times of actions on the simulated clock."""

import math
import operator
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, fields, replace
from itertools import cycle, islice
from typing import Any

from paci.actions import BACKWARD, FORWARD, INPUT_GRADIENT, KINDS, WEIGHT_GRADIENT
from paci.checks import is_number
from paci.draws import uniform

PerStage = float | Sequence[float]

SHORTEST, LONGEST = 1e-100, 1e100  # beyond, sums and ratios of times leave floating point
WHOLE = 1.5 * 2.0**52  # added and subtracted, it rounds as `round` does, several times faster
MAY_BE_ZERO = ("update", "transfer", "jitter")


@dataclass(frozen=True)
class Cost:
    """Times of one micro-batch, in any one unit; each is one number, or one number per stage.

    forward, backward   a full forward and a full backward; above 0
    weight              the part of a split backward that gives the gradients of the weights; half
                        of the backward if not given
    input               the other part, which gives the gradient of the input; `backward` minus
                        `weight` if not given (measured, the two may take longer than the backward)
    update              an optimizer step, which the rank spends at the end of a window's last
                        backward
    transfer            a message, activation or gradient, from a stage to the next rank
    jitter              0.1 draws each duration within ±10 %, from (seed, stage, kind, micro-batch)
    sizes               relative sizes of the micro-batches of a window, in order: micro-batch k
                        takes sizes[k modulo their count] times as long, its messages too. See
                        `paci.microbatches`

    Raises ValueError for times outside 1e-100 to 1e100; update, transfer and jitter may be 0.
    """

    forward: PerStage = 1.0
    backward: PerStage = 2.0
    weight: PerStage | None = None
    input: PerStage | None = None
    update: PerStage = 0.0
    transfer: PerStage = 0.0
    jitter: float = 0.0
    sizes: Sequence[float] = (1.0,)

    def __post_init__(self) -> None:
        for field in fields(self):
            name, value = field.name, getattr(self, field.name)
            if name in ("weight", "input") and value is None:
                continue
            may_be_zero = name in MAY_BE_ZERO
            for time in value if isinstance(value, list | tuple) else [value]:
                if not is_number(time) or time < 0 or (time == 0 and not may_be_zero):
                    wanted = "at least 0" if may_be_zero else "above 0"
                    raise ValueError(f"cost.{name} must be a time {wanted}, not {value!r}")
                if time and name != "jitter" and not SHORTEST <= time <= LONGEST:
                    raise ValueError(
                        f"cost.{name} must be a time from {SHORTEST} to {LONGEST}, not {value!r}"
                    )
        if not is_number(self.jitter) or self.jitter >= 1:
            raise ValueError(f"cost.jitter must be at least 0 and below 1, not {self.jitter!r}")
        if not isinstance(self.sizes, list | tuple) or not self.sizes:
            raise ValueError(f"cost.sizes must be a list of numbers, not {self.sizes!r}")

    def with_recomputation(self) -> "Cost":
        """Return the times if every backward, or the first half of a split one, runs its forward
        again."""
        weight = _each(lambda time: time / 2, self.backward) if self.weight is None else self.weight
        backward = _each(operator.add, self.backward, self.forward)
        first = None if self.input is None else _each(operator.add, self.input, self.forward)
        return replace(self, backward=backward, weight=weight, input=first)

    def per_stage(self, stages_per_rank: int) -> "Cost":
        """Return the times of a rank, divided evenly among its stages.

        Times that are given stage by stage, and those of messages, stay as they are.
        """
        shares: dict[str, Any] = {
            name: time / stages_per_rank
            for name in ("forward", "backward", "weight", "input", "update")
            if isinstance(time := getattr(self, name), int | float)
        }
        return replace(self, **shares)


class Durations:
    """A cost model laid out for `stages` stages and `microbatches` micro-batches from `first` on.

    `of[kind][stage][m]`, `transfer[stage][m]` and `update[stage]` are times, where m counts from
    `first`. All are rounded to one binary grid, 2^-34 of the longest. Their sums are then exact in
    floating point (up to half a million times the longest) in any order of addition, so events that
    coincide on paper coincide on this clock. No action is shorter than one tick of the grid.

    Raises ValueError if a list of times does not have one for each stage.
    """

    def __init__(self, cost: Cost, stages: int, microbatches: int, seed: int = 0, first: int = 0):
        forward = _per_stage("forward", cost.forward, stages)
        backward = _per_stage("backward", cost.backward, stages)
        weight = (
            [time / 2 for time in backward]
            if cost.weight is None
            else _per_stage("weight", cost.weight, stages)
        )
        input = (
            _differences(backward, weight)
            if cost.input is None
            else _per_stage("input", cost.input, stages)
        )
        update = _per_stage("update", cost.update, stages)
        transfer = _per_stage("transfer", cost.transfer, stages)

        sizes = list(islice(cycle(cost.sizes), first + microbatches))[first:]
        longest = max(*forward, *backward, *weight, *input, *update, *transfer)
        longest *= (1 + cost.jitter) * max(1.0, *cost.sizes)
        tick = 2.0 ** (math.frexp(longest)[1] - 34)

        def scaled(time: float, ticks: int = 0) -> list[float]:
            """Return `time` for each micro-batch, of at least so many ticks."""
            of_size = {size: max(ticks, round(time * size / tick)) * tick for size in {*sizes}}
            return [of_size[size] for size in sizes]

        def drawn(kind: str, stage: int, time: float) -> list[float]:
            key = (seed, stage, KINDS.index(kind))
            jitter = uniform(key, first + microbatches)[first:]
            return [
                (time * size * (1 + cost.jitter * u) / tick + WHOLE - WHOLE or 1.0) * tick
                for size, u in zip(sizes, jitter, strict=True)
            ]

        self.update = [round(time / tick) * tick for time in update]
        self.transfer = [scaled(time) for time in transfer]
        of_kind = {
            FORWARD: forward,
            BACKWARD: backward,
            INPUT_GRADIENT: input,
            WEIGHT_GRADIENT: weight,
        }
        self.of: dict[str, list[list[float]]] = {
            kind: [
                drawn(kind, stage, time) if cost.jitter else scaled(time, ticks=1)
                for stage, time in enumerate(times)
            ]
            for kind, times in of_kind.items()
        }

    def of_window(self, first: int, count: int) -> "Durations":
        """Return the durations of `count` micro-batches from `first` on, counted from 0."""
        part, window = copy(self), slice(first, first + count)
        part.transfer = [times[window] for times in self.transfer]
        part.of = {kind: [times[window] for times in stages] for kind, stages in self.of.items()}
        return part


def _each(function: Callable[..., float], *times: PerStage) -> PerStage:
    """Return `function` of times: one number, or one for each stage if any of them has so many."""
    lists = [time for time in times if isinstance(time, Sequence)]
    if not lists:
        return function(*times)
    rows = [[time] * len(lists[0]) if not isinstance(time, Sequence) else time for time in times]
    return [function(*row) for row in zip(*rows, strict=True)]


def _differences(backward: list[float], weight: list[float]) -> list[float]:
    """Return what `weight` leaves of `backward` at each stage; ValueError if that is nothing."""
    for i, (part, whole) in enumerate(zip(weight, backward, strict=True)):
        if part >= whole:
            raise ValueError(
                f"cost.weight is a part of cost.backward: {part} is not below {whole} at stage {i}"
            )
    return [whole - part for part, whole in zip(weight, backward, strict=True)]


def _per_stage(name: str, value: PerStage, stages: int) -> list[float]:
    """Return one time per stage; ValueError if `value` is a list of another length."""
    if not isinstance(value, Sequence):
        return [float(value)] * stages
    if len(value) != stages:
        raise ValueError(
            f"cost.{name} must be one number or one for each of the {stages} stages, "
            f"not {len(value)} numbers"
        )
    return [float(time) for time in value]

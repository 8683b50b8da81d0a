"""What actions take on the simulated clock."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy

from paci.actions import BACKWARD, FORWARD, INPUT_GRADIENT, KINDS, WEIGHT_GRADIENT
from paci.checks import is_number

PerStage = float | Sequence[float]

SHORTEST, LONGEST = 1e-100, 1e100  # beyond, sums and ratios of times leave floating point


@dataclass(frozen=True)
class Cost:
    """Times of one micro-batch, in any one unit; each a number, or one number per stage.

    forward, backward   the whole forward and the whole backward, > 0 (any time: 0, or 1e-100 to
                        1e100)
    weight              the part of the backward that gives the gradients of the weights, where a
                        schedule splits it off; half of it if not given
    input               the other part, which gives the gradient of the input; what `weight` leaves
                        of the backward if not given (measured, two halves are more than a whole)
    update              one optimizer step, spent by the rank at the end of a window's last backward
    transfer            from a stage to the next rank, activation or gradient
    jitter              0.1 draws each duration within ±10 %, from (seed, stage, kind, micro-batch)
    """

    forward: PerStage = 1.0
    backward: PerStage = 2.0
    weight: PerStage | None = None
    input: PerStage | None = None
    update: PerStage = 0.0
    transfer: PerStage = 0.0
    jitter: float = 0.0

    def __post_init__(self):
        for field in fields(self):
            name, value = field.name, getattr(self, field.name)
            if name in ("weight", "input") and value is None:
                continue
            may_be_nothing = name in ("update", "transfer", "jitter")
            for time in value if isinstance(value, (list, tuple)) else [value]:
                if not is_number(time) or time < 0 or (time == 0 and not may_be_nothing):
                    wanted = "at least 0" if may_be_nothing else "above 0"
                    raise ValueError(f"cost.{name} must be a time {wanted}, not {value!r}")
                if time and name != "jitter" and not SHORTEST <= time <= LONGEST:
                    raise ValueError(
                        f"cost.{name} must be a time from {SHORTEST} to {LONGEST}, not {value!r}"
                    )
        if not is_number(self.jitter) or self.jitter >= 1:
            raise ValueError(f"cost.jitter must be at least 0 and below 1, not {self.jitter!r}")


class Durations:
    """A cost model laid out for `stages` stages and `microbatches` micro-batches from `first` on.

    `of[kind][stage][m]`, `update[stage]` and `transfer[stage]` are times. All are rounded to one
    binary grid, 2^-34 of the longest: their sums are then exact in floating point (to half a
    million of the longest), whichever way they are added up, and two things that happen at the
    same time on paper do so on this clock. No action is shorter than one tick of the grid.
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
            _what_is_left(backward, weight)
            if cost.input is None
            else _per_stage("input", cost.input, stages)
        )
        update = _per_stage("update", cost.update, stages)
        transfer = _per_stage("transfer", cost.transfer, stages)

        longest = max(*forward, *backward, *weight, *input, *update, *transfer) * (1 + cost.jitter)
        tick = 2.0 ** (math.frexp(longest)[1] - 34)
        self.update = [round(time / tick) * tick for time in update]
        self.transfer = [round(time / tick) * tick for time in transfer]

        def draw(kind: str, stage: int, time: float) -> list[float]:
            key = (seed, stage, KINDS.index(kind))
            jitter = numpy.random.default_rng(key).uniform(-1, 1, first + microbatches)[first:]
            return (numpy.rint(time * (1 + cost.jitter * jitter) / tick).clip(1) * tick).tolist()

        def constant(kind: str, stage: int, time: float) -> list[float]:
            return [max(1, round(time / tick)) * tick] * microbatches

        of_kind = {
            FORWARD: forward,
            BACKWARD: backward,
            INPUT_GRADIENT: input,
            WEIGHT_GRADIENT: weight,
        }
        duration = draw if cost.jitter else constant
        self.of: dict[str, list[list[float]]] = {
            kind: [duration(kind, stage, time) for stage, time in enumerate(times)]
            for kind, times in of_kind.items()
        }


def _what_is_left(backward: list[float], weight: list[float]) -> list[float]:
    for i, (part, whole) in enumerate(zip(weight, backward, strict=True)):
        if part >= whole:
            raise ValueError(
                f"cost.weight is a part of cost.backward: {part} is not below {whole} at stage {i}"
            )
    return [whole - part for part, whole in zip(weight, backward, strict=True)]


def _per_stage(name: str, value: PerStage, stages: int) -> list[float]:
    if not isinstance(value, Sequence):
        return [float(value)] * stages
    if len(value) != stages:
        raise ValueError(
            f"cost.{name} must be one number or one for each of the {stages} stages, "
            f"not {len(value)} numbers"
        )
    return [float(time) for time in value]

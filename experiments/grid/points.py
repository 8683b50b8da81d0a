"""The points of the grid of conf/extrapolation/, which `experiments.extrapolate` simulates."""

from collections.abc import Iterator
from math import ceil
from typing import NamedTuple

from omegaconf import DictConfig

from experiments.grid.axes import Axes, combinations, entries
from paci import Cost
from paci.checks import is_number, positive
from paci.schedules import Schedule, build

FORWARD_TIME, BACKWARD_TIME = 1.0, 2.0


class Point(NamedTuple):
    """The arguments of a simulation; times are in forwards of a micro-batch."""

    schedule: str
    stages: int
    accumulation: int
    slack: int
    transfer: float
    jitter: float
    microbatches: int
    seed: int

    @property
    def rule(self) -> Schedule:
        return build(self.schedule, self.stages, self.accumulation, self.slack)

    @property
    def cost(self) -> Cost:
        return Cost(FORWARD_TIME, BACKWARD_TIME, transfer=self.transfer, jitter=self.jitter)

    @property
    def actions(self) -> int:
        """Return the least number of actions; the time of a simulation is proportional to it."""
        return 2 * self.stages * self.microbatches


def points(config: DictConfig) -> list[Point]:
    """Return the points of the grid, each once. Raises ValueError if one cannot be simulated."""
    grid = entries(config.get("grid"))
    found = dict.fromkeys(point for axes in grid for point in _points(axes, config.seed))
    for point in found:
        rule, _ = point.rule, point.cost  # raise for values that are out of range
        if len(rule.placement) < rule.stages:
            raise ValueError(
                f"{rule.name} has several stages per rank: choose one with one stage each"
            )
    return list(found)


def _points(axes: Axes, seed: int) -> Iterator[Point]:
    axes = axes | {key: [0] for key in ("slack", "transfer", "jitter") if key not in axes}
    known = {*Point._fields} - {"seed"}
    if missing := known - {*axes}:
        raise ValueError(f"an entry of the grid has no {missing.pop()}")
    if unknown := {*axes} - known:
        raise ValueError(f"an entry of the grid has a key {unknown.pop()!r}, which means nothing")
    for given in combinations(axes):
        yield _point(given, seed)


def _point(given: dict, seed: int) -> Point:
    """Return the point that `given` describes as fractions of the number of stages.

    Its micro-batches are rounded up to two halves of whole windows.
    """
    stages = positive("stages", given["stages"])
    for key in ("accumulation", "slack", "microbatches", "transfer", "jitter"):
        if not is_number(given[key]) or given[key] < 0:
            raise ValueError(f"{key} must be a number of at least 0, not {given[key]!r}")
    accumulation = max(1, round(given["accumulation"] * stages))
    windows = 2 * max(1, ceil(given["microbatches"] * stages / (2 * accumulation)))
    return Point(
        schedule=str(given["schedule"]),
        stages=stages,
        accumulation=accumulation,
        slack=round(given["slack"] * stages),
        transfer=float(given["transfer"]),
        jitter=float(given["jitter"]),
        microbatches=windows * accumulation,
        seed=seed,
    )

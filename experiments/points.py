"""What `experiments.extrapolate` simulates: the points of the grid of conf/extrapolation/."""

from collections.abc import Iterator
from itertools import product
from math import ceil, inf
from typing import NamedTuple

from omegaconf import DictConfig, ListConfig, OmegaConf

from paci import Cost
from paci.schedules import Schedule, build

FORWARD_TIME, BACKWARD_TIME = 1.0, 2.0


class Point(NamedTuple):
    """What is simulated; times are in forwards of a micro-batch."""

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
        """How many, at least; simulation takes time in proportion."""
        return 2 * self.stages * self.microbatches


def points(config: DictConfig) -> list[Point]:
    """The points of the grid, each once; ValueError for one that cannot be simulated."""
    if not isinstance(config.get("grid"), ListConfig):
        raise ValueError(f"grid must be a list of entries, not {config.get('grid')!r}")
    found = dict.fromkeys(point for entry in config.grid for point in _points(entry, config.seed))
    for point in found:
        rule, _ = point.rule, point.cost  # which say what is wrong with a point
        if len(rule.placement) < rule.stages:
            raise ValueError(f"{rule.name} has several stages a rank: choose one that has one each")
    return list(found)


def _points(entry: object, seed: int) -> Iterator[Point]:
    if not isinstance(entry, DictConfig):
        raise ValueError(f"an entry of the grid must be a mapping, not {entry!r}")
    entry = OmegaConf.to_container(entry)
    entry |= {key: 0 for key in ("slack", "transfer", "jitter") if key not in entry}
    if missing := {*Point._fields} - {"seed"} - {*entry}:
        raise ValueError(f"an entry of the grid has no {missing.pop()}")
    if unknown := {*entry} - ({*Point._fields} - {"seed"}):
        raise ValueError(f"an entry of the grid has a key {unknown.pop()!r}, which means nothing")
    axes = (value if isinstance(value, list) else [value] for value in entry.values())
    for values in product(*axes):
        yield _point(dict(zip(entry, values, strict=True)), seed)


def _point(given: dict, seed: int) -> Point:
    """Of multiples of the stages, numbers; micro-batches make up two halves of whole windows."""
    stages = given["stages"]
    if isinstance(stages, bool) or not isinstance(stages, int) or stages < 1:
        raise ValueError(f"stages must be a whole number of at least 1, not {stages!r}")
    for key in ("accumulation", "slack", "microbatches", "transfer", "jitter"):
        value = given[key]
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not 0 <= value < inf:
            raise ValueError(f"{key} must be a number of at least 0, not {value!r}")
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

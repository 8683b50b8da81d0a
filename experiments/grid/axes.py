"""Entries of a grid: mappings in which a list is an axis. Each stands for the product of its axes.

{stages: 8, slack: [0, 2], jitter: [0, 0.1]}        four points of eight stages
"""

from collections.abc import Iterator
from itertools import product
from typing import Any, cast

from omegaconf import DictConfig, ListConfig, OmegaConf

Axes = dict[str, list]


def entries(grid: object) -> list[Axes]:
    """Return the axes of every entry; raise ValueError unless `grid` is a list of mappings."""
    if not isinstance(grid, ListConfig):
        raise ValueError(f"grid must be a list of entries, not {grid!r}")
    return [_axes(entry) for entry in grid]


def combinations(axes: Axes) -> Iterator[dict]:
    """Yield every point {key: value}; the last axis varies fastest."""
    for values in product(*axes.values()):
        yield dict(zip(axes, values, strict=True))


def _axes(entry: object) -> Axes:
    if not isinstance(entry, DictConfig):
        raise ValueError(
            "an entry of the grid must be a mapping like {key: value, axis: [value, value]}, "
            f"not {entry!r}"
        )
    given = cast(dict[str, Any], OmegaConf.to_container(entry, resolve=True))
    for key, value in given.items():
        if not isinstance(key, str):
            raise ValueError(f"an entry of the grid sets keys of the configuration, not {key!r}")
        if value == []:
            raise ValueError(f"{key} has no value in an entry of the grid")
    return {key: value if isinstance(value, list) else [value] for key, value in given.items()}

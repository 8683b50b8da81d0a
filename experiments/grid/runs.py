"""The grid of an experiment: `conf/experiment/*.yaml` says in a few lines which runs it compares.

    grid:
      - {method: 1f1b-flush, method.accumulation: [4, 8, 16]}
      - {method: paci, method.accumulation: "${counts}", microbatch: "${sizes}"}
      - {method: paci, optimizer.lr: [1e-3, 3e-3], scale: [smoke, laptop], seeds: [0, 1]}

An entry sets what its runs have in common; a list is an axis, and the runs are the product of the
axes. Any key or group of the configuration can be one. Two axes need not be written: `seed` runs
over `seeds`, `batch` over `batches`, the entry's own or the configuration's. An entry that names
`batch` runs at those that are in `batches`, and with `microbatch`, the sequences of a micro-batch,
at batch = microbatch x accumulation instead.
"""

from collections.abc import Iterable, Iterator, Sequence
from copy import deepcopy
from functools import cache

from omegaconf import DictConfig, ListConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from experiments import CONF
from experiments.config import compose, no_setting, parse, resolve, select
from experiments.grid.axes import Axes, combinations, entries
from experiments.grid.names import tell_apart
from paci.checks import positive

IMPLIED = {"batch": "batches", "seed": "seeds"}
"""Axes of every entry, and the keys that list their values."""
OF_ALL = ("experiment", "cluster", "grid", "named", "dry_run", "retry")
"""Keys that hold for all runs of a grid."""


def grid(overrides: Sequence[str]) -> list[DictConfig]:
    """Return the configuration of each run of the experiment that `overrides` select.

    A run that several entries describe is returned once. Raises ValueError if no experiment is
    named, for an override that the grid would replace, for an entry that cannot be read, and for
    two different runs that no name tells apart.
    """
    base = compose(overrides)
    if base.grid is None:
        names = sorted(path.stem for path in (CONF / "experiment").glob("*.yaml"))
        names.remove("none")
        raise ValueError(
            f"a sweep needs an experiment: choose from {', '.join(names)}, or give a grid of your "
            'own, like "grid=[{method:paci,method.slack:[0,2]}]"'
        )
    of_entries = entries(base.grid)
    keys = dict.fromkeys(key for axes in of_entries for key in axes)
    _refuse_unheeded(overrides, [key for key in keys if not _is_heeded(key, of_entries)])
    chosen = cache(lambda groups: select([*overrides, *groups]))
    configs = [
        _configure(config, point)
        for number, axes in enumerate(of_entries)
        for config in _groups(axes, chosen)
        for point in _points(number, config)
    ]
    if not of_entries:
        raise ValueError("grid must have an entry, like grid=[{method:paci}]")
    if not configs:
        raise ValueError("the grid has no run: each of its entries names a batch not in batches")
    configs = list({str(config): config for config in configs}.values())
    tell_apart(configs, keys)
    return configs


def _groups(axes: Axes, chosen) -> Iterator[DictConfig]:
    """Yield the configuration that `chosen` composes of each combination of an entry's groups."""
    groups = {key: values for key, values in axes.items() if (CONF / key).is_dir()}
    for point in combinations(groups):
        yield chosen(tuple(f"{group}={option}" for group, option in point.items()))


def _points(number: int, config: DictConfig) -> Iterator[dict]:
    """Yield the combinations of the axes of entry `number` that are no groups, and of the implied
    axes. The entry is read in `config`, as its values may refer to those of a group."""
    axes = {
        key: values
        for key, values in entries(config.grid)[number].items()
        if not (CONF / key).is_dir()
    }
    _refuse_two_names(axes)
    seeds = axes.pop("seeds", config.seeds)
    batches = axes.pop("batches", config.batches)
    implied = {"seed": axes.pop("seed", seeds)}  # last: the runs of one cell follow each other
    if "microbatch" not in axes:
        own = axes.pop("batch", batches)
        implied = {"batch": [batch for batch in batches if batch in own]} | implied
    return combinations(axes | implied)


def _configure(config: DictConfig, point: dict) -> DictConfig:
    """Return a copy of `config`, in which nothing is resolved yet, with the values of `point`."""
    config = deepcopy(config)
    values = dict(point)
    microbatch = values.pop("microbatch", None)
    for key, value in values.items():
        try:
            is_list = isinstance(OmegaConf.select(config, key), ListConfig)
            OmegaConf.update(config, key, value)
        except OmegaConfBaseException as error:
            raise ValueError(no_setting(key, config)) from error
        if is_list and not isinstance(value, list):
            raise ValueError(
                f"{key} is a list, so its values in a grid are lists, too, as in {key}: "
                f"[[...], [...]], not {value!r}"
            )
    if "microbatch" in point:
        accumulation = positive("method.accumulation", config.method.accumulation)
        config.batch = positive("microbatch", microbatch) * accumulation
    return resolve(config)


def _refuse_two_names(axes: Axes) -> None:
    """Raise ValueError for an entry that gives seeds or batches twice."""
    for names in (("batch", "microbatch"), ("batches", "microbatch"), ("seed", "seeds")):
        if {*names} <= {*axes}:
            raise ValueError(f"an entry of the grid names {' or '.join(names)}, not both")


def _refuse_unheeded(overrides: Sequence[str], keys: Iterable[str]) -> None:
    """Raise ValueError for a key in the grid that must hold for all its runs, and for an override
    of a key that the grid sets anew in every run."""
    for key in keys:
        if key.split(".")[0] in OF_ALL:
            raise ValueError(f"{key} holds for all runs of a grid: give it beside the grid")
    for override in parse(overrides):
        key, given = override.key_or_group, override.input_line
        if key in IMPLIED:
            value = override.get_value_string()
            raise ValueError(f"a sweep has a list of them: {IMPLIED[key]}=[{value}], not {given}")
        if any(own == key or own.startswith(f"{key}.") for own in keys):
            raise ValueError(
                f"the experiment's grid sets {key} itself: leave out {given}, or give a grid of "
                "your own, like grid=[{method:paci,method.accumulation:[4,8]}]"
            )


def _is_heeded(key: str, of_entries: Sequence[Axes]) -> bool:
    """Return whether an override of `key` holds for the entries that have no such key."""
    return key in IMPLIED.values() and not all(key in axes for axes in of_entries)

"""The grid of an experiment: `conf/experiment/*.yaml` says in a few lines which runs it compares.

    grid:
      - {method: 1f1b-flush, method.accumulation: [4, 8, 16]}
      - {method: paci, method.accumulation: "${counts}", microbatch: "${sizes}"}

An entry sets what its runs have in common; a list is an axis, and the runs are the product of the
axes. Two axes need not be written: `seed` runs over the configuration's `seeds`, `batch` over its
`batches`. An entry that names batches runs at those of them that are in `batches`, and with
`microbatch`, the sequences of a micro-batch, at batch = microbatch x accumulation instead.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from copy import deepcopy
from functools import cache

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from experiments import CONF
from experiments.config import compose, flat, no_setting, parse, resolve, select
from experiments.config.derived import run_name
from experiments.grid.axes import Axes, combinations, entries
from paci.checks import positive

IMPLIED = {"batch": "batches", "seed": "seeds"}
"""Axes of every entry, and the keys that list their values."""


def grid(overrides: Sequence[str]) -> list[DictConfig]:
    """Return the configuration of each run of the experiment that `overrides` select.

    A run that several entries describe is returned once. Raises ValueError if no experiment is
    named, for an override that the grid would replace, for an entry that cannot be read, and for
    two different runs of one name.
    """
    base = compose(overrides)
    if "grid" not in base:
        names = sorted(path.stem for path in (CONF / "experiment").glob("*.yaml"))
        names.remove("none")
        raise ValueError(f"a sweep needs an experiment: choose from {', '.join(names)}")
    of_entries = entries(base.grid)
    _refuse_unheeded(overrides, {key for axes in of_entries for key in axes})
    chosen = cache(lambda groups: select([*overrides, *groups]))
    configs = [_configure(point, chosen) for axes in of_entries for point in _points(axes, base)]
    if not of_entries:
        raise ValueError("grid must have an entry, like grid=[{method:paci}]")
    if not configs:
        raise ValueError("the grid has no run: each of its entries names a batch not in batches")
    configs = list({str(config): config for config in configs}.values())
    _refuse_namesakes(configs)
    return configs


def _points(axes: Axes, base: DictConfig) -> Iterator[dict]:
    """Return the combinations of `axes` and of the implied axes."""
    if {"batch", "microbatch"} <= set(axes):
        raise ValueError("an entry of the grid names batch or microbatch, not both")
    implied = {"seed": axes.get("seed", base.seeds)}  # last: the runs of one cell follow each other
    if "microbatch" not in axes:
        own = axes.get("batch", base.batches)
        implied = {"batch": [batch for batch in base.batches if batch in own]} | implied
    named = {key: values for key, values in axes.items() if key not in IMPLIED}
    return combinations(named | implied)


def _configure(point: dict, chosen) -> DictConfig:
    """Return the configuration of a `point`: `chosen` composes its groups, its values are set."""
    groups = {key: value for key, value in point.items() if (CONF / key).is_dir()}
    config = deepcopy(chosen(tuple(f"{group}={option}" for group, option in groups.items())))
    values = {key: value for key, value in point.items() if key not in groups}
    microbatch = values.pop("microbatch", None)
    try:
        for key, value in values.items():
            OmegaConf.update(config, key, value)
    except OmegaConfBaseException as error:
        raise ValueError(no_setting(key, config)) from error
    if "microbatch" in point:
        accumulation = positive("method.accumulation", config.method.accumulation)
        config.batch = positive("microbatch", microbatch) * accumulation
    return resolve(config)


def _refuse_unheeded(overrides: Sequence[str], keys: set[str]) -> None:
    """Raise ValueError for an override of a key that the grid sets anew in every run."""
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


def _refuse_namesakes(configs: Sequence[DictConfig]) -> None:
    names = Counter((config.runs, run_name(config)) for config in configs)
    (folder, name), count = names.most_common(1)[0]
    if count == 1:
        return
    first, second = [flat(c) for c in configs if (c.runs, run_name(c)) == (folder, name)][:2]
    differing = [key for key in first if first[key] != second.get(key)]
    key = differing[0]
    raise ValueError(
        f"{count} runs of the grid are called {name}: they differ in {', '.join(differing)}, which "
        f"a name leaves out; give each value a sweep and a folder of its own, like "
        f"{key}={first[key]} runs={folder}/{key.rpartition('.')[2]}-{first[key]}"
    )

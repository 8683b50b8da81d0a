"""Hydra's --multirun in the words of this project: a sweep over a grid of one entry."""

import shlex
from collections.abc import Sequence

from hydra.core.override_parser.types import ValueType

from experiments.config import parse
from experiments.grid.runs import IMPLIED

LISTS = (ValueType.CHOICE_SWEEP, ValueType.SIMPLE_CHOICE_SWEEP, ValueType.RANGE_SWEEP)
"""Kinds of values of which a grid has an equivalent."""


def sweep_command(overrides: Sequence[str]) -> str:
    """Return the command that runs the grid of `overrides`, in which a,b lists values of a key.

    Raises ValueError for a list that a grid does not have, like glob(*).
    """
    axes: dict[str, list[str]] = {}
    shared = []
    for override in parse(overrides):
        key, given = override.key_or_group, override.input_line or ""
        if override.is_sweep_override() and override.value_type not in LISTS:
            raise ValueError(f"{given!r} does not list values: write {key}=1,2")
        if override.is_sweep_override():
            axes[key] = list(override.sweep_string_iterator())
        elif key in IMPLIED:
            axes[key] = [override.get_value_string()]
        else:
            shared.append(given)
    # A sweep runs over seeds and batches of its own unless the entry has them.
    for key, values in IMPLIED.items():
        axes[values] = axes.pop(key, [f"${{{key}}}"])
    entry = ",".join(f"{key}:[{','.join(values)}]" for key, values in axes.items())
    return shlex.join(["python", "-m", "experiments.sweep", *shared, f"grid=[{{{entry}}}]"])

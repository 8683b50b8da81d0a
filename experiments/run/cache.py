"""A cache of the measurements that the runs of a folder share. Two measurements never agree
exactly, so runs that are to be compared must share one."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from filelock import FileLock

from experiments.config.derived import is_measured
from experiments.run.folder import RunFolder
from paci.cost import Cost, Durations
from runlog import COST, COSTS, CUTS, CostTable, Damaged, read_json, required, write_json


def cached(file: Path, key: dict, measure: Callable[[], Any]) -> Any:
    """Return the result of `measure` from the first call with `key`, which holds everything that
    the result depends on. Key and result are JSON.

    One process at a time measures. If `measure` raises, nothing is cached.
    """
    text = json.dumps(key)
    file.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(file.with_suffix(".lock")):
        known = read(file)
        if text not in known:
            known[text] = measure()
            write_json(file, known)
    return known[text]


def read(file: Path) -> dict:
    """Return the content of `file`; {} if there is none. Raises ValueError if it is damaged."""
    try:
        return read_json(file) or {}
    except Damaged:
        raise ValueError(
            f"{file} is damaged: remove it, and what it held is measured again"
        ) from None


def read_cost(file: Path, stages: int) -> Cost:
    """Return the measured costs in a run's cost.json. Raises ValueError if a time is missing: a
    clock must not go by times that were never measured."""
    table = {key: value for key, value in read(file).items() if key != "microbatch"}
    try:
        if missing := required(CostTable) - {"microbatch"} - table.keys():
            raise ValueError(f"it has no {min(missing)}")
        cost = Cost(**table)
        Durations(cost, stages, 0)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{file} is no table of costs ({error}): mend it, or remove it") from None
    return cost


def check_cached(folder: RunFolder) -> None:
    """Raise ValueError if the measurements for a run cannot be read, before any work starts."""
    config, file = folder.config, folder.path / COST
    if config.model.partition == "measured":
        read(folder.path.parent / CUTS)
    if is_measured(config):
        read(folder.path.parent / COSTS)
        if file.exists() and not folder.finished:
            read_cost(file, config.stages)

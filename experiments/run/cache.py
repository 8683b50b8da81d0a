"""What is measured once for a folder of runs, and kept there: two measurements never agree exactly,
and runs that are to be compared must share one."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from filelock import FileLock

from experiments.config.derived import is_measured
from experiments.run.folder import RunFolder, replace
from paci.cost import Cost, Durations

TIMES = ("forward", "backward", "weight", "update", "transfer")
"""Those that measured costs have, at least."""


def kept(file: Path, key: dict, measure: Callable[[], Any]) -> Any:
    """What `measure` gave, as JSON has it, when `key` (all that it depends on) was first asked for.

    One process at a time measures. What it raises is not kept.
    """
    text = json.dumps(key)
    file.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(file.with_suffix(".lock")):
        known = read(file)
        if text not in known:
            known[text] = measure()
            replace(file, json.dumps(known, indent=1))
    return known[text]


def read(file: Path) -> dict:
    """What is in `file`; {} if there is none. Raises ValueError if it is damaged."""
    try:
        known = json.loads(file.read_text())
    except FileNotFoundError:
        return {}
    except ValueError:
        known = None
    if not isinstance(known, dict):
        raise ValueError(f"{file} is damaged: remove it, and what it held is measured again")
    return known


def read_cost(file: Path, stages: int) -> Cost:
    """The measured costs in a run's cost.json. Raises ValueError for what is none: a clock must
    not go by times that were never measured."""
    table = {key: value for key, value in read(file).items() if key != "microbatch"}
    try:
        if missing := [name for name in TIMES if name not in table]:
            raise ValueError(f"it has no {missing[0]}")
        cost = Cost(**table)
        Durations(cost, stages, 0)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{file} is no table of costs ({error}): mend it, or remove it") from None
    return cost


def check_kept(folder: RunFolder) -> None:
    """Raise ValueError if what was kept for a run cannot be read, before any work starts."""
    config, file = folder.config, folder.path / "cost.json"
    if config.model.partition == "measured":
        read(folder.path.parent / "cut.json")
    if is_measured(config):
        read(folder.path.parent / "costs.json")
        if file.exists() and not folder.finished:
            read_cost(file, config.stages)

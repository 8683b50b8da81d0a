"""The configuration that a run folder records, compared with that of a command."""

from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any, cast

from omegaconf import DictConfig, OmegaConf

import runlog
from experiments.config import flat
from experiments.config.own import own

GROWING = {"tokens", "evaluations"}
"""Keys in which a run that is made longer differs from what it was."""
MOVED = {"data.folder", "named"}
"""Keys that say where things are and what they are called."""
_NOT_SET = "not set"

Differing = dict[str, tuple[Any, Any]]
"""{key: values there and here}."""


def differing(file: Path, config: DictConfig) -> Differing:
    """Return the settings in which the configuration in `file` differs from `config`, if they
    change a run's numbers. Raises ValueError if the file cannot be read."""
    try:
        there = _settings(file, file.stat().st_mtime_ns)
    except Exception as error:
        raise ValueError(
            f"{file} cannot be read ({type(error).__name__}): remove the folder "
            "or choose another with runs=..."
        ) from error
    here = flat(own(config))
    there = {key: value for key, value in runlog.LATER.items() if key in here} | there
    pairs = {key: (there.get(key, _NOT_SET), here.get(key, _NOT_SET)) for key in there | here}
    return {
        key: (one, other)
        for key, (one, other) in pairs.items()
        if one != other and key not in MOVED
    }


@cache
def _settings(file: Path, written: int) -> dict[str, Any]:
    """Return {key: value} of the configuration in `file`, which was `written` at that time."""
    return flat(cast(DictConfig, OmegaConf.load(file)))


def shorter_of(differing: Differing, config: DictConfig) -> DictConfig | None:
    """Return the configuration there, if it is that of the same training with fewer `tokens` and
    perhaps other `evaluations`; otherwise None."""
    there, here = differing.get("tokens", (None, None))
    if config.get("task") != "training" or not {*differing} <= GROWING:
        return None
    if not isinstance(there, int) or here <= there:
        return None
    shorter = deepcopy(config)
    for key, (value, _) in differing.items():
        shorter[key] = value
    return shorter


def other_run(folder: Path, differing: Differing) -> str:
    """Return the sentence for a `folder` that holds another run."""
    # What may not grow, a group's name, or what is in none, says more than the others.
    key = min(
        differing, key=lambda key: (key in GROWING, "." in key and not key.endswith(".name"), key)
    )
    there, here = differing[key]
    more = f", and {len(differing) - 1} more" if len(differing) > 1 else ""
    return (
        f"{folder} holds the run of another configuration ({key} is {there!r} there, {here!r} "
        f"here{more}): choose another folder with runs=..."
    )

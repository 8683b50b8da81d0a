"""A run's own settings, on which its numbers depend, and the command line that gives them."""

from typing import Any

from omegaconf import DictConfig, ListConfig, OmegaConf

from experiments import CONF
from experiments.config.compose import flat, parse, select
from experiments.config.naming import told

ELSEWHERE = (
    *("runs", "cluster", "retry", "dry_run", "timeline", "grid"),
    *("seeds", "batches", "small_batch", "large_batch", "flush_count", "async_batch"),
    *("counts", "sizes", "splits", "count", "size", "devices"),
    *("peaks", "steep", "lengths"),
)
"""Keys that do not change a run's numbers: where it runs, beside which others, what it saves."""
GROUPS = {"scale": "scale", "method": "method.name", "model": "model.name", "data": "data.source",
          "executor": "executor.name"}  # fmt: skip
"""Groups of which a run has an option, and the settings that name it."""


def own(config: DictConfig) -> DictConfig:
    """Return the settings of `config` that belong to the run."""
    return OmegaConf.create({key: value for key, value in config.items() if key not in ELSEWHERE})


def overrides_of(config: DictConfig) -> list[str]:
    """Return overrides that compose the run of `config`, a run of no experiment, in its folder."""
    given: list[str] = []
    for group, key in GROUPS.items():
        option = OmegaConf.select(config, key)
        if option != OmegaConf.select(select(given), key):
            given += [f"{group}={option}"] * (CONF / group / f"{option}.yaml").exists()
    usual = select(given)
    OmegaConf.resolve(usual)
    known = flat(usual)
    for key, value in flat(own(config)).items():
        if value != known.get(key, ...):
            added = "+" if told(usual, key) is None else ""
            given.append(f"{added}{key}={_text(value)}")
    return [*given, f"runs={_text(config.runs)}"]


def _text(value: Any) -> str:
    """Return a value in Hydra's grammar."""
    if isinstance(value, ListConfig):
        return f"[{','.join(map(_text, value))}]"
    if value is None:
        return "null"
    if isinstance(value, str) and not _is_read_as_it_is(value):
        return "'" + value.replace("'", "\\'") + "'"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _is_read_as_it_is(text: str) -> bool:
    """Return whether Hydra's grammar needs no quotes around `text`, in a list as outside of it."""
    try:
        return parse([f"key=[{text}]"])[0].value() == [text]
    except ValueError:
        return False

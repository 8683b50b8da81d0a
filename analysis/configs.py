"""The part of a run's configuration that decides which runs it may be compared with."""

import json
from pathlib import Path

import yaml

from analysis.frames import NO_EXPERIMENT
from analysis.logs import Unreadable
from analysis.variants import Variant
from paci.schedules import SCHEDULES
from runlog import LATER

RECIPE = ("model", "data", "optimizer", "tokens", "stages", "weights_from")
"""Keys that runs must share, besides the method, before their losses may be compared. Runs must
also share precision and recomputation and, unless they are real, the times on their clock, which
decide the order of actions."""

REAL = "distributed"
"""The executor whose times are those of real computation."""


def read_config(path: Path) -> dict:
    """Return columns of `Frames.runs` from a config.yaml: experiment, scale, task, executor, batch,
    seed, variant and recipe. Raises Unreadable if a key is missing or its value is impossible."""
    try:
        config = yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    except FileNotFoundError:
        raise Unreadable("config.yaml is missing") from None
    except (OSError, UnicodeDecodeError, yaml.YAMLError):
        raise Unreadable("config.yaml is not readable YAML") from None
    try:
        optimizer = str((config.get("optimizer") or {}).get("name"))
        variant = Variant.read(config["method"], optimizer, stages=int(config["stages"]))
        row = {
            "experiment": str(config["experiment"] or NO_EXPERIMENT),
            "scale": str(config["scale"]),
            "task": str(config.get("task") or "training"),
            "executor": str((config.get("executor") or {}).get("name")),
            "batch": int(config["batch"]),
            "seed": int(config["seed"]),
        }
    except KeyError as error:
        raise Unreadable(f"config.yaml has no {error.args[0]}") from None
    except (AttributeError, TypeError, ValueError) as error:
        raise Unreadable(f"config.yaml has a value of the wrong kind ({error})") from None
    if variant.accumulation < 1 or variant.stages < 1:
        raise Unreadable("config.yaml has fewer than one stage or micro-batch per update")
    if variant.schedule not in SCHEDULES:
        raise Unreadable(f"config.yaml has an unknown schedule, {variant.schedule}")
    executor = config.get("executor") or {}
    _add_later(config)
    recipe = {key: config.get(key) for key in RECIPE} | {
        key: executor.get(key) for key in ("precision", "recompute")
    }
    if row["executor"] != REAL:
        recipe["times"] = [executor.get("cost"), executor.get("transfer")]
    return row | {"variant": variant, "recipe": json.dumps(recipe, sort_keys=True, default=str)}


def _add_later(config: dict) -> None:
    """Add the settings that configurations of older versions lack."""
    for key, value in LATER.items():
        group, _, name = key.rpartition(".")
        place = config.get(group) if group else config
        if isinstance(place, dict):
            place.setdefault(name, value)

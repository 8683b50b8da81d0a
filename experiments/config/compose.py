"""Compose a configuration from conf/ and a user's overrides; state Hydra's errors in a sentence."""

import re
import shlex
from collections.abc import Sequence
from contextlib import redirect_stdout
from difflib import get_close_matches
from io import StringIO
from pathlib import Path
from typing import Any

from hydra import compose as hydra_compose
from hydra import initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException, MissingConfigException, OverrideParseException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from experiments import CONF
from experiments.config.accepted import check_each
from experiments.config.consistent import check_together

OmegaConf.register_new_resolver("times", lambda one, other: one * other)  # in conf/experiment/


def compose(overrides: Sequence[str]) -> DictConfig:
    """Return the configuration that `overrides` (as on the command line) select, checked.

    Raises ValueError, in one sentence, for an unknown group, key or value.
    """
    return resolve(select(overrides))


def select(overrides: Sequence[str], folder: Path = CONF) -> DictConfig:
    """Compose the config.yaml of `folder`; values are neither interpolated nor checked yet.

    Raises ValueError, in one sentence, for an override that cannot be read or followed.
    """
    for override in parse(overrides):
        _refuse_unusable(override, folder)
    try:
        with initialize_config_dir(str(folder), version_base="1.3"):
            return hydra_compose("config", overrides=list(overrides))
    except MissingConfigException as error:
        group, _, name = (error.missing_cfg_file or "").rpartition("/")
        raise ValueError(
            f"there is no {group} {name!r}: choose from {', '.join(error.options or [])}"
        ) from error
    except (HydraException, OmegaConfBaseException) as error:
        unknown = re.match(r"Could not override '(.+?)'", str(error))
        if not unknown or "={" in str(error):
            raise ValueError(_one_sentence(error)) from error
        groups = [text for text in overrides if (folder / text.partition("=")[0]).is_dir()]
        raise ValueError(no_setting(unknown[1], select(groups, folder))) from error


def choices(overrides: Sequence[str], folder: Path = CONF) -> dict[str, str]:
    """Return {group: its option} as `overrides` choose them. Raises ValueError as `select` does."""
    select(overrides, folder)
    with initialize_config_dir(str(folder), version_base="1.3"):
        config = hydra_compose("config", overrides=list(overrides), return_hydra_config=True)
    return {
        group: option
        for group, option in config.hydra.runtime.choices.items()
        if not group.startswith("hydra/")
    }


def describe(what: str, overrides: Sequence[str], folder: Path = CONF) -> str:
    """Return Hydra's own account of how it composes a configuration: `what` is one of its --info.

    Raises ValueError as `select` does.
    """
    select(overrides, folder)
    with initialize_config_dir(str(folder), version_base="1.3"):
        hydra = GlobalHydra.instance().hydra
        assert hydra is not None
        with redirect_stdout(StringIO()) as said:
            hydra.show_info(what, "config", list(overrides))
    return said.getvalue().strip()


def parse(overrides: Sequence[str]) -> list[Override]:
    """Parse `overrides` with Hydra's grammar. Raises ValueError, which says how to quote."""
    parser = OverridesParser.create()
    parsed = []
    for text in overrides:
        try:
            parsed += parser.parse_overrides([text])
        except OverrideParseException as error:
            raise ValueError(f"{text!r} cannot be read: {_how_to_write(text)}") from error
    return parsed


def _how_to_write(text: str) -> str:
    key, equals, value = text.partition("=")
    if text.startswith("-"):
        return "the options are --help, --cfg job, --info and -m; everything else is KEY=VALUE"
    if re.fullmatch(r"\+{0,2}[\w.]+", key, re.ASCII) and equals:
        inner = value.strip("'\"").replace("'", "\\'")
        quoted = f"\"{key}='{inner}'\"" if "'" not in inner else shlex.quote(f"{key}='{inner}'")
        return f"write a list as KEY=[1,2], and text in two pairs of quotes, as {quoted}"
    return "write KEY=VALUE, and a list as KEY=[1,2]"


def _refuse_unusable(override: Override, folder: Path) -> None:
    """Raise ValueError for an override that Hydra can parse but that does not suit this project."""
    text, key = override.input_line or "", override.key_or_group
    if not key:
        raise ValueError(f"{text!r} cannot be read: {_how_to_write(text)}")
    if override.is_add() and "." not in key:
        raise ValueError(f"{text!r} adds a setting that nothing reads: write {key}=VALUE")
    if override.is_delete():
        raise ValueError(f"{text!r} would remove a setting: set it instead, as {key}=VALUE")
    if override.value() == {}:
        raise ValueError(f"{text!r} sets nothing: set each of its settings as {key}.KEY=VALUE")
    if override.package is not None:
        raise ValueError(f"{text!r} moves a group, which is not accepted: write {key}=OPTION")
    if key.split(".")[0] == "hydra" or key.startswith("hydra/"):
        raise ValueError(f"there is no setting {key!r} in the configuration: Hydra's own are fixed")
    if override.is_sweep_override():
        value = text.partition("=")[2]
        if (folder / key).is_dir():
            raise ValueError(
                f"{text!r} gives several options for one run: choose one, or list them in the "
                f'grid of experiments.sweep, as "grid=[{{{key}:[{value}]}}]"'
            )
        raise ValueError(
            f"{text!r} gives several values for one setting: list them in the grid of "
            f'experiments.sweep, as "grid=[{{{key}:[{value}]}}]"; write a list as {key}=[1,2], and '
            f"text with commas in two pairs of quotes, as \"{key}='{value}'\""
        )
    if (folder / key).is_dir() and not isinstance(override.value(), str):
        options = sorted(path.stem for path in (folder / key).glob("*.yaml"))
        raise ValueError(
            f"{key} must be one of {', '.join(options)}, not {override.value()!r}; a single "
            f"setting of it is set as {key}.KEY=VALUE"
        )


def no_setting(key: str, config: DictConfig) -> str:
    """Return the sentence for a `key` that `config` does not have."""
    close = get_close_matches(key, [*config, *flat(config)], 1)
    instead = f": did you mean {close[0]}?" if close else ""
    return f"there is no setting {key!r} in the configuration{instead}"


def resolve(config: DictConfig) -> DictConfig:
    """Replace the interpolations of `config` in place, check it, and return it."""
    try:
        OmegaConf.resolve(config)
    except OmegaConfBaseException as error:
        raise ValueError(_one_sentence(error)) from error
    check_each(config)
    check_together(config)
    return config


def flat(config: DictConfig, prefix: str = "") -> dict[str, Any]:
    """Return {dotted key: value} for every leaf of `config`; a list is a leaf."""
    values: dict[str, Any] = {}
    for key, value in config.items():
        dotted = f"{prefix}{key!s}"
        if isinstance(value, DictConfig):
            values |= flat(value, f"{dotted}.")
        else:
            values[dotted] = value
    return values


def _one_sentence(error: Exception) -> str:
    merging = re.match(r"Error merging override (.+?)=", str(error))
    if merging:
        return f"{merging[1]} is a group of settings: set each as {merging[1]}.KEY=VALUE"
    within = re.match(r"Could not override '(.+?)'", str(error))
    if within:
        return f"{within[1]} has no such keys: add each as +{within[1]}.KEY=VALUE"
    return re.sub(r"\s+", " ", str(error)).removesuffix(".").strip()

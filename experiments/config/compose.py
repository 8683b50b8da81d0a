"""A configuration from conf/ and what a user sets, by Hydra, whose errors become one sentence."""

import re
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

from hydra import compose as hydra_compose
from hydra import initialize_config_dir
from hydra.errors import HydraException, MissingConfigException, OverrideParseException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from experiments import CONF
from experiments.config.accepted import check

OmegaConf.register_new_resolver("times", lambda one, other: one * other)  # in conf/experiment/


def compose(overrides: Sequence[str]) -> DictConfig:
    """The configuration that `overrides` (as on the command line) select, checked.

    Raises ValueError, in one sentence, for an unknown group, key or value.
    """
    return resolve(select(overrides))


def select(overrides: Sequence[str], folder: Path = CONF) -> DictConfig:
    """What `compose` gives, its values neither interpolated nor checked yet; of another `folder`
    with a config.yaml, likewise."""
    try:
        with initialize_config_dir(str(folder), version_base="1.3"):
            return hydra_compose("config", overrides=list(overrides))
    except MissingConfigException as error:
        group, _, name = (error.missing_cfg_file or "").rpartition("/")
        raise ValueError(
            f"there is no {group} {name!r}: choose from {', '.join(error.options or [])}"
        ) from error
    except OverrideParseException as error:
        raise ValueError(
            f"{error.override!r} cannot be read: write key=value, a list as key=[1,2]"
        ) from error
    except (HydraException, OmegaConfBaseException) as error:
        unknown = re.match(r"Could not override '(.+?)'", str(error))
        if not unknown or "={" in str(error):
            raise ValueError(_one_sentence(error)) from error
        groups = [text for text in overrides if (folder / text.partition("=")[0]).is_dir()]
        raise ValueError(no_setting(unknown[1], select(groups, folder))) from error


def no_setting(key: str, config: DictConfig) -> str:
    """The sentence for a `key` that `config` does not have."""
    close = get_close_matches(key, [*config, *flat(config)], 1)
    instead = f": did you mean {close[0]}?" if close else ""
    return f"there is no setting {key!r} in the configuration{instead}"


def resolve(config: DictConfig) -> DictConfig:
    """`config` with its interpolations replaced, in place, and checked."""
    try:
        OmegaConf.resolve(config)
    except OmegaConfBaseException as error:
        raise ValueError(_one_sentence(error)) from error
    check(config)
    return config


def flat(config: DictConfig, prefix: str = "") -> dict:
    """{dotted key: value} of everything in `config`; lists are values."""
    values = {}
    for key, value in config.items():
        if isinstance(value, DictConfig):
            values |= flat(value, f"{prefix}{key}.")
        else:
            values[f"{prefix}{key}"] = value
    return values


def _one_sentence(error: Exception) -> str:
    within = re.match(r"Could not override '(.+?)'", str(error))
    if within:
        return f"{within[1]} has no such keys: add each as +{within[1]}.KEY=VALUE"
    return re.sub(r"\s+", " ", str(error)).removesuffix(".").strip()

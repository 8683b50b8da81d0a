"""Configurations: composed by Hydra from `conf/`, checked before any work starts."""

import re
from collections.abc import Sequence
from pathlib import Path

from hydra import compose as hydra_compose
from hydra import initialize_config_dir
from hydra.errors import HydraException, MissingConfigException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from paci.schedules import build

CONF = Path(__file__).resolve().parents[1] / "conf"


def compose(overrides: Sequence[str]) -> DictConfig:
    """The configuration that `overrides` (as on the command line) select, checked.

    Raises ValueError, in one sentence, for an unknown group, key or value.
    """
    try:
        with initialize_config_dir(str(CONF), version_base="1.3"):
            config = hydra_compose("config", overrides=list(overrides))
        OmegaConf.resolve(config)
    except MissingConfigException as error:
        group, _, name = (error.missing_cfg_file or "").rpartition("/")
        raise ValueError(
            f"there is no {group} {name!r}: choose from {', '.join(error.options or [])}"
        ) from error
    except (HydraException, OmegaConfBaseException) as error:
        raise ValueError(_one_sentence(error)) from error
    check(config)
    return config


def check(config: DictConfig) -> None:
    """Raise ValueError, saying what was given and what is accepted, for impossible values."""
    for key, least in _WHOLE_NUMBERS.items():
        value = OmegaConf.select(config, key)
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ValueError(f"{key} must be a whole number of at least {least}, not {value!r}")
    for key in _POSITIVE:
        value = OmegaConf.select(config, key)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0:
            raise ValueError(f"{key} must be a number above 0, not {value!r}")
    for key, accepted in _CHOICES.items():
        value = OmegaConf.select(config, key)
        if value not in accepted:
            raise ValueError(f"{key} must be {' or '.join(accepted)}, not {value!r}")

    method = config.method
    build(method.schedule, config.stages, method.accumulation, method.slack)
    if config.batch % method.accumulation:
        raise ValueError(
            f"batch must be a multiple of method.accumulation ({method.accumulation}), "
            f"not {config.batch}"
        )
    if updates(config) < config.evaluations:
        raise ValueError(
            f"tokens={config.tokens} make {updates(config)} updates of {config.batch} sequences "
            f"of {config.model.context} tokens, too few for evaluations={config.evaluations}"
        )


_WHOLE_NUMBERS = {
    "seed": 0,
    "stages": 1,
    "batch": 1,
    "tokens": 1,
    "evaluations": 1,
    "measure_every": 0,
    "model.layers": 1,
    "model.width": 1,
    "model.heads": 1,
    "model.context": 2,
    "method.accumulation": 1,
    "method.slack": 0,
    "executor.threads": 1,
}
_POSITIVE = ["optimizer.lr", "optimizer.reference_batch", "optimizer.eps"]
_CHOICES = {
    "executor.device": ("cpu", "cuda"),
    "executor.precision": ("float32", "bfloat16-autocast"),
    "model.partition": ("flops", "measured"),
    "method.weights": ("live",),
}


def updates(config: DictConfig) -> int:
    """Updates of a run: the token budget over the tokens of one update."""
    return config.tokens // (config.batch * config.model.context)


def run_name(config: DictConfig) -> str:
    """The name of a run's folder: what a sweep varies."""
    method = config.method
    slack = f"-slack{method.slack}" if method.slack else ""
    return f"{method.name}-a{method.accumulation}{slack}-b{config.batch}-s{config.seed}"


def grid(overrides: Sequence[str]) -> list[DictConfig]:
    """The runs of the experiment that `overrides` select, each a configuration of its own.

    Each line of an experiment's grid runs at every batch and seed of the scale, or only at the
    batch that the line names itself. Raises ValueError if no experiment is named.
    """
    base = compose(overrides)
    if "grid" not in base:
        names = sorted(path.stem for path in (CONF / "experiment").glob("*.yaml"))
        names.remove("none")
        raise ValueError(f"a sweep needs an experiment: choose from {', '.join(names)}")
    lines = [line.split() for line in base.grid]
    return [
        compose([*overrides, f"batch={batch}", f"seed={seed}", *line])
        for line in lines
        for batch in base.batches
        if not any(own.startswith("batch=") and own != f"batch={batch}" for own in line)
        for seed in base.seeds
    ]


def _one_sentence(error: Exception) -> str:
    unknown = re.match(r"Could not override '(.+?)'", str(error))
    if unknown:
        return f"there is no setting {unknown[1]!r} in the configuration"
    return re.sub(r"\s+", " ", str(error)).removesuffix(".").strip()

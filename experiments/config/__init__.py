"""Configurations: composed by Hydra from `conf/`, checked before any work starts."""

import math
import os
import re
from collections.abc import Sequence
from dataclasses import fields
from difflib import get_close_matches
from pathlib import Path

from hydra import compose as hydra_compose
from hydra import initialize_config_dir
from hydra.errors import HydraException, MissingConfigException, OverrideParseException
from omegaconf import DictConfig, ListConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from experiments.cli import CONF
from paci.cost import Cost, Durations
from paci.schedules import Schedule, build

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


def check(config: DictConfig) -> None:
    """Raise ValueError, saying what was given and what is accepted, for impossible values."""
    _check_each(config)
    if config.cluster.name == "slurm":
        _check_slurm(config.cluster)
    _check_executor(config)
    _check_sizes(config)
    _check_method(config)


def _check_each(config: DictConfig) -> None:
    """Every value by itself."""
    for key, least in _WHOLE_NUMBERS.items():
        value = OmegaConf.select(config, key)
        if not is_whole(value, least):
            raise ValueError(f"{key} must be a whole number of at least {least}, not {value!r}")
    for key, least in _OPTIONAL_WHOLE_NUMBERS.items():
        value = OmegaConf.select(config, key)
        if value is not None and not is_whole(value, least):
            raise ValueError(
                f"{key} must be null or a whole number of at least {least}, not {value!r}"
            )
    for key, (wanted, accepts) in _NUMBERS.items():
        value = OmegaConf.select(config, key)
        if not is_number(value) or not accepts(value):
            raise ValueError(f"{key} must be a number {wanted}, not {value!r}")
    for key in _SWITCHES:
        if not isinstance(config[key], bool):
            raise ValueError(f"{key} must be true or false, not {config[key]!r}")
    for key, accepted in _CHOICES.items():
        value = OmegaConf.select(config, key)
        if value not in accepted:
            raise ValueError(f"{key} must be {' or '.join(accepted)}, not {value!r}")
    for key, least in _LISTS.items():
        value = config.get(key)
        listed = isinstance(value, ListConfig) and len(value)
        if not listed or not all(is_whole(number, least) for number in value):
            raise ValueError(
                f"{key} must be a list of whole numbers of at least {least}, like [1,2], "
                f"not {value!r}"
            )

    betas, residual = config.optimizer.betas, config.model.residual_initialisation
    ok = isinstance(betas, ListConfig) and len(betas) == 2
    if not ok or not all(is_number(beta) and 0 <= beta < 1 for beta in betas):
        raise ValueError(f"optimizer.betas must be two numbers from 0 to below 1, not {betas!r}")
    if residual is not None and (not is_number(residual) or residual < 0):
        raise ValueError(
            "model.residual_initialisation must be null or a number of at least 0, "
            f"not {residual!r}"
        )
    if config.seed >= 2**63:
        raise ValueError(f"seed must be below 2^63, not {config.seed}")
    if not re.fullmatch(r"[\w.-]+", str(config.method.name)):
        raise ValueError(
            f"method.name must be letters, digits, dots and dashes, not {config.method.name!r}"
        )
    if not isinstance(config.runs, str) or not config.runs:
        raise ValueError(f"runs must be the path of a folder, not {config.runs!r}")


def _check_executor(config: DictConfig) -> None:
    executor = config.executor
    if executor.threads > 4 * (os.cpu_count() or 1):
        raise ValueError(f"executor.threads must be at most four per core, not {executor.threads}")
    order = executor.get("order", "static")
    if order not in ("dynamic", "static"):
        raise ValueError(f"executor.order must be dynamic or static, not {order!r}")
    transfer = executor.get("transfer", 0)
    if not is_number(transfer) or transfer < 0:
        raise ValueError(f"executor.transfer must be a number of at least 0, not {transfer!r}")
    if "cost" in executor and not is_measured(config):
        Durations(cost_of(config), config.stages, 0)  # refuses what is no time, or no stage's
        if transfer:
            raise ValueError(
                "executor.transfer stands beside measured costs: set executor.cost.transfer here"
            )


def _check_sizes(config: DictConfig) -> None:
    """Of the model, the pipeline and the run, against each other."""
    model, accumulation = config.model, config.method.accumulation
    if model.width % model.heads:
        raise ValueError(
            f"model.width must be a multiple of model.heads ({model.heads}), not {model.width}"
        )
    units = 2 * model.layers + 2  # embedding, two halves of each layer, head
    if config.stages > units:
        raise ValueError(
            f"stages must be at most {units}, the units into which a model of {model.layers} "
            f"layers can be cut, not {config.stages}"
        )
    schedule_of(config)  # refuses sizes that do not fit it
    if config.batch % accumulation:
        raise ValueError(
            f"batch must be a multiple of method.accumulation ({accumulation}), not {config.batch}"
        )
    if config.task == "training" and updates(config) < config.evaluations:
        raise ValueError(
            f"tokens={config.tokens} make {updates(config)} updates of {config.batch} sequences "
            f"of {config.model.context} tokens, too few for evaluations={config.evaluations}"
        )


def _check_method(config: DictConfig) -> None:
    """What weights need of the schedule and the optimizer."""
    method, in_flight = config.method, config.stages + config.method.slack
    if method.weights == "double-buffered" and method.accumulation < in_flight:
        raise ValueError(
            f"double-buffered weights need method.accumulation of at least {in_flight}, as many "
            f"micro-batches as are in flight at the first stage, not {method.accumulation}"
        )
    if method.weights == "predicted" and config.optimizer.name == "nadamw":
        raise ValueError("predicted weights need optimizer adamw, whose steps can be foretold")


def _check_slurm(cluster: DictConfig) -> None:
    for key in ("time", "warning", "requeues"):
        if not is_whole(cluster[key], 0):
            raise ValueError(
                f"cluster.{key} must be a whole number of at least 0, not {cluster[key]!r}"
            )
    for key, example in (("setup", "['module load cuda']"), ("sbatch", "['--exclude=node7']")):
        value = cluster[key]
        if not isinstance(value, ListConfig) or not all(isinstance(line, str) for line in value):
            raise ValueError(f"cluster.{key} must be a list like {example}, not {value!r}")


_WHOLE_NUMBERS = {
    "seed": 0,
    "stages": 1,
    "devices": 1,
    "count": 1,
    "size": 1,
    "batch": 1,
    "tokens": 1,
    "evaluations": 1,
    "measure_every": 0,
    "throughput.microbatches": 1,
    "validation_microbatch": 1,
    "model.layers": 1,
    "model.width": 1,
    "model.heads": 1,
    "model.context": 2,
    "method.accumulation": 1,
    "method.slack": 0,
    "executor.threads": 1,
}
_OPTIONAL_WHOLE_NUMBERS = {
    "validation_sequences": 1,
    "cluster.parallel": 1,
    "cluster.nodes": 1,
    "cluster.gpus_per_node": 1,
    "cluster.cpus_per_task": 1,
}
_SWITCHES = ["retry", "dry_run", "timeline"]
_LISTS = {"batches": 1, "seeds": 0, "accumulations": 1, "counts": 1, "sizes": 1}
_POSITIVE = "above 0", lambda value: value > 0
_NOT_NEGATIVE = "of at least 0", lambda value: value >= 0
_FRACTION = "from 0 to 1", lambda value: 0 <= value <= 1
_NUMBERS = {
    "throughput.error": _POSITIVE,
    "throughput.most_seconds": _POSITIVE,
    "optimizer.lr": _POSITIVE,
    "optimizer.reference_batch": _POSITIVE,
    "optimizer.eps": _POSITIVE,
    "optimizer.weight_decay": _NOT_NEGATIVE,
    "optimizer.warmup": _FRACTION,
    "optimizer.final": _FRACTION,
    "optimizer.anneal": _FRACTION,
    "model.initialisation": _NOT_NEGATIVE,
    "model.dropout": _FRACTION,
}
_CHOICES = {
    "task": ("training", "throughput"),
    "cluster.name": ("local", "inline", "slurm"),
    "executor.name": ("local", "distributed", "emulated"),
    "executor.device": ("cpu", "cuda"),
    "executor.precision": ("float32", "bfloat16-autocast"),
    "model.partition": ("flops", "measured"),
    "method.weights": ("live", "stashed", "double-buffered", "predicted", "corrected"),
    "optimizer.name": ("adamw", "nadamw"),
}


def is_number(value: object) -> bool:
    """Whether `value` is a finite one."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def is_whole(value: object, least: int) -> bool:
    """Whether `value` is a whole number of at least `least`."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def updates(config: DictConfig) -> int:
    """Updates of a run: the token budget over the tokens of one update; of a throughput run, one
    repetition, and there may be more."""
    if config.task == "throughput":
        return windows(config)
    return config.tokens // (config.batch * config.model.context)


def microbatch_size(config: DictConfig) -> int:
    """Sequences of a micro-batch."""
    return config.batch // config.method.accumulation


def full_after(config: DictConfig) -> int:
    """Updates after which the pipeline is full: as many micro-batches as stages are through."""
    return math.ceil(config.stages / config.method.accumulation)


def windows(config: DictConfig) -> int:
    """Updates of one repetition of a throughput run, filling the pipeline included."""
    measured = math.ceil(config.throughput.microbatches / config.method.accumulation)
    return full_after(config) + measured


def repeats_exactly(config: DictConfig) -> bool:
    """Whether two repetitions take the same time to the last digit."""
    if config.executor.name != "local":
        return False
    return is_measured(config) or not config.executor.cost.jitter


def schedule_of(config: DictConfig) -> Schedule:
    """The rule of the configured method; ValueError if there is none or its sizes do not fit."""
    method = config.method
    options = OmegaConf.to_container(method.options)
    return build(method.schedule, config.stages, method.accumulation, method.slack, **options)


def ranks(config: DictConfig) -> int:
    """Processes that a run of `config` needs."""
    return 1 if config.executor.name == "local" else len(schedule_of(config).placement)


def is_measured(config: DictConfig) -> bool:
    """Whether the run's clock simulates the times of this machine, not given ones."""
    return config.executor.get("cost") == "measured"


def cost_of(config: DictConfig) -> Cost:
    """Times of a micro-batch, from the configured times of one sequence (an update's are its own).

    Raises ValueError for what is not a table of times.
    """
    times, microbatch = config.executor.cost, microbatch_size(config)
    if not isinstance(times, DictConfig):
        raise ValueError(f"executor.cost must be a table of times or measured, not {times!r}")
    times = OmegaConf.to_container(times)
    unknown = set(times) - {field.name for field in fields(Cost)}
    if unknown:
        raise ValueError(f"executor.cost has no time called {unknown.pop()!r}")
    for name in ("forward", "backward", "weight", "input", "transfer"):
        one = times.get(name)
        try:
            if one is not None:
                times[name] = (
                    [microbatch * float(time) for time in one]
                    if isinstance(one, list)
                    else microbatch * float(one)
                )
        except (TypeError, ValueError):
            raise ValueError(f"executor.cost.{name} must be a time, not {one!r}") from None
    return Cost(**times)


def run_name(config: DictConfig) -> str:
    """The name of a run's folder: what a sweep varies."""
    method = config.method
    parts = [method.name, f"a{method.accumulation}"]
    if method.slack:
        parts.append(f"slack{method.slack}")
    if method.weights != "live":
        parts.append(method.weights)
    parts += [
        option if isinstance(value, DictConfig) else f"{option}={value}"
        for option, value in method.options.items()
    ]
    return "-".join([*parts, f"b{config.batch}", f"s{config.seed}"])


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

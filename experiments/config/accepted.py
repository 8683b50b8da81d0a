"""The values that a configuration may hold: each by itself, then some against others."""

import os
import re
from pathlib import Path

from omegaconf import DictConfig, ListConfig, OmegaConf

from experiments.config.derived import cost_of, is_measured, method_of, updates
from paci.checks import at_least, is_number, is_whole, not_negative
from paci.cost import Durations

_WHOLE_NUMBERS = {
    "seed": 0,
    "data.order_seed": 0,
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
_GROUPS = {
    "throughput": "throughput.microbatches=32",
    "model": "model.layers=4",
    "method": "method.accumulation=4",
    "method.options": "+method.options.KEY=VALUE",
    "optimizer": "optimizer.lr=0.001",
    "executor": "executor.threads=1",
    "cluster": "cluster.parallel=1",
    "data": "data.folder=data",
}
"""Groups of settings, each with an example of how to set one of them."""
_MOST = 2**63 - 1  # the largest whole number that torch and token files hold
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
    "optimizer.decay": ("matrices", "matrices-but-embeddings"),
}


def check(config: DictConfig) -> None:
    """Raise ValueError, saying what was given and what is accepted, for impossible values."""
    _check_each(config)
    if config.cluster.name == "slurm":
        _check_slurm(config.cluster)
    _check_executor(config)
    _check_sizes(config)
    method_of(config).check(config.stages)


def _check_each(config: DictConfig) -> None:
    """Check every value by itself."""
    for key, example in _GROUPS.items():
        value = OmegaConf.select(config, key)
        if not isinstance(value, DictConfig):
            raise ValueError(f"{key} is a group of settings, set as {example}, not {value!r}")
    for key, least in _WHOLE_NUMBERS.items():
        if at_least(least, key, OmegaConf.select(config, key)) > _MOST:
            raise ValueError(f"{key} must be below 2^63, not {OmegaConf.select(config, key)}")
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
        if max(value) > _MOST:
            raise ValueError(f"{key} must hold numbers below 2^63, not {max(value)}")

    betas, residual = config.optimizer.betas, config.model.residual_initialisation
    ok = isinstance(betas, ListConfig) and len(betas) == 2
    if not ok or not all(is_number(beta) and 0 <= beta < 1 for beta in betas):
        raise ValueError(f"optimizer.betas must be two numbers from 0 to below 1, not {betas!r}")
    if residual is not None and (not is_number(residual) or residual < 0):
        raise ValueError(
            "model.residual_initialisation must be null or a number of at least 0, "
            f"not {residual!r}"
        )
    if not re.fullmatch(r"[\w.-]+", str(config.method.name)):
        raise ValueError(
            f"method.name must be letters, digits, dots and dashes, not {config.method.name!r}"
        )
    check_folder("runs", config.runs)
    check_folder("data.folder", config.data.folder)


def check_folder(key: str, value: object) -> None:
    """Raise ValueError unless `value` is the path of a folder, which need not exist yet."""
    if not isinstance(value, str) or not value:
        raise ValueError(f"{key} must be the path of a folder, not {value!r}")
    for path in (Path(value), *Path(value).parents):
        if path.exists() and not path.is_dir():
            raise ValueError(f"{key} must be the path of a folder, not {value!r}: {path} is a file")


def _check_executor(config: DictConfig) -> None:
    executor = config.executor
    if executor.threads > 4 * (os.cpu_count() or 1):
        raise ValueError(f"executor.threads must be at most four per core, not {executor.threads}")
    message = executor.get("message", "float32")
    if message not in ("float32", "bfloat16"):
        raise ValueError(f"executor.message must be float32 or bfloat16, not {message!r}")
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
    """Check the sizes of the model, the pipeline and the run against each other."""
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
    method_of(config).schedule_of(config.stages)  # refuses sizes that do not fit it
    if config.batch % accumulation:
        raise ValueError(
            f"batch must be a multiple of method.accumulation ({accumulation}), not {config.batch}"
        )
    if config.task == "training" and updates(config) < config.evaluations:
        raise ValueError(
            f"tokens={config.tokens} make {updates(config)} updates of {config.batch} sequences "
            f"of {config.model.context} tokens, too few for evaluations={config.evaluations}"
        )


def _check_slurm(cluster: DictConfig) -> None:
    for key in ("time", "warning", "requeues"):
        not_negative(f"cluster.{key}", cluster[key])
    for key, example in (("setup", "['module load cuda']"), ("sbatch", "['--exclude=node7']")):
        value = cluster[key]
        if not isinstance(value, ListConfig) or not all(isinstance(line, str) for line in value):
            raise ValueError(f"cluster.{key} must be a list like {example}, not {value!r}")

"""The values that each setting accepts by itself. Comments in conf/ say what the settings mean."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from omegaconf import DictConfig, ListConfig, OmegaConf

from paci.checks import is_number, is_whole

LARGEST = 2**63 - 1  # the largest whole number that torch and token files hold


class Accepted(NamedTuple):
    """A set of values: `words` completes "KEY must be ...", and `holds` decides."""

    words: str
    holds: Callable[[Any], bool]


def whole(least: int) -> Accepted:
    return Accepted(f"a whole number of at least {least}", lambda value: is_whole(value, least))


def one_of(*names: str) -> Accepted:
    return Accepted(" or ".join(names), lambda value: value in names)


def null_or(other: Accepted) -> Accepted:
    return Accepted(f"null or {other.words}", lambda value: value is None or other.holds(value))


def whole_numbers(least: int) -> Accepted:
    return Accepted(
        f"a list of whole numbers of at least {least}, like [1,2]",
        lambda value: _is_list(value, lambda number: is_whole(number, least)) and len(value) > 0,
    )


def numbers_above_0(example: str) -> Accepted:
    return Accepted(
        f"a list of numbers above 0, like {example}",
        lambda value: _is_list(value, ABOVE_0.holds) and len(value) > 0,
    )


def texts(example: str) -> Accepted:
    return Accepted(
        f"a list like {example}",
        lambda value: _is_list(value, lambda text: isinstance(text, str)),
    )


def _is_list(value: object, holds: Callable[[Any], bool]) -> bool:
    return isinstance(value, ListConfig) and all(map(holds, value))


SWITCH = Accepted("true or false", lambda value: isinstance(value, bool))
ABOVE_0 = Accepted("a number above 0", lambda value: is_number(value) and value > 0)
AT_LEAST_0 = Accepted("a number of at least 0", lambda value: is_number(value) and value >= 0)
FRACTION = Accepted("a number from 0 to 1", lambda value: is_number(value) and 0 <= value <= 1)
WARMUP = Accepted(
    "a fraction of the updates, from 0 to 1, or their number, from 2",
    lambda value: FRACTION.holds(value) or is_whole(value, 2),
)
BETAS = Accepted(
    "two numbers from 0 to below 1",
    lambda value: (
        _is_list(value, lambda beta: is_number(beta) and 0 <= beta < 1) and len(value) == 2
    ),
)
NAME = Accepted(
    "letters, digits, dots and dashes", lambda value: bool(re.fullmatch(r"[\w.-]+", str(value)))
)
FOLDER = Accepted("the path of a folder", lambda value: isinstance(value, str) and value != "")

ACCEPTED = {
    "runs": FOLDER,
    "weights_from": null_or(FOLDER),
    "named": texts("[optimizer.lr]"),
    "task": one_of("training", "throughput"),
    "seed": whole(0),
    "stages": whole(1),
    "batch": whole(1),
    "tokens": whole(1),
    "evaluations": whole(1),
    "validation_sequences": null_or(whole(1)),
    "validation_microbatch": whole(1),
    "measure_every": whole(0),
    "on_nonfinite": one_of("stop", "skip"),
    "most_skips": whole(1),
    "timeline": SWITCH,
    "retry": SWITCH,
    "dry_run": SWITCH,
    "seeds": whole_numbers(0),
    "batches": whole_numbers(1),
    "small_batch": whole(1),
    "large_batch": whole(1),
    "flush_count": whole(1),
    "async_batch": whole(1),
    "counts": whole_numbers(1),
    "sizes": whole_numbers(1),
    "splits": whole_numbers(1),
    "count": whole(1),
    "size": whole(1),
    "peaks": numbers_above_0("[1e-3,2e-3]"),
    "steep": numbers_above_0("[1e-3,1e-1]"),
    "lengths": whole_numbers(1),
    "devices": whole(1),
    "throughput.microbatches": whole(1),
    "throughput.error": ABOVE_0,
    "throughput.most_seconds": ABOVE_0,
    "method.name": NAME,
    "method.accumulation": whole(1),
    "method.slack": whole(0),
    "method.weights": one_of("live", "stashed", "double-buffered", "predicted", "corrected"),
    "model.layers": whole(1),
    "model.width": whole(1),
    "model.heads": whole(1),
    "model.context": whole(2),
    "model.dropout": FRACTION,
    "model.initialisation": AT_LEAST_0,
    "model.residual_initialisation": null_or(AT_LEAST_0),
    "model.partition": Accepted(
        "flops, measured, even-less-ends or a list of the layers of each stage, like [1,2,2,1]",
        lambda value: (
            value in ("flops", "measured", "even-less-ends")
            or _is_list(value, lambda layers: is_whole(layers, 0))
        ),
    ),
    "optimizer.name": one_of("adamw", "nadamw", "muon"),
    "optimizer.lr": ABOVE_0,
    "optimizer.reference_batch": ABOVE_0,
    "optimizer.betas": BETAS,
    "optimizer.momentum": FRACTION,
    "optimizer.eps": ABOVE_0,
    "optimizer.weight_decay": AT_LEAST_0,
    "optimizer.decay": one_of("matrices", "matrices-but-embeddings"),
    "optimizer.schedule": one_of("cosine", "constant", "wsd"),
    "optimizer.warmup": WARMUP,
    "optimizer.cooldown": FRACTION,
    "optimizer.final": FRACTION,
    "optimizer.anneal": FRACTION,
    "optimizer.clip": one_of("none", "stage", "global", "running"),
    "optimizer.max_norm": ABOVE_0,
    "data.source": one_of("kjv", "files", "openwebtext"),
    "data.tokeniser": one_of("bytes", "gpt2"),
    "data.validation": FRACTION,
    "data.shortest": one_of("characters", "words"),
    "data.shuffle_seed": whole(0),
    "data.order_seed": whole(0),
    "data.folder": FOLDER,
    "executor.name": one_of("local", "distributed", "emulated"),
    "executor.device": one_of("cpu", "cuda"),
    "executor.threads": whole(1),
    "executor.precision": one_of("float32", "bfloat16-autocast", "bfloat16"),
    "executor.recompute": one_of("none", "stage"),
    "executor.compile": SWITCH,
    "executor.order": one_of("dynamic", "static"),
    "executor.message": one_of("float32", "bfloat16"),
    "executor.transfer": AT_LEAST_0,
    "cluster.name": one_of("local", "inline", "slurm"),
    "cluster.parallel": null_or(whole(1)),
    "cluster.time": whole(0),
    "cluster.cpus_per_task": null_or(whole(1)),
    "cluster.gpus_per_node": null_or(whole(1)),
    "cluster.nodes": null_or(whole(1)),
    "cluster.setup": texts("['module load cuda']"),
    "cluster.sbatch": texts("['--exclude=node7']"),
    "cluster.warning": whole(0),
    "cluster.requeues": whole(0),
}
"""{key: the values that it accepts}. Clusters, executors and optimizers lack those that they do not
use."""

GROUPS = {key.partition(".")[0] for key in ACCEPTED if "." in key} | {"method.options"}


def check_each(config: DictConfig) -> None:
    """Raise ValueError, saying what was given and what is accepted, for a value out of range."""
    for group in sorted(GROUPS):
        value = OmegaConf.select(config, group)
        if not isinstance(value, DictConfig):
            raise ValueError(
                f"{group} is a group of settings, each set as {group}.KEY=VALUE, not {value!r}"
            )
    for key, accepted in ACCEPTED.items():
        group, _, name = key.partition(".")
        if group in ("cluster", "executor", "optimizer") and name not in config[group]:
            continue
        if name and name not in config[group]:
            raise ValueError(f"{key} is missing: give it {accepted.words}")
        value = OmegaConf.select(config, key)
        if not accepted.holds(value):
            raise ValueError(f"{key} must be {accepted.words}, not {value!r}")
        for number in value if isinstance(value, ListConfig) else [value]:
            if isinstance(number, int) and number > LARGEST:
                raise ValueError(f"{key} must be below 2^63, not {number}")
        if accepted is FOLDER:
            check_folder(key, value)


def check_folder(key: str, value: object) -> None:
    """Raise ValueError unless `value` is the path of a folder, which need not exist yet."""
    if not isinstance(value, str) or not FOLDER.holds(value):
        raise ValueError(f"{key} must be {FOLDER.words}, not {value!r}")
    for path in (Path(value), *Path(value).parents):
        if path.exists() and not path.is_dir():
            raise ValueError(f"{key} must be {FOLDER.words}, not {value!r}: {path} is a file")

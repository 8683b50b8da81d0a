"""Checks of a configuration's settings against each other, and against this machine."""

import os

from omegaconf import DictConfig

from experiments.config.derived import (
    cost_of,
    is_measured,
    layers_of,
    method_of,
    schedule_of,
    updates,
    warmup_updates,
)
from experiments.config.naming import told
from paci.cost import Durations


def check_together(config: DictConfig) -> None:
    """Raise ValueError, saying what was given and what is accepted, for settings that conflict.

    Each value must be accepted by itself already.
    """
    _check_sizes(config)
    _check_executor(config)
    _check_schedule(config)
    for key in config.named:
        if told(config, key) is None:
            raise ValueError(f"named must list keys of the configuration, which has no {key!r}")


def _check_schedule(config: DictConfig) -> None:
    """Check that the warm-up of a run that can be made longer does not depend on its length."""
    name, warmup = config.optimizer.schedule, config.optimizer.warmup
    if name != "cosine" and 0 < warmup <= 1:
        rising = warmup_updates(config, updates(config))
        raise ValueError(
            f"optimizer.schedule={name} lets a run be made longer, so its warm-up must be a number "
            f"of updates: write optimizer.warmup={rising if rising > 1 else 0}, not {warmup}"
        )


def _check_executor(config: DictConfig) -> None:
    executor, schedule = config.executor, schedule_of(config)
    if config.optimizer.clip == "global" and not schedule.flushes:
        raise ValueError(
            f"optimizer.clip=global needs a schedule that flushes, which {schedule.name} does not: "
            "choose stage or running"
        )
    if executor.threads > 4 * (os.cpu_count() or 1):
        raise ValueError(f"executor.threads must be at most four per core, not {executor.threads}")
    if config.task == "throughput" and executor.name == "local" and not is_measured(config):
        raise ValueError(
            "task=throughput measures tokens per second, but executor=local counts units of given "
            "costs: choose executor=measured, emulated or distributed"
        )
    if "cost" in executor and not is_measured(config):
        Durations(cost_of(config), config.stages, 0)  # raises for a wrong time or list of times
        if executor.get("transfer", 0):
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
    if model.partition not in ("flops", "measured"):
        layers_of(config)
    method_of(config).check(config.stages)
    if config.batch < accumulation:
        raise ValueError(
            f"batch must be at least method.accumulation ({accumulation}), a sequence for each "
            f"micro-batch, not {config.batch}"
        )
    if config.task == "training" and updates(config) < config.evaluations:
        raise ValueError(
            f"tokens={config.tokens} make {updates(config)} updates of {config.batch} sequences "
            f"of {config.model.context} tokens, too few for evaluations={config.evaluations}"
        )

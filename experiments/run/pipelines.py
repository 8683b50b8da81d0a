"""The pipeline of a run, on the executor that its configuration names.

local         all stages in this process, simulated clock
distributed   this process is one rank of torch.distributed, wall clock
emulated      the same with stages that wait instead of computing: only times mean anything
"""

import os

import torch
from omegaconf import DictConfig

from experiments import models
from experiments.config.derived import is_measured, schedule_of
from experiments.optimizers.optimizer import learning_rates, make_optimizer
from experiments.run.costs import cost_for
from experiments.run.run import Run
from experiments.run.stages import stage_module
from paci import DistributedPipeline, LocalPipeline
from paci.distributed.emulated import Emulation


def build_pipeline(run: Run) -> LocalPipeline | DistributedPipeline:
    """All of this process's stages, ready to train."""
    config, executor, method = run.config, run.config.executor, run.config.method
    vocabulary = run.corpus.vocabulary
    torch.set_num_threads(executor.threads)
    options = {
        "weights": method.weights,
        "optimizer": make_optimizer(config),
        "loss_fn": models.loss,
        "lr_lambda": learning_rates(config, run.updates),
        "seed": config.seed,
        "measure_every": config.measure_every,
    }
    if executor.name == "local":
        modules = [stage_module(config, vocabulary, stage) for stage in range(config.stages)]
        return LocalPipeline(modules, schedule_of(config), cost=cost_for(run), **options)
    modules = [stage_module(config, vocabulary, stage) for stage in _own_stages(config)]
    if executor.name == "emulated":
        options["make_stage"] = Emulation(cost_for(run))
    return DistributedPipeline(modules, schedule_of(config), order=executor.order, **options)


def clock_of(config: DictConfig) -> str:
    """The clock that a run's seconds are of; those of two clocks do not compare."""
    simulated = "simulated, measured costs" if is_measured(config) else "simulated"
    return {"local": simulated, "distributed": "wall", "emulated": "emulated"}[config.executor.name]


def _own_stages(config: DictConfig) -> tuple[int, ...]:
    return schedule_of(config).placement[int(os.environ["RANK"])]

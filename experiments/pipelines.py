"""The pipeline of a run, on the executor that its configuration names.

local         all stages in this process, simulated clock
distributed   this process is one rank of torch.distributed, wall clock
emulated      the same with stages that wait instead of computing: only times mean anything
"""

import os

import torch
from omegaconf import DictConfig
from torch import nn

from experiments import models
from experiments.config import cost_of, schedule_of
from experiments.cut import cut_for
from experiments.optimizer import learning_rates, make_optimizer
from experiments.run import Run
from paci import DistributedPipeline, LocalPipeline

CLOCKS = {"local": "simulated", "distributed": "wall", "emulated": "emulated"}


def build_pipeline(run: Run) -> LocalPipeline | DistributedPipeline:
    """All of this process's stages, ready to train."""
    config, executor, method = run.config, run.config.executor, run.config.method
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
        modules = [_module(run, stage) for stage in range(config.stages)]
        cost = cost_of(config)
        return LocalPipeline(modules, schedule_of(config), cost=cost, **options)
    modules = [_module(run, stage) for stage in _own_stages(config)]
    emulate = cost_of(config) if executor.name == "emulated" else None
    return DistributedPipeline(
        modules, schedule_of(config), order=executor.order, emulate=emulate, **options
    )


def _own_stages(config: DictConfig) -> tuple[int, ...]:
    return schedule_of(config).placement[int(os.environ["RANK"])]


def _module(run: Run, stage: int) -> nn.Module:
    """Stage `stage` of the model on its device, its forward in the run's precision."""
    config, executor, vocabulary = run.config, run.config.executor, run.corpus.vocabulary
    cut = cut_for(config, vocabulary)
    module = models.build_stage(
        config.model, vocabulary, config.stages, stage, config.seed, cut
    ).to(_device(executor))
    if executor.precision == "bfloat16-autocast":
        module.forward = torch.autocast(executor.device, torch.bfloat16)(module.forward)
    return module


def _device(executor: DictConfig) -> torch.device:
    if executor.device == "cuda" and executor.name != "local":
        return torch.device("cuda", int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
    return torch.device(executor.device)

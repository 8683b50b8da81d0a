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
from experiments.config.derived import is_measured, schedule_of
from experiments.optimizers.optimizer import make_optimizer
from experiments.optimizers.rates import learning_rates
from experiments.run.run import Run
from experiments.run.stages import compute_of, safeguards_of, stage_module
from paci import DistributedPipeline, LocalPipeline
from paci.distributed.emulated import Emulation
from runlog import UNITS


def build_pipeline(run: Run) -> LocalPipeline | DistributedPipeline:
    """Build the stages of this process and join them into a pipeline, ready to train."""
    config, executor, method = run.config, run.config.executor, run.config.method

    def module(stage: int) -> nn.Module:
        return stage_module(config, run.corpus.vocabulary, run.cut, stage)

    torch.set_num_threads(executor.threads)
    if promises_equal_bits(config) and executor.device == "cuda":
        make_deterministic()
    options = {
        "weights": method.weights,
        "optimizer": make_optimizer(config),
        "loss_fn": models.loss,
        "lr_lambda": learning_rates(config, run.updates),
        "seed": config.seed,
        "measure_every": config.measure_every,
        "batch": config.batch,
        "compute": compute_of(config),
        "safeguards": safeguards_of(config),
    }
    if executor.name == "local":
        modules = [module(stage) for stage in range(config.stages)]
        return LocalPipeline(modules, schedule_of(config), cost=run.cost, **options)
    modules = [module(stage) for stage in _own_stages(config)]
    if executor.name == "emulated":
        options["make_stage"] = Emulation(run.cost)
    return DistributedPipeline(
        modules, schedule_of(config), order=executor.order,
        message_dtype=getattr(torch, executor.get("message", "float32")), **options
    )  # fmt: skip


def promises_equal_bits(config: DictConfig) -> bool:
    """Return whether two runs of `config` are bitwise equal, as their order of actions is fixed."""
    return config.executor.name == "local" or config.executor.order == "static"


def make_deterministic() -> None:
    """Let equal runs on a GPU be equal bitwise.

    Some kernels are slower for it: flash attention's backward, for example, adds up its gradients
    in an order that is otherwise left to the device.
    """
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True)


def clock_of(config: DictConfig) -> str:
    """Name the clock of a run's times; times of two clocks do not compare."""
    simulated = "simulated, measured costs" if is_measured(config) else UNITS
    return {"local": simulated, "distributed": "wall", "emulated": "emulated"}[config.executor.name]


def _own_stages(config: DictConfig) -> tuple[int, ...]:
    return schedule_of(config).placement[int(os.environ["RANK"])]

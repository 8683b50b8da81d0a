"""A stage's part of the model, as a run trains it."""

import os

import torch
from omegaconf import DictConfig
from torch import nn

from experiments import models


def stage_module(config: DictConfig, vocabulary: int, cut: list[range], stage: int) -> nn.Module:
    """Build stage `stage` of the model on its device; its forward has the run's precision."""
    executor = config.executor
    module = models.build_stage(
        config.model, vocabulary, config.stages, stage, config.seed, cut
    ).to(_device(executor))
    if executor.precision == "bfloat16-autocast":
        in_bfloat16 = torch.autocast(executor.device, torch.bfloat16)
        module.forward = in_bfloat16(module.forward)  # type: ignore[method-assign]
    return module


def _device(executor: DictConfig) -> torch.device:
    """Return the device of this process's rank, or of a run in one process."""
    if executor.device == "cuda" and "LOCAL_RANK" in os.environ:
        return torch.device("cuda", int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
    return torch.device(executor.device)

"""A stage's part of the model, and how a run trains it."""

import os

import torch
from omegaconf import DictConfig
from torch import nn

from experiments import models
from paci import Compute, Safeguards


def stage_module(config: DictConfig, vocabulary: int, cut: list[range], stage: int) -> nn.Module:
    """Build stage `stage` of the model on its device."""
    module = models.build_stage(config.model, vocabulary, config.stages, stage, config.seed, cut)
    return module.to(_device(config.executor))


def compute_of(config: DictConfig) -> Compute:
    """Return how the run's stages compute. Emulated ones wait, in no precision."""
    executor = config.executor
    if executor.name == "emulated":
        return Compute(recompute=executor.recompute)
    return Compute(executor.precision, executor.recompute, executor.compile)


def safeguards_of(config: DictConfig) -> Safeguards:
    """Return what the run's stages do to gradients before an update."""
    optimizer = config.optimizer
    return Safeguards(optimizer.clip, optimizer.max_norm, config.on_nonfinite, config.most_skips)


def _device(executor: DictConfig) -> torch.device:
    """Return the device of this process's rank, or of a run in one process."""
    if executor.device == "cuda" and "LOCAL_RANK" in os.environ:
        return torch.device("cuda", int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
    return torch.device(executor.device)

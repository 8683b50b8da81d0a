"""The optimizer of a stage, by its name in conf/optimizer/."""

import math
from collections.abc import Callable, Iterable

import torch
from omegaconf import DictConfig
from torch import nn

from experiments.optimizers.adamw import adamw
from experiments.optimizers.muon import muon
from experiments.optimizers.nadamw import nadamw

Make = Callable[[Iterable[nn.Parameter], DictConfig, float], torch.optim.Optimizer]

OPTIMIZERS: dict[str, Make] = {"adamw": adamw, "nadamw": nadamw, "muon": muon}
"""{name: (parameters, settings of the group `optimizer`, peak learning rate) -> optimizer}"""


def make_optimizer(config: DictConfig) -> Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer]:
    """Return what makes a stage's optimizer, at the peak learning rate.

    As in the paper, the peak scales with the square root of the batch.
    """
    settings = config.optimizer
    peak = settings.lr * math.sqrt(config.batch / settings.reference_batch)
    make = OPTIMIZERS[settings.name]
    return lambda parameters: make(parameters, settings, peak)

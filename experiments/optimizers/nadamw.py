"""NAdamW: Adam with Nesterov's momentum (Dozat, 2016) and decoupled weight decay."""

from collections.abc import Iterable

import torch
from omegaconf import DictConfig
from torch import nn

from experiments.optimizers.groups import decay_groups


def nadamw(
    parameters: Iterable[nn.Parameter], settings: DictConfig, peak: float
) -> torch.optim.NAdam:
    """Return PyTorch's NAdam with decoupled weight decay, at the learning rate `peak`."""
    return torch.optim.NAdam(
        decay_groups(parameters, settings),
        lr=peak,
        betas=(settings.betas[0], settings.betas[1]),
        eps=settings.eps,
        decoupled_weight_decay=True,
    )

"""AdamW (Loshchilov and Hutter, ICLR 2019), the paper's optimizer."""

from collections.abc import Iterable

import torch
from omegaconf import DictConfig
from torch import nn

from experiments.optimizers.groups import decay_groups


def adamw(
    parameters: Iterable[nn.Parameter], settings: DictConfig, peak: float
) -> torch.optim.AdamW:
    """Return PyTorch's AdamW, fused, at the learning rate `peak`."""
    return torch.optim.AdamW(
        decay_groups(parameters, settings),
        lr=peak,
        betas=(settings.betas[0], settings.betas[1]),
        eps=settings.eps,
        fused=True,
    )

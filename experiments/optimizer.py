"""The optimizer of the paper and its learning rate."""

import math
from collections.abc import Callable, Iterable

import torch
from omegaconf import DictConfig
from torch import nn


def make_optimizer(config: DictConfig) -> Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer]:
    """AdamW at the peak learning rate of this run, weight decay on tensors of 2+ dimensions only.

    The peak scales with the square root of the batch, as in the paper.
    """
    settings = config.optimizer
    peak = settings.lr * math.sqrt(config.batch / settings.reference_batch)

    def make(parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        parameters = list(parameters)
        groups = [
            {
                "params": [p for p in parameters if p.dim() >= 2],
                "weight_decay": settings.weight_decay,
            },
            {"params": [p for p in parameters if p.dim() < 2], "weight_decay": 0.0},
        ]
        return torch.optim.AdamW(
            [group for group in groups if group["params"]],
            lr=peak,
            betas=tuple(settings.betas),
            eps=settings.eps,
            fused=True,
        )

    return make


def warmup_cosine(updates: int, warmup: float, final: float) -> Callable[[int], float]:
    """Factor on the peak learning rate for the update after `version` updates.

    Linear to 1 over the first `warmup` (a fraction) of `updates`, then a cosine to `final`.
    """
    rising = max(1, round(warmup * updates))

    def factor(version: int) -> float:
        if version < rising:
            return (version + 1) / rising
        progress = min(1.0, (version - rising) / max(1, updates - 1 - rising))
        return final + (1 - final) * (1 + math.cos(math.pi * progress)) / 2

    return factor

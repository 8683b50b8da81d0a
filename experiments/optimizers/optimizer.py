"""The optimizer of a stage."""

import math
from collections.abc import Callable, Iterable

import torch
from omegaconf import DictConfig
from torch import nn


def make_optimizer(config: DictConfig) -> Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer]:
    """Return what makes a stage's optimizer, AdamW or NAdamW, at the peak learning rate.

    As in the paper, the peak scales with the square root of the batch. `optimizer.decay` says
    which weights decay: `matrices`, all tensors of 2+ dimensions, or `matrices-but-embeddings`.
    """
    settings = config.optimizer
    peak = settings.lr * math.sqrt(config.batch / settings.reference_batch)

    def decays(parameter: nn.Parameter) -> bool:
        exempt = settings.decay == "matrices-but-embeddings" and hasattr(parameter, "is_embedding")
        return parameter.dim() >= 2 and not exempt

    def make(parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        parameters = list(parameters)
        decaying = [p for p in parameters if decays(p)]
        others = [p for p in parameters if not decays(p)]
        groups = [
            {"params": decaying, "weight_decay": settings.weight_decay},
            {"params": others, "weight_decay": 0.0},
        ]
        groups = [group for group in groups if group["params"]]
        common = {"lr": peak, "betas": tuple(settings.betas), "eps": settings.eps}
        if settings.name == "nadamw":
            return torch.optim.NAdam(groups, decoupled_weight_decay=True, **common)
        return torch.optim.AdamW(groups, fused=True, **common)

    return make

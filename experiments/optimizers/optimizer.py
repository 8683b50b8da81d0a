"""The optimizer of a stage, and its learning rates."""

import math
from collections.abc import Callable, Iterable

import torch
from omegaconf import DictConfig
from torch import nn

from experiments.config.derived import method_of
from paci.schedules.delay import rescaled


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


def learning_rates(config: DictConfig, updates: int) -> list[Callable[[int], float]]:
    """Return each stage's factor on the peak learning rate, as a function of its version.

    The factor is warm-up and cosine and, for the first `optimizer.anneal` of the updates,
    PipeMare's smaller steps for late gradients (T1).
    """
    settings, method = config.optimizer, method_of(config)
    factor = warmup_cosine(updates, settings.warmup, settings.final)
    delays = [method.mean_delay(config.stages, stage) for stage in range(config.stages)]
    return [rescaled(factor, delay, round(settings.anneal * updates)) for delay in delays]


def warmup_cosine(updates: int, warmup: float, final: float) -> Callable[[int], float]:
    """Return the factor on the peak learning rate for the update after `version` updates.

    It rises linearly to 1 over the first `warmup` (a fraction) of `updates`, and then falls as a
    cosine to `final`.
    """
    rising = max(1, round(warmup * updates))

    def factor(version: int) -> float:
        if version < rising:
            return (version + 1) / rising
        progress = min(1.0, (version - rising) / max(1, updates - 1 - rising))
        return final + (1 - final) * (1 + math.cos(math.pi * progress)) / 2

    return factor

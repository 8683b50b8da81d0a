"""Small models and data, the same at every call."""

import torch
from torch import nn
from torch.nn import functional as F

WIDTH = 4


def stages(count: int, dropout: float = 0.0) -> list[nn.Module]:
    """Perceptrons of one hidden step each, in float32."""
    with torch.random.fork_rng():
        torch.manual_seed(1)
        return [
            nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh(), nn.Dropout(dropout))
            for _ in range(count)
        ]


def batches(count: int, rows: int = 3) -> list[tuple[torch.Tensor, torch.Tensor]]:
    generator = torch.Generator().manual_seed(2)
    return [
        tuple(torch.randn(2, rows, WIDTH, generator=generator).unbind()) for _ in range(count)
    ]


def adamw(parameters) -> torch.optim.Optimizer:
    return torch.optim.AdamW(parameters, lr=0.05, betas=(0.9, 0.95), weight_decay=0.1)


def warm_up(version: int) -> float:
    return min(1.0, (version + 1) / 3)


loss_fn = F.mse_loss


def weights(modules) -> list[list[torch.Tensor]]:
    """A copy of the parameters of every stage."""
    return [[p.detach().clone() for p in module.parameters()] for module in modules]


def same(one, other) -> bool:
    """Whether two nests of tensors, lists and numbers are equal to the last bit."""
    if isinstance(one, torch.Tensor):
        return torch.equal(one, other)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return one == other

"""Small models, data and costs, the same at every call."""

import torch
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F

from paci import Cost, LocalPipeline

WIDTH = 4
ROWS = 3
loss_fn = F.mse_loss


def layer(dropout: float = 0.0) -> nn.Module:
    return nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.LeakyReLU(0.5), nn.Dropout(dropout))


def stages(count: int, dropout: float = 0.0) -> list[nn.Module]:
    with torch.random.fork_rng():
        torch.manual_seed(1)
        return [layer(dropout) for _ in range(count)]


class Autocast(nn.Sequential):
    def forward(self, x):
        with torch.autocast("cpu", torch.bfloat16):
            return super().forward(x)


class Layers(nn.ModuleDict):
    """The layers of one stage, by their numbers in the whole model."""

    def forward(self, x):
        for layer in self.values():
            x = layer(x)
        return x


def cut(layers: list[nn.Module], into: int) -> list[nn.Module]:
    """Stages of equally many layers."""
    each = len(layers) // into
    return [
        Layers({str(n): layers[n] for n in range(each * i, each * (i + 1))}) for i in range(into)
    ]


def batches(count: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
    generator = torch.Generator().manual_seed(2)
    return [tuple(torch.randn(2, ROWS, WIDTH, generator=generator).unbind()) for _ in range(count)]


def uneven_batches(sizes: list[int], windows: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Return windows of micro-batches that have so many sequences each."""
    generator = torch.Generator().manual_seed(3)
    return [
        tuple(torch.randn(2, size, WIDTH, generator=generator).unbind())
        for _ in range(windows)
        for size in sizes
    ]


def sent(backward, microbatch: int, gradient: torch.Tensor | None = None) -> torch.Tensor | None:
    """The gradient that a stage's `backward` (or the first half of one) sends, if it does."""
    box = []
    backward(microbatch, gradient, box.append)
    return box[0] if box else None


def adamw(parameters) -> torch.optim.Optimizer:
    return torch.optim.AdamW(parameters, lr=0.05, betas=(0.9, 0.95), weight_decay=0.1)


def sgd(parameters) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, lr=0.1, momentum=0.9)


def warm_up(version: int) -> float:
    return min(1.0, (version + 1) / 3)


def pipeline(modules, schedule="paci", accumulation=4, **options) -> LocalPipeline:
    options = {"optimizer": adamw, "loss_fn": loss_fn, "lr_lambda": warm_up} | options
    return LocalPipeline(modules, schedule, accumulation, **options)


def weights(modules) -> list[list[torch.Tensor]]:
    """A copy of the parameters of every module."""
    return [[p.detach().clone() for p in module.parameters()] for module in modules]


def same(one, other) -> bool:
    """Whether two nests of tensors, lists and numbers are equal to the last bit."""
    if isinstance(one, torch.Tensor):
        return torch.equal(one, other)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return one == other


eighths = st.integers(1, 24).map(lambda n: n / 8)  # on the clock's grid, whatever the longest


@st.composite
def sizes(draw, slack: bool = True, stages: int = 12) -> dict:
    """Arguments of `paci.simulate` but the schedule: any sizes, any times."""
    N = draw(st.integers(1, stages))
    a = draw(st.integers(1, 6))

    def times(some):
        return draw(some | st.lists(some, min_size=N, max_size=N))

    cost = Cost(
        forward=times(eighths),
        backward=times(eighths),
        update=times(st.just(0.0) | eighths),
        transfer=times(st.just(0.0) | eighths),
        jitter=draw(st.sampled_from([0.0, 0.1, 0.6])),
    )
    return {
        "stages": N,
        "accumulation": a,
        "microbatches": a * draw(st.integers(1, 6)),
        "slack": draw(st.integers(0, 5)) if slack else 0,
        "cost": cost,
        "seed": draw(st.integers(0, 3)),
    }

"""Stages that all sides of a comparison share, empty ones and two of a real model, and the time and
memory that they take."""

import resource
import time
from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import nn

from paci import Cost

RANKS, M = 8, 32
EMULATED, EMPTY = 8, 24  # windows of M micro-batches that are timed
COST = Cost(forward=0.020, backward=0.040)  # seconds of an emulated stage
WORK = COST.forward + COST.backward
KB64, KB512 = 16 * 1024, 128 * 1024  # float32 numbers of an activation of so many bytes
REAL_M, REAL_WINDOWS, SEQUENCES = 4, 12, 16  # of the two real stages; sequences a micro-batch
VOCABULARY = 257


class Empty(nn.Module):
    """A stage with next to nothing to compute."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(()))

    def forward(self, x):
        return x + self.weight


def empty_loss(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return nn.functional.mse_loss(output, target)


def real_stage() -> tuple[nn.Module, Callable, Callable, torch.Tensor]:
    """Return this rank's half of the laptop model, the function that makes its optimizer, its loss,
    and the tokens of a micro-batch, which are its targets as well."""
    from experiments import models  # seconds to import, which eight emulated ranks can do without
    from experiments.config import compose
    from experiments.optimizers.optimizer import make_optimizer

    torch.set_num_threads(1)
    config = compose(["scale=laptop"])
    module = models.build_stages(config.model, VOCABULARY, 2, seed=0)[dist.get_rank()]
    tokens = torch.randint(VOCABULARY, (SEQUENCES, config.model.context))
    return module, make_optimizer(config), models.loss, tokens


def peak_bytes() -> int:
    """Return the most memory, in bytes, that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def timed(step: Callable, warm_up: int, steps: int) -> float:
    """Return the mean seconds of `steps` steps, from all ranks' start to the end of the last."""
    for _ in range(warm_up):
        step()
    dist.barrier()
    start = time.monotonic()
    for _ in range(steps):
        step()
    dist.barrier()
    return (time.monotonic() - start) / steps

"""PyTorch's own pipeline, `Schedule1F1B`, on the modules of `benchmarks.stages`."""

from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.pipelining import PipelineStage, Schedule1F1B

from benchmarks import stages
from paci.distributed.emulated import EmulatedDevice, EmulatedModule, EmulatedTimes


def emulated() -> dict[str, list[float]]:
    """Return the seconds of a micro-batch in each step of emulated stages, at one of eight
    ranks."""
    torch.set_num_threads(1)
    step = _step(_emulated(), stages.M, stages.empty_loss, torch.zeros(stages.M, stages.KB64))
    step()
    return {"flush": [stages.timed(step, 0, 1) / stages.M for _ in range(stages.EMULATED)]}


def empty() -> dict[str, float]:
    """Return the seconds of a micro-batch in empty stages, at one of eight ranks."""
    torch.set_num_threads(1)
    return {"empty": _seconds(stages.KB64), "empty 512k": _seconds(stages.KB512)}


def real() -> dict[str, float]:
    """Return the seconds of a micro-batch in two stages of the laptop model, and this rank's peak
    bytes."""
    module, make_optimizer, loss_fn, tokens = stages.real_stage()
    m, windows = stages.REAL_M, stages.REAL_WINDOWS
    optimizer = make_optimizer(module.parameters())
    forward_and_backward = _step(module, m, loss_fn, tokens.repeat(m, 1))

    def step() -> None:
        forward_and_backward()
        optimizer.step()
        optimizer.zero_grad()

    return {"seconds": stages.timed(step, 2, windows) / m, "bytes": stages.peak_bytes()}


def _seconds(size: int) -> float:
    step = _step(stages.Empty(), stages.M, stages.empty_loss, torch.zeros(stages.M, size))
    return stages.timed(step, stages.EMPTY // 2, stages.EMPTY) / stages.M


def _emulated() -> EmulatedModule:
    """Return a stage that waits instead of computing, and gives zeros."""
    times = EmulatedTimes(stages.COST, dist.get_rank(), stages.RANKS, seed=0)
    module = EmulatedModule(stages.Empty(), False, times, EmulatedDevice())
    module.outputs[torch.Size((1, stages.KB64))] = torch.zeros(1, stages.KB64)
    return module


def _step(module: nn.Module, m: int, loss_fn: Callable, batch: torch.Tensor) -> Callable:
    """Return a function that runs `m` micro-batches of `batch`, which is its own target, forward
    and backward."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    stage = PipelineStage(module, rank, ranks, torch.device("cpu"))
    schedule = Schedule1F1B(stage, m, loss_fn=loss_fn)
    arguments = (batch,) if rank == 0 else ()
    target = {"target": batch} if rank == ranks - 1 else {}
    return lambda: schedule.step(*arguments, **target, return_outputs=False)

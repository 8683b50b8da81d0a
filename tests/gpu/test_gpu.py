"""Tests that need a GPU; without one, each is skipped with a sentence."""

import os
import signal

import pytest
import torch
import torch.distributed as dist
from torch import nn

import paci
from paci.distributed.failure import RankFailed
from paci.distributed.launch import spawn

GPUS = torch.cuda.device_count() if torch.cuda.is_available() else 0
WIDTH, ROWS, A, UPDATES = 256, 64, 4, 5

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(GPUS == 0, reason="PyTorch finds no CUDA device here"),
]
two_gpus = pytest.mark.skipif(GPUS < 2, reason=f"NCCL between two GPUs; PyTorch finds {GPUS} here")


def modules(device: str, count: int, dropout: float = 0.0) -> list[nn.Module]:
    torch.manual_seed(1)
    made = [
        nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.GELU(), nn.Dropout(dropout)) for _ in range(count)
    ]
    return [module.to(device) for module in made]


def batches(count: int = UPDATES * A) -> list[tuple[torch.Tensor, torch.Tensor]]:
    generator = torch.Generator().manual_seed(2)
    return [tuple(torch.randn(2, ROWS, WIDTH, generator=generator)) for _ in range(count)]


OPTIONS = {
    "accumulation": A,
    "optimizer": lambda parameters: torch.optim.AdamW(parameters, lr=1e-3),
    "loss_fn": nn.functional.mse_loss,
    "seed": 3,
}


def local(device: str, schedule: str, count: int, dropout: float = 0.0):
    stages = modules(device, count, dropout)
    segment = paci.LocalPipeline(stages, schedule, **OPTIONS).train(batches())
    return segment, [[p.detach().cpu() for p in stage.parameters()] for stage in stages]


@pytest.mark.parametrize("schedule", ["1f1b-flush", "paci", "zb-h1"])
def test_equals_the_processor(schedule):
    on_gpu, weights = local("cuda", schedule, 3)
    on_cpu, expected = local("cpu", schedule, 3)
    assert on_gpu.losses == pytest.approx(on_cpu.losses, rel=1e-4)
    assert on_gpu.drift == on_cpu.drift
    torch.testing.assert_close(weights, expected, rtol=1e-3, atol=1e-4)


def test_repeats_to_the_last_bit_dropout_included():
    one, other = (local("cuda", "paci", 3, dropout=0.1) for _ in range(2))
    assert one[0].losses == other[0].losses
    torch.testing.assert_close(one[1], other[1], rtol=0, atol=0)


def test_the_recorded_memory_is_the_devices():
    """All stages are on one device, so its peak lies between the largest stage's and the sum."""
    stages = modules("cuda", 3)
    pipeline = paci.LocalPipeline(stages, "paci", **OPTIONS)
    pipeline.train(batches(A))  # optimizer states are there
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    segment = pipeline.train(batches())
    peak = torch.cuda.max_memory_allocated() - before
    held = [stage.peak_held.activations + stage.peak_held.copies for stage in segment.stages]
    passing = 8 * max(p.nbytes for p in stages[0].parameters()) + 8 * ROWS * WIDTH * 4
    gradients = sum(p.nbytes for stage in stages for p in stage.parameters())
    assert max(held) <= peak <= sum(held) + gradients + passing


def _rank(schedule: str, order: str, message_dtype: torch.dtype | None = None) -> tuple:
    rank, ranks = dist.get_rank(), dist.get_world_size()
    torch.use_deterministic_algorithms(True)
    stage = modules(f"cuda:{rank}", ranks, dropout=0.1)[rank]
    pipeline = paci.DistributedPipeline(
        stage, schedule, order=order, message_dtype=message_dtype, **OPTIONS
    )
    segment = pipeline.train(batches())
    loss = pipeline.evaluate(batches(2))
    assert torch.cuda.current_device() == rank
    assert segment is None or all(r.memory.used >= r.memory.reserved for r in segment.ranks)
    pipeline.close()
    return segment and segment.losses, loss, [p.detach().cpu() for p in stage.parameters()]


@two_gpus
@pytest.mark.parametrize("schedule", ["gpipe", "1f1b-flush", "paci", "zb-h1"])
def test_ranks_over_nccl_equal_local_to_the_last_bit(schedule):
    segment, weights = local("cuda", schedule, 2, dropout=0.1)
    ranks = spawn(_rank, 2, schedule, "static", backend="nccl")
    assert ranks[-1][0] == segment.losses
    torch.testing.assert_close([r[2] for r in ranks], weights, rtol=0, atol=0)
    assert ranks[0][1] == ranks[1][1]


@two_gpus
def test_arrival_decides_over_nccl():
    losses = spawn(_rank, 2, "paci", "dynamic", backend="nccl")[-1][0]
    assert len(losses) == UPDATES * A


@two_gpus
def test_messages_in_bfloat16_round_a_little():
    exact, rounded = (
        spawn(_rank, 2, "paci", "static", dtype, backend="nccl")[-1][0]
        for dtype in (None, torch.bfloat16)
    )
    assert rounded == pytest.approx(exact, rel=0.05)
    assert rounded != exact


def _dies() -> None:
    rank = dist.get_rank()
    pipeline = paci.DistributedPipeline(modules(f"cuda:{rank}", 2)[rank], "paci", **OPTIONS)
    while True:
        pipeline.train(batches())
        if rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)


@two_gpus
def test_the_death_of_a_rank_ends_all():
    with pytest.raises(RankFailed, match="killed by SIGKILL") as caught:
        spawn(_dies, 2, backend="nccl")
    assert caught.value.rank == 1

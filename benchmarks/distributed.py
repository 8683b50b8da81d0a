"""DistributedPipeline against theory, and against PyTorch's own pipeline in the same processes.

Every time is from the first action of any rank to the last, after a warm-up: the first backward
of a process takes most of a second.
"""

import resource
import time
from collections.abc import Callable
from statistics import median

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.pipelining import PipelineStage, Schedule1F1B

import paci
from paci.cost import Durations
from paci.emulated import Emulated, EmulatedDevice
from paci.launch import spawn
from paci.ledger import Ledger
from paci.memory import SavedTensors

RANKS, M = 8, 32
ROUNDS = 7  # PyTorch's own time differs by a factor of two and more from one to the next
FORWARD, BACKWARD = 0.020, 0.040  # seconds of an emulated stage
KB64, KB512 = 16 * 1024, 128 * 1024  # numbers of an activation
VOCABULARY = 257


def measure() -> dict[str, float]:
    results = spawn(_emulated_and_empty, RANKS)[-1]
    ours, theirs = spawn(_real, 2, "paci"), spawn(_real, 2, "torch")
    results["paci_vs_torch_1f1b"] = ours[-1][0] / theirs[-1][0]
    results["paci_vs_torch_peak_memory"] = max(
        our[1] / their[1] for our, their in zip(ours, theirs, strict=True)
    )
    results["books_share"] = _books() / (FORWARD + BACKWARD)
    return results


class Empty(nn.Module):
    """As good as nothing to compute."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(()))

    def forward(self, x):
        return x + self.weight


def _loss(output, target):
    return nn.functional.mse_loss(output, target)


def _emulated_and_empty() -> dict[str, float]:
    torch.set_num_threads(1)
    cost = paci.Cost(FORWARD, BACKWARD)
    work = FORWARD + BACKWARD

    def of_theory(seconds: float, count: int, fill: int) -> float:
        return count * work / seconds / (fill / (fill + RANKS - 1))

    results = {
        "emulated_flush_vs_theory": of_theory(_ours("1f1b-flush", M, KB64, 2 * M, cost), 2 * M, M),
        "torch_flush_vs_theory": of_theory(_torch(KB64, 2, cost) / 2, M, M),
        "emulated_paci_vs_theory": of_theory(_ours("paci", 4, KB64, 128, cost), 128, 128),
        "emulated_paci_slack2_vs_theory": of_theory(
            _ours("paci", 4, KB64, 128, cost, slack=2), 128, 128
        ),
    }
    for name, size in (("empty_stage_vs_torch", KB64), ("empty_stage_512k_vs_torch", KB512)):
        rounds = [
            (_ours("1f1b-flush", M, size, 8 * M) / 8, _torch(size, 8) / 8) for _ in range(ROUNDS)
        ]
        ours, theirs = map(median, zip(*rounds, strict=True))
        results[name] = ours / theirs
        results[f"{name}_ms"] = ours / M * 1000
    return results


def _ours(schedule, accumulation, size, count, cost=None, **options) -> float:
    """Seconds of `count` micro-batches."""
    pipeline = paci.DistributedPipeline(
        Empty(), schedule, accumulation, loss_fn=_loss,
        optimizer=lambda p: torch.optim.SGD(p, 0.1), emulate=cost, **options,
    )  # fmt: skip
    batches = [(torch.zeros(size), torch.zeros(size))] * count
    pipeline.train(batches[: max(accumulation, 8)])
    pipeline.train(batches)
    before = pipeline.seconds
    pipeline.train(batches)
    pipeline.close()
    return pipeline.seconds - before


def _torch(size, steps, cost=None) -> float:
    """Seconds of `steps` steps of M micro-batches."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    module = Empty()
    if cost:
        module = Emulated(module, rank, EmulatedDevice())
        durations = Durations(cost, ranks, M * (1 + steps) + 1)  # and one to infer shapes
        module.begin(durations, torch.zeros(1, size))
    stage = PipelineStage(module, rank, ranks, torch.device("cpu"))
    schedule = Schedule1F1B(stage, M, loss_fn=_loss)
    input = torch.zeros(M, size)
    arguments = (input,) if rank == 0 else ()
    target = {"target": input} if rank == ranks - 1 else {}
    return _timed(lambda: schedule.step(*arguments, **target), steps)


def _timed(step: Callable, steps: int, warm_up: int = 1) -> float:
    for _ in range(warm_up):
        step()
    dist.barrier()
    start = time.monotonic()
    for _ in range(steps):
        step()
    dist.barrier()
    return time.monotonic() - start


def _real(who: str, m: int = 4, microbatch: int = 16, windows: int = 12) -> tuple[float, float]:
    """Tokens a second of the laptop model on two ranks, and this rank's peak bytes."""
    from experiments import models  # seconds to import, which eight emulated ranks can do without
    from experiments.config import compose
    from experiments.optimizer import make_optimizer

    torch.set_num_threads(1)
    rank, config = dist.get_rank(), compose(["scale=laptop"])
    module = models.build_stages(config.model, VOCABULARY, 2, seed=0)[rank]
    size = (microbatch, config.model.context)
    tokens = torch.randint(VOCABULARY, size)
    if who == "paci":
        pipeline = paci.DistributedPipeline(
            module, "paci", m, optimizer=make_optimizer(config), loss_fn=models.loss
        )
        pipeline.train([(tokens, tokens)] * m * 2)
        before = pipeline.seconds
        pipeline.train([(tokens, tokens)] * m * windows)
        seconds = pipeline.seconds - before
    else:
        optimizer = make_optimizer(config)(module.parameters())
        schedule = Schedule1F1B(
            PipelineStage(module, rank, 2, torch.device("cpu")),
            m,
            loss_fn=models.loss,
        )
        batch = tokens.repeat(m, 1)
        arguments = (batch,) if rank == 0 else ()
        target = {"target": batch} if rank == 1 else {}

        def step():
            schedule.step(*arguments, **target)
            optimizer.step()
            optimizer.zero_grad()

        seconds = _timed(step, windows, warm_up=2)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return m * windows * tokens.numel() / seconds, peak


def _books(rounds: int = 5000) -> float:
    """Seconds that the books of one micro-batch take at a stage."""
    module, input = Empty(), torch.zeros(KB64)
    ledger, saved = Ledger(module.parameters(), 4), SavedTensors(module.parameters())
    steps = []
    start = time.monotonic()
    for microbatch in range(rounds):
        for book in (ledger.forward, ledger.backward):
            book(microbatch)
            steps.append((0, 0, "F", microbatch, time.monotonic(), time.monotonic(), 0))
        with saved.saving(microbatch, input):
            pass
        saved.release(microbatch)
    return (time.monotonic() - start) / rounds

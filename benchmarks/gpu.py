"""Benchmarks that need GPUs, written to runs/bench-gpu.json: python -m benchmarks.gpu

1 GPU        GPT-2 Medium in several stages (LocalPipeline) against a plain loop, in two precisions:
             seconds a micro-batch, and memory
2 and more   four schedules over NCCL, each against its own simulation at the times that its stages
             took, and against PyTorch's Schedule1F1B; how long the others live after a rank has
             died
"""

import argparse
import json
import os
import signal
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.pipelining import PipelineStage, Schedule1F1B

import paci
from paci.actions import BACKWARD, FORWARD, INPUT_GRADIENT, WEIGHT_GRADIENT
from paci.distributed.device import device_memory, reset_peaks
from paci.distributed.failure import RankFailed
from paci.distributed.launch import spawn
from paci.simulation.timeline import Timeline

RESULTS = Path("runs/bench-gpu.json")
VOCABULARY, SEQUENCES, STAGES, M, WINDOWS = 50257, 4, 4, 8, 4
SCHEDULES = ("gpipe", "1f1b-flush", "zb-h1", "paci")
PRECISIONS = {"float32": torch.float32, "bfloat16-autocast": torch.bfloat16}


def main() -> None:
    argparse.ArgumentParser(
        prog="python -m benchmarks.gpu",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    ).parse_args()
    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if gpus == 0:
        print("skipped: PyTorch finds no CUDA device on this machine")
        return
    results: dict[str, Any] = {"gpu": torch.cuda.get_device_name(0), "gpus": gpus}
    for precision in PRECISIONS:
        # In a process of its own, for peaks and contexts to be its own as well.
        (results[f"one {precision}"],) = spawn(
            one_gpu, 1, precision, preload=["experiments.models"]
        )
    if gpus == 1:
        print("skipped: NCCL between GPUs needs two, PyTorch finds one")
    else:
        for schedule in SCHEDULES:
            by_rank = spawn(ranks, gpus, schedule, backend="nccl", preload=["experiments.models"])
            results[f"{gpus} ranks, {schedule}"] = by_rank[-1]
        results[f"{gpus} ranks, Schedule1F1B"] = spawn(pytorch, gpus, backend="nccl")[-1]
        results["seconds to the end after a death"] = death(gpus)
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    print(RESULTS.read_text(), end="")


def stages_of(count: int, precision: str = "bfloat16-autocast") -> list[nn.Module]:
    """Return GPT-2 Medium in so many stages, in the processor's memory."""
    from experiments import models
    from experiments.config import compose

    config = compose(["scale=paper", "cluster=inline", f"stages={count}"])
    modules: list[nn.Module] = models.build_stages(config.model, VOCABULARY, count, seed=0)
    for module in modules:
        if precision != "float32":
            module.forward = torch.autocast("cuda", PRECISIONS[precision])(module.forward)  # type: ignore[method-assign]
    return modules


def options() -> dict[str, Any]:
    from experiments import models

    return {
        "loss_fn": models.loss,
        "optimizer": lambda parameters: torch.optim.AdamW(parameters, lr=3e-4, fused=True),
    }


def tokens(count: int = 1) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randint(VOCABULARY, (count * SEQUENCES, 1024), generator=generator)


def one_gpu(precision: str) -> dict[str, Any]:
    """Time stages that take turns, and a plain loop over the same micro-batches."""
    device = torch.device("cuda", 0)
    torch.cuda.set_device(device)
    batch = tokens().to(device), tokens().to(device)
    in_stages = timed(_window_in_stages(precision, batch), device)
    torch.cuda.empty_cache()
    plain = timed(_window_of_a_plain_loop(precision, batch), device)
    return {
        name: {"seconds a micro-batch": seconds / M, **memory}
        for name, (seconds, memory) in {"paci, 4 stages": in_stages, "plain loop": plain}.items()
    }


def _window_in_stages(precision: str, batch: tuple) -> Callable[[], object]:
    modules = [module.to(batch[0].device) for module in stages_of(STAGES, precision)]
    pipeline = paci.LocalPipeline(modules, "paci", M, **options())
    return lambda: pipeline.train([batch] * M)


def _window_of_a_plain_loop(precision: str, batch: tuple) -> Callable[[], object]:
    model = nn.Sequential(*stages_of(STAGES, precision)).to(batch[0].device)
    optimizer, loss_fn = options()["optimizer"](model.parameters()), options()["loss_fn"]

    def window() -> None:
        for _ in range(M):
            (loss_fn(model(batch[0]), batch[1]) / M).backward()
        optimizer.step()
        optimizer.zero_grad()

    return window


def ranks(schedule: str) -> dict[str, Any]:
    """Time windows of this rank's stage over NCCL."""
    rank, count = dist.get_rank(), dist.get_world_size()
    device = torch.device("cuda", rank)
    module = stages_of(count)[rank].to(device)
    pipeline = paci.DistributedPipeline(module, schedule, M, **options())
    batch = tokens(), tokens()
    pipeline.train([batch] * M)
    segment = pipeline.train([batch] * M * WINDOWS)
    pipeline.close()
    if segment is None:
        return {}
    cost = measured_cost(segment.timeline, count)
    expected = paci.simulate(schedule, count, M * WINDOWS, M, cost=cost)
    return {
        "seconds a micro-batch": segment.seconds / M / WINDOWS,
        "busiest rank is busy": max(segment.timeline.busy) / segment.seconds,
        "busy in simulation": expected.utilization,
        "memory": [asdict(rank.memory) for rank in segment.ranks or [] if rank.memory],
    }


def measured_cost(timeline: Timeline, stages: int) -> paci.Cost:
    """Return the median time of every kind of action at each stage. What the last backward of a
    window takes longer than the others is the update."""
    seconds: defaultdict[tuple, list[float]] = defaultdict(list)
    for row in timeline.rows:
        seconds[row.stage, row.kind, timeline.updates(row)].append(row.end - row.start)

    def of(kind: str, updates: bool = False) -> list[float]:
        return [median(seconds[stage, kind, updates]) for stage in range(stages)]

    is_split = any(row.kind == WEIGHT_GRADIENT for row in timeline.rows)
    last = WEIGHT_GRADIENT if is_split else BACKWARD
    both = zip(of(last), of(last, updates=True), strict=True)
    update = [max(0.0, with_update - alone) for alone, with_update in both]
    if not is_split:
        return paci.Cost(of(FORWARD), of(BACKWARD), update=update)
    input, weight = of(INPUT_GRADIENT), of(WEIGHT_GRADIENT)
    backward = [sum(halves) for halves in zip(input, weight, strict=True)]
    return paci.Cost(of(FORWARD), backward, weight, input, update)


def pytorch() -> dict[str, Any]:
    """Time the same windows of PyTorch's own pipeline."""
    rank, count = dist.get_rank(), dist.get_world_size()
    device = torch.device("cuda", rank)
    module = stages_of(count)[rank].to(device)
    optimizer = options()["optimizer"](module.parameters())
    stage = PipelineStage(module, rank, count, device)
    step = Schedule1F1B(stage, M, loss_fn=options()["loss_fn"]).step
    data = tokens(M).to(device)
    arguments = (data,) if rank == 0 else ()
    target = {"target": data} if rank == count - 1 else {}

    def window() -> None:
        step(*arguments, **target, return_outputs=False)
        optimizer.step()
        optimizer.zero_grad()

    seconds, memory = timed(window, device)
    return {"seconds a micro-batch": seconds / M, **memory}


def death(count: int) -> float:
    """Return the seconds from the death of a rank to the end of all others."""
    folder = Path("runs")
    folder.mkdir(exist_ok=True)
    note = folder / ".death"
    try:
        spawn(dies, count, str(note.resolve()), backend="nccl")
    except RankFailed:
        return time.monotonic() - float(note.read_text())
    finally:
        note.unlink(missing_ok=True)
    raise RuntimeError("nobody noticed that a rank had died")


def dies(note: str) -> None:
    """Train until rank 1 kills itself."""
    rank, count = dist.get_rank(), dist.get_world_size()
    module = stages_of(count)[rank].to(torch.device("cuda", rank))
    pipeline = paci.DistributedPipeline(module, "paci", M, **options())
    batch = tokens(), tokens()
    for _ in range(100):
        if rank == 1 and pipeline.microbatch:
            Path(note).write_text(str(time.monotonic()))
            os.kill(os.getpid(), signal.SIGKILL)
        pipeline.train([batch] * M)


def timed(window: Callable[[], object], device: torch.device) -> tuple[float, dict[str, Any]]:
    """Return the seconds of a window, after one to warm up, and the memory that it took."""
    window()
    torch.cuda.synchronize(device)
    reset_peaks(device)
    start = time.monotonic()
    for _ in range(WINDOWS):
        window()
    torch.cuda.synchronize(device)
    memory = device_memory(device)
    return (time.monotonic() - start) / WINDOWS, asdict(memory) if memory else {}


if __name__ == "__main__":
    main()

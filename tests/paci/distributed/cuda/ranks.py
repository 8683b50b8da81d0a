"""Ranks that believe they drive GPUs: what `spawn` runs in each process."""

import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from paci.distributed.failure import RankFailed
from paci.distributed.nccl import NcclTransport
from paci.distributed.transport import Link, Spec
from paci.stage.stage import Stage
from tests.paci import fleet, toys
from tests.paci.distributed.cuda import emulation


class KernelStage(Stage):
    """A stage whose every action puts kernels on the device, as it computes on the processor."""

    seconds = 0.0005

    def launch(self, kernel: str) -> None:
        emulation.launch(kernel, lambda: time.sleep(self.seconds))

    def forward(self, microbatch, input, target=None):
        self.launch("forward")
        return super().forward(microbatch, input, target)

    def evaluate(self, input, target=None):
        self.launch("forward")
        return super().evaluate(input, target)

    def backward(self, microbatch, gradient=None, send=None):
        self.launch("backward")
        super().backward(microbatch, gradient, send)

    def backward_input(self, microbatch, gradient=None, send=None):
        self.launch("backward of the input")
        super().backward_input(microbatch, gradient, send)

    def backward_weight(self, microbatch):
        self.launch("backward of the weights")
        super().backward_weight(microbatch)

    def update(self):
        self.launch("optimizer")
        super().update()


def on_gpus(function: Callable[..., Any], *arguments: Any, eager: bool = False) -> Any:
    """Call `function` in a process that believes it has GPUs."""
    emulation.install(lazy_loading=True, eager=eager)
    fleet.OPTIONS["make_stage"] = KernelStage
    return function(*arguments)


def all_of(jobs: list[tuple]) -> tuple[list, dict]:
    """Return the results of many (function, *arguments), and what the device has seen."""
    results = on_gpus(fleet.all_of, jobs)
    seen = {
        "contexts": emulation.GPUS.contexts(),
        "current device": torch.cuda.current_device(),
        "waits of compute": emulation.GPUS.waits_of_compute,
        "spins": emulation.GPUS.spins,
    }
    return results, seen


class Watched(Sequence):
    """Batches that note the number of each that is built, and whether the main thread builds it."""

    def __init__(self, batches: list):
        self.batches = batches
        self.built: list[tuple[int, bool]] = []

    def __len__(self) -> int:
        return len(self.batches)

    def __getitem__(self, index):
        self.built.append((index, threading.current_thread() is threading.main_thread()))
        return self.batches[index]


def prefetching(count: int = 8) -> list[tuple[int, bool]]:
    """Return what `Watched` batches note while the engine trains on them. Before it does, the first
    is built for its shape."""
    with fleet.pipeline(fleet.own_stage(dist.get_world_size())) as line:
        watched = Watched(toys.batches(count))
        line.train(watched)
    return watched.built[-count:]


def out_of_memory(victim: int) -> tuple[str, str]:
    """Return the kind and the sentence of the failure when there is no room for a message at rank
    `victim`."""
    empty = Spec.empty

    def no_room(self: Spec, dtype: torch.dtype | None = None) -> torch.Tensor:
        raise torch.OutOfMemoryError("CUDA out of memory")

    line = fleet.pipeline(fleet.own_stage(dist.get_world_size()))
    line.train(toys.batches(4))
    if line.rank == victim:
        Spec.empty = no_room
    try:
        line.train(toys.batches(400))
    except RankFailed as failure:
        return failure.kind, str(failure)
    finally:
        Spec.empty = empty
    raise AssertionError("it trained without memory")


def crossing() -> float:
    """Return what the other of two ranks has sent while this one has sent to it."""
    rank, device = dist.get_rank(), torch.device("cpu")
    links = [Link(1, "F", 0, 1), Link(0, "B", 1, 0)]
    transport = NcclTransport(links, rank, device)
    transport.warm_up()
    there, back = (transport.channels[link.stage, link.kind] for link in links)
    out, into = (there, back) if rank == 0 else (back, there)
    own = torch.full((3,), float(rank))
    sent = out.send(own)
    with into.receiving():
        received = into.receive(Spec.of(own)).wait()
    sent.wait()
    transport.close()
    return float(received[0])


def dies(victim: int, notes: Path, rings_before: bool = False) -> None:
    """Train until rank `victim` is killed in its tenth backward, or after it `rings_before` its
    payload has left; see `fleet.noting_failure`."""
    line = on_gpus(fleet.pipeline, fleet.own_stage(dist.get_world_size()))
    if line.rank == victim:
        backwards = iter(range(10))

        def kill(*_) -> None:
            if next(backwards, None) is not None:
                return
            if not rings_before:
                os.kill(os.getpid(), signal.SIGKILL)
            if not emulation.Settings.stuck:
                emulation.Settings.stuck = True
                threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGKILL)).start()

        line.stages[0].module.register_full_backward_pre_hook(kill)
    with fleet.noting_failure(notes):
        while True:
            line.train(toys.batches(4) * 100)

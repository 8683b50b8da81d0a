"""Processes that try many configurations of DistributedPipeline, and what they are held against."""

import gc
import itertools
import os
import signal
import socket
import struct
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import torch
import torch.distributed as dist

import paci
from paci import checkpoint
from paci.distributed.emulated import Emulation
from paci.distributed.failure import RankFailed
from paci.distributed.gloo import WIDE
from paci.distributed.transport import Receiver
from tests.paci import toys

SEED = 5
INTERRUPTED_WINDOWS = 250
OPTIONS: dict = {}  # of all pipelines of this process


def pipeline(modules, schedule="paci", accumulation=4, **options) -> paci.DistributedPipeline:
    return paci.DistributedPipeline(
        modules,
        schedule,
        accumulation,
        seed=SEED,
        **{"optimizer": toys.adamw, "loss_fn": toys.loss_fn, "lr_lambda": toys.warm_up}
        | OPTIONS
        | options,
    )


def all_of(jobs: list[tuple]) -> list:
    """The results of many (function, *arguments), for processes are slow to start."""
    return [function(*arguments) for function, *arguments in jobs]


def own_stage(count: int, dropout: float = 0.3):
    """This rank's stage of so many; the layers carry their numbers in the model."""
    return toys.cut(toys.stages(count, dropout), count)[dist.get_rank()]


def stages_of(schedule: str, ranks: int) -> int:
    """Return as many stages as the schedule puts on so many ranks."""
    return ranks * paci.schedules.SCHEDULES[schedule].stages_per_rank


def own_stages(schedule: str, accumulation: int | None = None) -> list:
    """This rank's stages, wherever the schedule puts them."""
    ranks = dist.get_world_size()
    count = stages_of(schedule, ranks)
    modules = toys.cut(toys.stages(count, dropout=0.3), count)
    rule = paci.schedules.build(schedule, count, accumulation)
    return [modules[i] for i in rule.placement[dist.get_rank()]]


def train_all(configurations: list[tuple[str, int, str, int]], updates_of_each: int) -> list[dict]:
    """Make so many updates of each (schedule, accumulation, order, slack)."""
    results = []
    for schedule, accumulation, order, slack in configurations:
        modules = own_stages(schedule, accumulation)
        batches = toys.batches(updates_of_each * accumulation)
        line = pipeline(modules, schedule, accumulation, order=order, slack=slack)
        updates: list = []
        segment = line.train(batches, updates.append)
        results.append(
            {
                "weights": dict(
                    zip((s.index for s in line.stages), toys.weights(modules), strict=True)
                ),
                "segment": segment,
                "updates": updates,
                "evaluation": line.evaluate(batches[:3]),
                "seconds": line.seconds,
            }
        )
        line.close()
    return results


def emulated(schedules: list[str], cost: paci.Cost, m: int) -> list:
    """The segment of two windows of m micro-batches of each, where stages wait."""
    segments = []
    for schedule in schedules:
        line = pipeline(own_stages(schedule), schedule, m, make_stage=Emulation(cost))
        line.train(toys.batches(m))
        segments.append(line.train(toys.batches(2 * m)))
        line.close()
    return segments


def gradients(m: int) -> tuple[list, list]:
    """Return the gradients of one window at this stage: ours, and PyTorch's pipeline's."""
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B

    rank, ranks = dist.get_rank(), dist.get_world_size()
    batches = toys.batches(m)
    theirs, ours = own_stage(ranks, dropout=0.0), own_stage(ranks, dropout=0.0)
    stage = PipelineStage(theirs, rank, ranks, torch.device("cpu"))
    x, target = (torch.cat(tensors) for tensors in zip(*batches, strict=True))
    step = Schedule1F1B(stage, m, loss_fn=toys.loss_fn).step
    step(*([x] if rank == 0 else []), **({"target": target} if rank == ranks - 1 else {}))

    kept = []

    def optimizer(parameters):
        parameters = list(parameters)
        sgd = torch.optim.SGD(parameters, lr=0.1)
        sgd.register_step_pre_hook(lambda *_: kept.extend(p.grad.clone() for p in parameters))
        return sgd

    line = pipeline(ours, "1f1b-flush", m, optimizer=optimizer)
    line.train(batches)
    line.close()
    return kept, [p.grad for p in theirs.parameters()]


def checkpoints(schedule: str, folder: Path, save: bool) -> dict:
    """Train two segments of 8 micro-batches with a checkpoint in between; or only the second, from
    it. Returns weights before and after it, its losses where they are known, and warnings."""
    modules, batches = own_stages(schedule), toys.batches(16)
    line = pipeline(modules, schedule, 4, order="static")
    with warnings.catch_warnings(record=True) as warned:
        if save:
            line.train(batches[:8])
            line.save(folder)
        else:
            for module in modules:
                for p in module.parameters():
                    p.data.zero_()
            line.load(folder)
    indices, before = [stage.index for stage in line.stages], toys.weights(modules)
    segment = line.train(batches[8:])
    line.close()
    return {
        "before": dict(zip(indices, before, strict=True)),
        "after": dict(zip(indices, toys.weights(modules), strict=True)),
        "losses": segment and segment.losses,
        "warnings": [str(warning.message) for warning in warned],
    }


def refused(misfit: str, folder: Path) -> str:
    """Return every rank's sentence for unequal arguments, or for stages that do not fit (not even
    the checkpoint in `folder`)."""
    rank, options = dist.get_rank(), {}
    module, count = own_stage(dist.get_world_size()), 8
    if misfit == "shapes" and rank == 1:
        module = torch.nn.Linear(7, toys.WIDTH)
    if misfit == "order":
        options["order"] = "static" if rank == 1 else "dynamic"
    if misfit == "count" and rank == 1:
        count = 4
    if misfit == "unknown" or (misfit == "schedule" and rank == 1):
        options["schedule"] = "1f2b"
    if misfit == "placement" or (misfit == "stages" and rank == 1):
        module = [toys.layer(), toys.layer()]
    if misfit == "parameters" and rank == 1:
        module = torch.nn.ReLU()
    if misfit == "names":
        module = toys.layer()
    if misfit == "checkpoint" and rank == 1:
        module = toys.Layers({"1": torch.nn.Sequential(torch.nn.Linear(toys.WIDTH, 5))})
    try:
        line = pipeline(module, **options)
        if misfit == "names":
            line.save(Path("nowhere"))
        elif misfit == "checkpoint":
            line.load(folder)
        else:
            line.train(toys.batches(count))
    except ValueError as error:
        return str(error)


def load_that_fails(folder: Path) -> tuple[str, bool]:
    """Return every rank's sentence if rank 1 lacks the memory for a checkpoint that fits, and
    whether its weights and versions are as they were."""

    def no_room(*_) -> None:
        raise MemoryError("too large")

    module, read = own_stage(dist.get_world_size()), checkpoint.read
    line = pipeline(module)
    before, said = toys.weights([module]), ""
    checkpoint.read = no_room if line.rank == 1 else read
    try:
        line.load(folder)
    except RankFailed as failure:
        said = str(failure)
    finally:
        checkpoint.read = read
        line.close()
    as_it_was = toys.same(toys.weights([module]), before) and line.stages[0].versions.version == 0
    return said, as_it_was


def widened() -> int:
    """The connections over which a message that widens one has come, once a pipeline is made."""
    line = pipeline(own_stage(dist.get_world_size()))
    connections = bytes_received()
    line.close()
    return sum(received >= WIDE for received in connections)


def bytes_received() -> list[int]:
    """Return the bytes that have come over each open connection of this process, as Linux counts
    them."""
    received = []
    for file in Path("/proc/self/fd").iterdir():
        a_socket = int(file.name), socket.AF_INET, socket.SOCK_STREAM  # or anything else
        with suppress(OSError), socket.fromfd(*a_socket) as connection:
            info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 136)
            received += struct.unpack_from("Q", info, 128)  # tcpi_bytes_received, see linux/tcp.h
    return received


def left_by_a_closed_pipeline() -> tuple[int, int]:
    """Threads and open files, sockets among them, that are there afterwards and were not before."""

    def count() -> tuple[int, int]:
        return len(os.listdir("/proc/self/task")), len(os.listdir("/proc/self/fd"))

    gc.collect()
    gc.disable()  # Python would come round to what goes in circles, some time
    try:
        before = count()
        line = pipeline(own_stage(dist.get_world_size()))
        line.train(toys.batches(8))
        line.close()
        del line
        dist.barrier()
        after = count()
    finally:
        gc.enable()
    return after[0] - before[0], after[1] - before[1]


def scheduling() -> tuple[frozenset[int], int]:
    """Return the policies of the threads that compute and receive during training, and how
    many of gloo's threads for messages are scheduled as a batch."""
    seen: set[int] = set()

    def look(*_) -> None:
        receivers = (t for t in threading.enumerate() if isinstance(t, Receiver))
        seen.update(os.sched_getscheduler(t.native_id) for t in receivers)
        seen.add(os.sched_getscheduler(0))

    line = pipeline(own_stage(dist.get_world_size()))
    batches = toys.batches(8)
    line.train(batches)
    line.stages[0].module.register_forward_pre_hook(look)
    line.train(batches)
    tasks = Path("/proc/self/task").iterdir()
    loops = [int(task.name) for task in tasks if "gloo_tcp" in (task / "comm").read_text()]
    policies = [os.sched_getscheduler(loop) for loop in loops]
    line.close()
    return frozenset(seen), policies.count(os.SCHED_BATCH)


def interrupted(schedule: str, order: str, at: int) -> dict:
    """Rank `at` asks to stop in its tenth forward of many windows; then one more segment."""
    modules = own_stages(schedule)
    line = pipeline(modules, schedule, 4, order=order)
    if dist.get_rank() == at:
        call_at_forward(10, modules[0], line.interrupt)
    segment = line.train(toys.batches(4) * INTERRUPTED_WINDOWS)
    done, interrupted = line.microbatch, line.interrupted
    again = line.train(toys.batches(4))
    line.close()
    return {
        "microbatches": (done, line.microbatch),
        "interrupted": (interrupted, line.interrupted),
        "segments": (segment, again),
        "weights": dict(zip((s.index for s in line.stages), toys.weights(modules), strict=True)),
    }


def call_at_forward(number: int, module: torch.nn.Module, function: Callable[[], None]) -> None:
    """Call `function` before a module's forward of so many in training, the first one being 1."""
    forwards = itertools.count(1)

    def hook(*_: object) -> None:
        if module.training and next(forwards) == number:
            function()

    module.register_forward_pre_hook(hook)


def broken(how: str, folder: Path) -> dict:
    """Let the last rank fail in its 7th micro-batch of a second segment, `how`: an exception in the
    callback of an update, in a module, or Ctrl-C there. Then every rank tries what it may not, and
    goes on from the checkpoint after the first segment with a new pipeline on the same module."""
    module = own_stage(dist.get_world_size())
    batches = toys.batches(24)
    line = pipeline(module, order="static")
    is_victim = line.stages[-1].is_last
    line.train(batches[:8])
    line.save(folder)
    calls = iter(range(7))

    def fail(*_) -> None:
        if next(calls, None) is None:
            raise KeyboardInterrupt if how == "interrupt" else ArithmeticError("boom")

    hook = None
    if is_victim and how != "callback":
        hook = module.register_forward_pre_hook(fail)

    def on_update(update) -> None:
        if how == "callback" and update.number == 4:
            time.sleep(0.5)  # all others finish meanwhile, and wait for this rank
            raise ArithmeticError("boom")

    raised, refused = "", []
    try:
        line.train(batches[8:16], on_update)
    except (RankFailed, KeyboardInterrupt) as error:
        raised = f"{type(error).__name__} {error}"
    if hook:
        hook.remove()
    held = set(folder.iterdir())
    for forbidden in (
        lambda: line.train(batches[8:16]),
        lambda: line.evaluate(batches[:2]),
        lambda: line.save(folder),
        lambda: line.load(folder),
        lambda: line.gather(None),
    ):
        try:
            forbidden()
        except RuntimeError as error:
            refused.append(type(error) is RuntimeError)
    untouched = set(folder.iterdir()) == held
    line.close()

    again = pipeline(module, order="static")
    again.load(folder)
    again.train(batches[8:])
    again.close()
    return {
        "raised": raised,
        "refused": refused,
        "untouched": untouched,
        "weights": {again.rank: toys.weights([module])[0]},
    }


def dies(victim: int, how: str, forward: int, notes: Path) -> None:
    """Train until rank `victim` is killed, or raises, in a `forward`; see `noting_failure`."""
    line = pipeline(own_stage(dist.get_world_size()))

    def die() -> None:
        if how == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        raise ArithmeticError("boom")

    if line.rank == victim:
        call_at_forward(forward, line.stages[0].module, die)
    with noting_failure(notes):
        while True:
            line.train(toys.batches(4) * 100)


@contextmanager
def noting_failure(notes: Path) -> Iterator[None]:
    """Write the `RankFailed` that this rank raises into a file of `notes`. A rank that the launcher
    has to kill leaves none."""
    try:
        yield
    except RankFailed as failure:
        (notes / str(dist.get_rank())).write_text(str(failure))
        raise


def kill_this_process(after: float) -> None:
    """Kill this process after so many seconds, as the system does when memory runs out."""
    threading.Timer(after, os.kill, (os.getpid(), signal.SIGKILL)).start()


def weights_of_own_stages(rules: list[paci.Schedule]) -> list[list[list[torch.Tensor]]]:
    """Train 12 windows under each rule, in its static order; return this rank's weights."""
    results = []
    for rule in rules:
        modules = toys.stages(rule.stages)
        own = [modules[stage] for stage in rule.placement[dist.get_rank()]]
        line = pipeline(own, rule, None, order="static")
        line.train(toys.batches(12 * rule.accumulation))
        line.close()
        results.append(toys.weights(own))
    return results

"""Start runs on this machine, through submitit; `experiments.slurm` starts them on a cluster.

cluster=inline   one after the other, in this process (submitit's debug executor)
cluster=local    as many at a time as fit, each in a process of its own
"""

import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import submitit
from omegaconf import DictConfig

SUBMITIT = {"inline": "debug", "local": "local"}
A_YEAR = 365 * 24 * 60  # minutes: submitit's local executor ends jobs after five if not told


def dispatch(
    function: Callable,
    arguments: Iterable,
    cluster: DictConfig,
    logs: Path,
    device: str = "cpu",
    ranks: int = 1,
    wait: float = 0.2,
) -> Iterator[tuple[object, submitit.Job] | None]:
    """Call `function` with each of `arguments` on `cluster`.

    A call needs a `device`, cpu or cuda, for each of its `ranks`. Yields (argument, job) as jobs
    end, and None every `wait` seconds in between, so that the caller can show progress. An
    interrupt is passed on to the jobs, and waits until each has ended its run in order.
    """
    executor = submitit.AutoExecutor(logs, cluster=SUBMITIT[cluster.name])
    executor.update_parameters(timeout_min=A_YEAR, stderr_to_stdout=True)
    waiting, free = list(arguments), places(cluster, device, ranks)
    running: list[tuple[object, submitit.Job, str | None]] = []
    try:
        while waiting or running:
            while waiting and free:
                argument, place = waiting.pop(0), free.pop(0)
                with _stderr_of_processes(logs / "submitit.log"):
                    job = executor.submit(_at, place, function, argument)
                running.append((argument, job, place))
            for argument, job, place in running:
                if job.done():
                    running.remove((argument, job, place))
                    free.append(place)
                    yield argument, job
                    break
            else:
                yield None
                time.sleep(wait)
    except (KeyboardInterrupt, GeneratorExit):
        for _, job, _ in running:
            job.cancel()
        while not all(job.state == "CANCELLED" or job.done() for _, job, _ in running):
            time.sleep(wait)
        raise


def places(cluster: DictConfig, device: str, ranks: int = 1) -> list[str | None]:
    """Return the GPUs of each run that may be active at a time; None leaves them as they are.

    There are `cluster.parallel` places, which share the GPUs in turn. If that is null, there are as
    many as leave a GPU, or a core, for each rank, and at least one, whose ranks share the devices.
    """
    if device == "cpu" or cluster.name == "inline":
        return [None] * (cluster.parallel or max(1, (os.cpu_count() or 1) // ranks))
    gpus = _gpus() or [""]  # a run without one says so itself
    enough = range(0, max(1, len(gpus) - ranks + 1), ranks)
    groups = [",".join(gpus[first : first + ranks]) for first in enough]
    return [groups[i % len(groups)] for i in range(cluster.parallel or len(groups))]


def _gpus() -> list[str]:
    """Return the GPUs that this process may use, as CUDA_VISIBLE_DEVICES names them."""
    given = os.environ.get("CUDA_VISIBLE_DEVICES")
    if given is None:
        import torch  # not above: every job loads this file

        return [str(number) for number in range(torch.cuda.device_count())]
    return [name for name in given.split(",") if name]


def _at(place: str | None, function: Callable, argument: object) -> object:
    """Call `function` in a job, from which submitit has hidden every GPU, with those of `place`."""
    if place is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = place
    return function(argument)


@contextmanager
def _stderr_of_processes(log: Path) -> Iterator[None]:
    """Send the stderr of processes that are started inside the block to `log`.

    submitit starts a process between this one and a local job, which prints a traceback at Ctrl-C.
    """
    ours = os.dup(2)
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("a") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(ours, 2)
        os.close(ours)

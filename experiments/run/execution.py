"""The execution of a run: in this process, or in a process for each of its ranks."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from threading import RLock
from typing import cast

import torch
from omegaconf import DictConfig, OmegaConf
from tqdm import tqdm

from experiments import data
from experiments.config.derived import is_measured, ranks
from experiments.run.cache import check_cached
from experiments.run.launcher import is_first, started_by
from experiments.run.rank import backend, join
from experiments.run.run import Run
from experiments.run.throughput import Throughput
from experiments.run.training import Training
from experiments.terminal.command_line import interruptible
from paci import DistributedPipeline, NonFinite
from paci.distributed.failure import RankFailed, report_failure
from paci.distributed.launch import check_loopback, ending_process, spawn
from runlog import State

TASKS = {"training": Training, "throughput": Throughput}
"""The class for each value of `task` in a configuration."""
INTERRUPTED = (KeyboardInterrupt.__name__, signal.SIGTERM.name, signal.SIGINT.name)
"""Kinds of failures that leave a run preempted."""
EXHAUSTED = (torch.OutOfMemoryError.__name__, MemoryError.__name__)
"""Kinds of failures that leave a run out of memory."""


def prepare(config: DictConfig) -> Run:
    """Return the run of `config`, with its data prepared. Raises ValueError before any work if it
    cannot be run."""
    if config.executor.name != "local":
        check_loopback()
    if not started_by():
        data.prepare(config.data)
    run = Run(config)
    run.check()
    check_cached(run.folder)
    return run


@contextmanager
def joined(config: DictConfig) -> Iterator[None]:
    """Make this process one of the ranks inside the block, if a launcher started it as one; it then
    ends after the block."""
    if not started_by():
        yield
        return
    with ending_process():
        join(config)
        yield


def train(run: Run) -> dict:
    """Train to the end and return the run's status; leave a completed run alone.

    Divergence and lack of memory are results, which the status names. Any other failure is named
    there and also raised. Raises `InUse` if another process holds the run.
    """
    folder = run.folder
    with folder.claimed() if is_first() else nullcontext(), interruptible():
        if folder.completed:
            return folder.status()
        if is_first():
            folder.starts.begin(folder.checkpointed_update)
        try:
            if run.config.executor.name == "local":
                TASKS[run.config.task](run).train()
            elif started_by():
                train_rank(run)
            else:
                if is_measured(run.config):
                    run.cost  # noqa: B018 (measured while no rank disturbs it)
                config = OmegaConf.to_container(run.config)
                spawn(
                    spawned_rank, ranks(run.config), config, backend=backend(run.config),
                    preload=["experiments.run.execution"],
                )  # fmt: skip
        except BaseException as error:
            state, why = outcome(error)
            if state == "preempted":
                why = folder.interrupted()
            folder.report(state, folder.status().get("update", 0), run.updates, why)
            if state == "failed" and not isinstance(error, RankFailed):
                raise  # a failed rank has been reported already
        finally:
            if is_first():
                folder.starts.end()
    return folder.status()


def spawned_rank(config: dict) -> None:
    """Run one rank of the run that `config` describes, in a process that `spawn` started."""
    tqdm.set_lock(RLock())  # one between processes would be left behind by a rank that is killed
    train_rank(Run(DictConfig(config)))


def train_rank(run: Run) -> None:
    """Run one rank of a distributed run. A signal ends the run in order, at every rank."""
    task = TASKS[run.config.task](run)
    pipeline = cast(DistributedPipeline, task.pipeline)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda signum, frame: pipeline.interrupt())
    try:
        task.train()
        pipeline.close()
    except Exception as error:
        if not started_by():
            raise  # to `spawn`, which asks all ranks
        # Every rank reports the end of the run: the same one, if the pipeline failed.
        raise report_failure(pipeline.rank, error) from None


def outcome(error: BaseException) -> tuple[State, str]:
    """Return the state in which an error leaves a run, and why, in one line."""
    failure = RankFailed.of(None, error)
    if failure.kind in INTERRUPTED:
        return "preempted", "interrupted"
    if failure.kind == NonFinite.__name__:
        return "diverged", failure.message
    of_several = failure is error  # of which it names one
    why = str(failure) if of_several else failure.why
    return "out-of-memory" if failure.kind in EXHAUSTED else "failed", why.splitlines()[0]

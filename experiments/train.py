"""Train one run: python -m experiments.train [method=paci] [method.accumulation=8] [seed=3] ...

Every key of conf/config.yaml and every group of conf/ can be set. The run lands in a folder of
its own below `runs`; a finished run is not repeated, an interrupted one goes on.

With executor=distributed every rank is a process: of this machine, or those that torchrun starts,
    torchrun --nproc-per-node 8 -m experiments.train executor=distributed
"""

import os
import signal
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from datetime import timedelta
from threading import RLock

import torch
import torch.distributed as dist
from omegaconf import DictConfig, OmegaConf
from tqdm import tqdm

from experiments import data
from experiments.cli import arguments, interruptible, user_errors
from experiments.config import compose
from experiments.pipelines import ranks
from experiments.run import Run
from experiments.runfolder import InUse
from experiments.training import Diverged, Training
from paci.failure import RankFailed
from paci.launch import end_process, spawn


def main() -> None:
    with user_errors() if is_first() else silently_refused():
        config = compose(arguments(__doc__))
        if under_torchrun():
            check_torchrun(config)
        else:
            data.prepare(config.data)
        run = Run(config)
        run.folder.check_config()
    if under_torchrun():
        dist.init_process_group(backend(config), timeout=timedelta(minutes=10))
    with user_errors(InUse):
        status = train(run)
    if is_first():
        print(f"{run.folder.path}: {status['state']}", status["why"] or "")
    failed = status["state"] != "completed"
    if under_torchrun():
        end_process(failed)
    raise SystemExit(failed)


def train(run: Run) -> dict:
    """Train to the end and return the run's status; a finished run is left alone.

    A run that diverges or runs out of memory is a result, in the status; any other failure is
    there too, and raised. Raises `InUse` if another process is at the run.
    """
    folder = run.folder
    with folder.claimed() if is_first() else nullcontext(), interruptible():
        if folder.status().get("state") == "completed":
            return folder.status()
        if is_first():
            folder.describe()
        try:
            if run.config.executor.name == "local":
                Training(run).train()
            elif under_torchrun():
                train_rank(run)
            else:
                config = OmegaConf.to_container(run.config)
                spawn(
                    spawned_rank, ranks(run.config), config, backend=backend(run.config),
                    preload=["experiments.training"],
                )  # fmt: skip
        except BaseException as error:
            state, why = outcome(error)
            if state == "preempted":
                why = folder.interrupted()
            folder.report(state, folder.status().get("update", 0), run.updates, why)
            if state == "failed" and not isinstance(error, (Diverged, RankFailed)):
                raise  # the others have said all there is to say
    return folder.status()


def spawned_rank(config: dict) -> None:
    tqdm.set_lock(RLock())  # one between processes would be left behind by a rank that is killed
    train_rank(Run(DictConfig(config)))


def train_rank(run: Run) -> None:
    """One rank of a distributed run. A signal ends the run in order, at every rank."""
    training = Training(run)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda signum, frame: training.pipeline.interrupt())
    try:
        training.train()
        training.pipeline.close()
    except Exception as error:
        if not under_torchrun() or isinstance(error, RankFailed):
            raise
        traceback.print_exc()  # where it is: the others learn what and at which rank
        at, why = getattr(error, "at", (None, None)), f"{type(error).__name__}: {error}"
        raise RankFailed(training.pipeline.rank, *at, why) from error


def outcome(error: BaseException) -> tuple[str, str]:
    """The state that an error leaves a run in, and why, in one line."""
    why = str(error)
    if isinstance(error, RankFailed):
        kind, _, message = error.why.partition(": ")
    else:
        kind, message = type(error).__name__, why
        why = f"{kind}: {why}"
    why = why.splitlines()[0]
    if kind in (KeyboardInterrupt.__name__, "killed by SIGTERM", "killed by SIGINT"):
        return "preempted", "interrupted"
    if kind in (torch.OutOfMemoryError.__name__, MemoryError.__name__):
        return "out-of-memory", why
    if kind == Diverged.__name__:
        return "failed", message
    return "failed", why


def backend(config: DictConfig) -> str:
    return "nccl" if config.executor.device == "cuda" else "gloo"


def under_torchrun() -> bool:
    return "TORCHELASTIC_RUN_ID" in os.environ


def check_torchrun(config: DictConfig) -> None:
    given, needed = int(os.environ["WORLD_SIZE"]), ranks(config)
    if config.executor.name == "local":
        raise ValueError("torchrun starts ranks for executor=distributed, not for local")
    if given != needed:
        raise ValueError(f"torchrun must start {needed} processes for this run, not {given}")


@contextmanager
def silently_refused() -> Iterator[None]:
    """What is refused inside, rank 0 refuses as well, and says so; then torchrun ends all."""
    try:
        yield
    except ValueError:
        time.sleep(60)
        raise SystemExit(2) from None


def is_first() -> bool:
    """Whether this is the only process of the run, or its rank 0."""
    return not under_torchrun() or int(os.environ["RANK"]) == 0


if __name__ == "__main__":
    main()

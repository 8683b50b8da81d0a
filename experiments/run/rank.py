"""Ranks that torchrun or SLURM started, each a process that calls the same command.

Both describe the rank in the environment of its process. The runtime reads torch's names (RANK,
LOCAL_RANK, WORLD_SIZE), which torchrun sets itself and `join` sets for SLURM.
"""

import os
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from omegaconf import DictConfig

from experiments.config.derived import ranks
from experiments.slurm.rendezvous import meet
from runlog import JOBS

NAMES = {
    "torchrun": ("RANK", "WORLD_SIZE"),
    "SLURM": ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
}
"""Variables with the rank of a process and the number of ranks, by starter."""
TIMEOUT = timedelta(minutes=10)
"""Time within which all ranks must have started."""


def started_by() -> str | None:
    """Return the name of what started this process as one rank of several; None if nothing did.

    A shell in an allocation of several tasks is no rank: its job step has a single task.
    """
    if "TORCHELASTIC_RUN_ID" in os.environ:
        return "torchrun"
    _, size = NAMES["SLURM"]
    return "SLURM" if int(os.environ.get(size, 1)) > 1 else None


def is_first() -> bool:
    """Return whether this is the only process of the run, or its rank 0."""
    starter = started_by()
    return starter is None or int(os.environ[NAMES[starter][0]]) == 0


def check_started(config: DictConfig) -> None:
    """Raise ValueError unless as many ranks were started as the run needs.

    Only for a process that `started_by` calls a rank.
    """
    starter = started_by()
    assert starter is not None
    given, needed = int(os.environ[NAMES[starter][1]]), ranks(config)
    if config.executor.name == "local":
        raise ValueError(f"{starter} starts ranks for executor=distributed, not for local")
    if given != needed:
        raise ValueError(f"{starter} must start {needed} processes for this run, not {given}")


def join(config: DictConfig) -> None:
    """Join torch.distributed's default group, which has all the ranks that were started."""
    if config.executor.device == "cuda":
        # Before anything opens a context on GPU 0. SLURM may show each rank its own GPU only.
        torch.cuda.set_device(local_rank() % torch.cuda.device_count())
    if started_by() == "torchrun":
        dist.init_process_group(backend(config), timeout=TIMEOUT)
        return
    rank, size = (int(os.environ[name]) for name in NAMES["SLURM"])
    os.environ |= {
        "RANK": str(rank), "LOCAL_RANK": os.environ["SLURM_LOCALID"], "WORLD_SIZE": str(size)
    }  # fmt: skip
    with meet(Path(config.runs) / JOBS, rank, TIMEOUT) as store:
        dist.init_process_group(
            backend(config), store=store, rank=rank, world_size=size, timeout=TIMEOUT
        )


def local_rank() -> int:
    """Return this process's number among the ranks of its machine."""
    return int(os.environ["LOCAL_RANK" if started_by() == "torchrun" else "SLURM_LOCALID"])


def backend(config: DictConfig) -> str:
    """Return the backend of torch.distributed that carries the run's messages."""
    return "nccl" if config.executor.device == "cuda" else "gloo"

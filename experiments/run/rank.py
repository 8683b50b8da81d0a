"""A rank that torchrun or SLURM started joins the others.

The runtime reads torch's names (RANK, LOCAL_RANK, WORLD_SIZE), which torchrun sets itself and
`join` sets for SLURM.
"""

import os
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from omegaconf import DictConfig

from experiments.run.launcher import NAMES, started_by
from experiments.slurm.rendezvous import meet
from runlog import JOBS

TIMEOUT = timedelta(minutes=10)
"""Time within which all ranks must have started."""


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

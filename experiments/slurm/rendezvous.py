"""Let the ranks of a SLURM job find each other through a file on their shared file system.

Rank 0 starts a store at a free port, so that jobs on one node never collide, and writes its address
to the file. The store is a process of its own: whichever rank dies, even rank 0, the others can
still tell each other which one it was.
"""

import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import torch.distributed as dist
from torch._C._distributed_c10d import TCPStore

import runlog

GRACE = 15.0  # seconds that the store outlives rank 0, for the others to learn of its end


@contextmanager
def meet(folder: Path, rank: int, timeout: timedelta) -> Iterator[dist.Store]:
    """Connect to the store of this job step, whose address is in a file in `folder`.

    All ranks must join inside the block; rank 0 removes the file at its end. Raises RuntimeError if
    the file does not appear in time. Rank 0 forks, so it may not hold a lock that its child would
    keep.
    """
    job, step = os.environ["SLURM_JOB_ID"], os.environ["SLURM_STEP_ID"]
    start = os.environ.get("SLURM_RESTART_COUNT", "0")
    file = folder / f"{job}.{step}.{start}.address"
    if rank == 0:
        folder.mkdir(parents=True, exist_ok=True)
        runlog.write(file, f"{socket.gethostname()} {_host_store()}")
    host, port = _read(file, timeout)
    try:
        yield TCPStore(host, port, timeout=timeout)
    finally:
        if rank == 0:
            file.unlink()


def _read(file: Path, timeout: timedelta) -> tuple[str, int]:
    until = time.monotonic() + timeout.total_seconds()
    while time.monotonic() < until:
        # A network file system may remember for half a minute that a name is missing; listing the
        # folder makes it look again.
        if file.parent.is_dir() and file.name in os.listdir(file.parent):
            host, port = file.read_text().split()
            return host, int(port)
        time.sleep(0.2)
    raise RuntimeError(f"rank 0 did not write {file} within {timeout}")


def _host_store() -> int:
    """Fork a process that holds the store until `GRACE` after this one's end; return its port."""
    ours, theirs = os.pipe()
    parent = os.getpid()
    if os.fork() == 0:
        try:
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR2):
                signal.signal(number, signal.SIG_IGN)  # they are meant for the ranks
            nothing = os.open(os.devnull, os.O_RDWR)
            for stream in range(3):
                os.dup2(nothing, stream)
            store = TCPStore("localhost", 0, is_master=True, wait_for_workers=False)
            os.write(theirs, str(store.port).encode())
            os.close(theirs)
            while os.getppid() == parent:
                time.sleep(0.5)
            time.sleep(GRACE)
        finally:
            os._exit(0)
    os.close(theirs)
    with os.fdopen(ours) as pipe:
        port = pipe.read()
    if not port:
        raise RuntimeError("torch's store could not be started")
    return int(port)

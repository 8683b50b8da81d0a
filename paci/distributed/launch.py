"""Processes on this machine, one a rank: started, watched, and ended together."""

import os
import pickle
import signal
import socket
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from multiprocessing import connection, get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from types import FrameType
from typing import Any, NoReturn

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import TCPStore

from paci.distributed.failure import EXIT, LOST, RankFailed, report_failure

LOOPBACK = "127.0.0.1"
GRACE = 10.0  # seconds that ranks have to end by themselves once one has failed
LONGEST_FOLDER = 60  # bytes: the path of a Unix socket, in folders of its own, has at most 107


def spawn(
    function: Callable[..., Any],
    ranks: int,
    *arguments: object,
    backend: str = "gloo",
    preload: Sequence[str] = (),
) -> list[Any]:
    """Run `function(*arguments)` in `ranks` new processes that form torch.distributed's default
    group; return what each returned, in order of ranks.

    If one fails, all end within `GRACE`, and `RankFailed` says which was first, where, and why.
    SIGTERM and SIGINT are handed on to all ranks, for them to end in their own way. `function`
    and what it takes and gives must be picklable. `preload` names modules that it needs and that
    take seconds to import: all ranks share that of one process. Raises ValueError if this machine
    has no loopback address.
    """
    check_loopback()
    # Not hosted by a rank, so that the others can still talk when that one is gone.
    store = TCPStore(LOOPBACK, 0, is_master=True, wait_for_workers=False)
    context = get_context("forkserver")
    context.set_forkserver_preload(["paci.distributed.pipeline", "torch._dynamo", *preload])
    processes: list[BaseProcess] = []
    pipes: list[Connection] = []
    with _short_temporary_folder():
        for rank in range(ranks):
            pipe, end = context.Pipe(duplex=False)
            process: BaseProcess = context.Process(
                target=_run, args=(rank, ranks, store.port, backend, function, arguments, end),
                name=f"rank {rank}",
            )  # fmt: skip
            process.start()
            end.close()
            processes.append(process)
            pipes.append(pipe)
    try:
        with _signals_handed_on(processes):
            reports = _watch(processes, pipes)
    finally:
        for process in processes:
            if process.is_alive():
                process.kill()
            process.join()
    failures = [_failure(rank, *report) for rank, report in enumerate(reports)]
    if any(failures):
        raise _first([failure for failure in failures if failure])
    return [report[1] for report, _ in reports if report]


def check_loopback() -> None:
    """Raise ValueError unless processes of this machine can reach each other."""
    try:
        with socket.create_server((LOOPBACK, 0)) as server:
            socket.create_connection(server.getsockname(), timeout=5).close()
    except OSError as error:
        raise ValueError(
            f"ranks cannot talk to each other on this machine: it has no working loopback address "
            f"{LOOPBACK} ({error.strerror or error}); bring it up with: ip link set lo up"
        ) from None


def end_process(status: int) -> NoReturn:
    """End a rank without Python's clean-up, which would wait for threads that still wait for
    messages from ranks that have died."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


@contextmanager
def ending_process() -> Iterator[None]:
    """End this rank after the block as `end_process` does, whatever happens in it; what it raises
    is printed."""
    status = 0
    try:
        yield
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else int(error.code is not None)
        if isinstance(error.code, str):
            print(error.code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
        status = 1
    end_process(status)


def _run(
    rank: int,
    ranks: int,
    port: int,
    backend: str,
    function: Callable[..., Any],
    arguments: tuple[Any, ...],
    pipe: Connection,
) -> None:
    """Run `function` as one rank, send the report through `pipe`, and end the process."""
    status = 1
    try:
        torch.set_num_threads(max(1, torch.get_num_threads() // ranks))
        os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(ranks)}
        if backend == "nccl":
            torch.cuda.set_device(rank)  # before anything opens a context on GPU 0
        store = TCPStore(LOOPBACK, port, timeout=timedelta(seconds=60))
        dist.init_process_group(backend, store=store, rank=rank, world_size=ranks)
        report = pickle.dumps((True, function(*arguments)))
        status = 0
    except BaseException as error:
        report = pickle.dumps((False, report_failure(rank, error)))
    with suppress(OSError):
        pipe.send_bytes(report)
    end_process(status)


Report = tuple[bool, Any]
"""(True, what the function returned) or (False, a `RankFailed`)."""


def _watch(
    processes: Sequence[BaseProcess], pipes: Sequence[Connection]
) -> list[tuple[Report | None, int | None]]:
    """Return (report, exit status) for every process once all have ended; the report is None for
    a process that sent none."""
    reports: list[Report | None] = [None] * len(processes)
    open_pipes = dict(zip(pipes, range(len(pipes)), strict=True))
    until = float("inf")
    while open_pipes:
        left = min(until - time.monotonic(), 3600.0)
        if left <= 0:
            break
        for pipe in connection.wait(list(open_pipes), left):
            assert isinstance(pipe, Connection)
            rank = open_pipes.pop(pipe)
            with suppress(EOFError):  # it died without a report
                reports[rank] = pickle.loads(pipe.recv_bytes())
            processes[rank].join(GRACE)
            report = reports[rank]
            if report is None or not report[0]:
                until = min(until, time.monotonic() + GRACE)
    return [(report, process.exitcode) for report, process in zip(reports, processes, strict=True)]


def _failure(rank: int, report: Report | None, status: int | None) -> RankFailed | None:
    if report is not None:
        succeeded, result = report
        return None if succeeded else result
    if status is None:
        kind, message = LOST, "did not end by itself after another rank had failed"
    elif status < 0:
        kind = signal.Signals(-status).name
        message = f"killed by {kind}"
    else:
        kind, message = EXIT, f"exit status {status}"
    return RankFailed(rank, None, None, kind, message)


def _first(failures: list[RankFailed]) -> RankFailed:
    """Return the failure that caused the others.

    A process that was killed could not report its stage and micro-batch; they are taken from a rank
    that waited for it.
    """
    died = [failure for failure in failures if failure.died]
    for death in died or failures:
        for witness in failures:
            if witness.rank == death.rank and witness.stage is not None:
                at = witness.stage, witness.microbatch
                return RankFailed(death.rank, *at, death.kind, death.message)
    return (died or failures)[0]


@contextmanager
def _short_temporary_folder() -> Iterator[None]:
    """Let multiprocessing put its Unix sockets into a folder with a short path, whatever TMPDIR
    is."""
    before = tempfile.tempdir
    if len(os.fsencode(tempfile.gettempdir())) > LONGEST_FOLDER:
        short = [path for path in ("/tmp", "/var/tmp", "/dev/shm") if os.access(path, os.W_OK)]
        tempfile.tempdir = next(iter(short), before)
    try:
        yield
    finally:
        tempfile.tempdir = before


@contextmanager
def _signals_handed_on(processes: Sequence[BaseProcess]) -> Iterator[None]:
    """Pass SIGTERM and SIGINT on to all ranks instead of ending this process."""

    def hand_on(number: int, frame: FrameType | None) -> None:
        for process in processes:
            if process.is_alive() and process.pid is not None:
                os.kill(process.pid, number)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {s: signal.signal(s, hand_on) for s in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

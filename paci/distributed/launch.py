"""Processes on this machine, one a rank: started, watched, and ended together."""

import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from multiprocessing import connection, get_context
from typing import NoReturn

import torch
import torch.distributed as dist

from paci.distributed.failure import EXIT, LOST, RankFailed, as_told

GRACE = 10.0  # seconds that ranks have to end by themselves once one has failed


def spawn(
    function: Callable,
    ranks: int,
    *arguments,
    backend: str = "gloo",
    preload: Sequence[str] = (),
) -> list:
    """Run `function(*arguments)` in `ranks` new processes that form torch.distributed's default
    group; returns what each returned, in order of ranks.

    If one fails, all end within `GRACE`, and `RankFailed` says which was first, where, and why.
    SIGTERM and SIGINT are handed on to all ranks, for them to end in their own way. `function`
    and what it takes and gives must be picklable. `preload` names modules that it needs and that
    take seconds to import: all ranks share that of one process.
    """
    # Not hosted by a rank, so that the others can still talk when that one is gone.
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    context = get_context("forkserver")
    context.set_forkserver_preload(["paci.distributed.pipeline", "torch._dynamo", *preload])
    processes, pipes = [], []
    for rank in range(ranks):
        pipe, end = context.Pipe(duplex=False)
        process = context.Process(
            target=_run, args=(rank, ranks, store.port, backend, function, arguments, end),
            name=f"rank {rank}",
        )  # fmt: skip
        process.start()
        end.close()
        processes.append(process)
        pipes.append(pipe)
    try:
        with _handing_on_signals(processes):
            reports = _watch(processes, pipes)
    finally:
        for process in processes:
            if process.is_alive():
                process.kill()
            process.join()
    failures = [_failure(rank, *report) for rank, report in enumerate(reports)]
    if any(failures):
        raise _first(list(filter(None, failures)))
    return [result for (_, result), _ in reports]


def _run(rank, ranks, port, backend, function, arguments, pipe) -> None:
    """A rank's whole life."""
    status = 1
    try:
        torch.set_num_threads(max(1, torch.get_num_threads() // ranks))
        os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(ranks)}
        store = dist.TCPStore("127.0.0.1", port, timeout=timedelta(seconds=60))
        dist.init_process_group(backend, store=store, rank=rank, world_size=ranks)
        report = pickle.dumps((True, function(*arguments)))
        status = 0
    except BaseException as error:
        report = pickle.dumps((False, as_told(rank, error)))
    with suppress(OSError):
        pipe.send_bytes(report)
    end_process(status)


def end_process(status: int) -> NoReturn:
    """End a rank without Python's clean-up, for which threads that still wait for messages from
    the dead would have to be woken."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def _watch(processes: Sequence, pipes: Sequence) -> list[tuple]:
    """(what it reported, or None; its exit status) of every process, once all have ended. A
    report is (True, a result) or (False, a `RankFailed`)."""
    reports = [None] * len(processes)
    open_pipes = dict(zip(pipes, range(len(pipes)), strict=True))
    until = float("inf")
    while open_pipes:
        left = min(until - time.monotonic(), 3600.0)
        if left <= 0:
            break
        for pipe in connection.wait(list(open_pipes), left):
            rank = open_pipes.pop(pipe)
            with suppress(EOFError):  # it died without a word
                reports[rank] = pickle.loads(pipe.recv_bytes())
            processes[rank].join(GRACE)
            if not (reports[rank] and reports[rank][0]):
                until = min(until, time.monotonic() + GRACE)
    return [(report, process.exitcode) for report, process in zip(reports, processes, strict=True)]


def _failure(rank: int, report, status: int | None) -> RankFailed | None:
    if report is not None:
        succeeded, made = report
        return None if succeeded else made
    if status is None:
        kind, message = LOST, "did not end by itself after another rank had failed"
    elif status < 0:
        kind = signal.Signals(-status).name
        message = f"killed by {kind}"
    else:
        kind, message = EXIT, f"exit status {status}"
    return RankFailed(rank, None, None, kind, message)


def _first(failures: list[RankFailed]) -> RankFailed:
    """The cause of the others. A process that was killed could not say where it was; those who
    waited for it can."""
    died = [failure for failure in failures if failure.died]
    for death in died or failures:
        for witness in failures:
            if witness.rank == death.rank and witness.stage is not None:
                at = witness.stage, witness.microbatch
                return RankFailed(death.rank, *at, death.kind, death.message)
    return (died or failures)[0]


@contextmanager
def _handing_on_signals(processes: Sequence) -> Iterator[None]:
    def hand_on(number, frame):
        for process in processes:
            if process.is_alive():
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

"""Whoever computes when a message comes goes on computing; who waits for it runs afterwards.

    usual    rank 2  F5 ──┐ message to rank 3   ┌── F5      two switches, and cold caches
             rank 3       └─ reads, posts, ... ─┘
    batch    rank 2  F5 ─────── F5 ┐
             rank 3                └─ reads, posts, ...

Linux calls the first wake-up preemption. Without it ranks get more done where they outnumber
processors; time slices end as ever.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress


@contextmanager
def batch_scheduling() -> Iterator[None]:
    """Inside, this thread preempts nobody when something wakes it up; nor do the threads and the
    processes that it starts there, ever. That is Linux's SCHED_BATCH, see sched(7). A thread that
    is given another policy than the usual one keeps it, and everybody does where none may be
    chosen."""
    changed = _change(os.SCHED_OTHER, os.SCHED_BATCH)
    try:
        yield
    finally:
        if changed:
            _change(os.SCHED_BATCH, os.SCHED_OTHER)


def _change(policy: int, to: int) -> bool:
    """Whether this thread had `policy`, and so has the other now."""
    with suppress(OSError):  # forbidden; or unknown, where the kernel only resembles Linux
        if os.sched_getscheduler(0) == policy:
            os.sched_setscheduler(0, to, os.sched_param(0))
            return True
    return False

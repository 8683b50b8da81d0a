"""Whoever computes when a message comes goes on computing; who waits for it runs afterwards.

    usual    rank 2  F5 ──┐ message to rank 3   ┌── F5      two switches, and cold caches
             rank 3       └─ reads, posts, ... ─┘
    batch    rank 2  F5 ─────── F5 ┐
             rank 3                └─ reads, posts, ...

Linux calls the first wake-up preemption. Without it ranks get more done where they outnumber
processors; time slices end as ever. With a processor each there is nobody to preempt.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress


@contextmanager
def without_preempting() -> Iterator[None]:
    """Inside, this thread preempts nobody when something wakes it up; nor do the threads that it
    starts there, ever. That is Linux's SCHED_BATCH, see sched(7). A thread that has a policy other
    than the usual one keeps it, and so does everybody where none may be chosen."""
    before = os.sched_getscheduler(0)
    if before == os.SCHED_OTHER:
        _choose(os.SCHED_BATCH)
    try:
        yield
    finally:
        if before == os.SCHED_OTHER:
            _choose(before)


def _choose(policy: int) -> None:
    with suppress(PermissionError):
        os.sched_setscheduler(0, policy, os.sched_param(0))

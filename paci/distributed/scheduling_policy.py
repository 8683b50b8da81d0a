"""Linux's batch scheduling policy, under which a message does not preempt a rank that computes.

    usual    rank 2  F5 ──┐ message to rank 3   ┌── F5      two switches, and cold caches
             rank 3       └─ reads, posts, ... ─┘
    batch    rank 2  F5 ─────── F5 ┐
             rank 3                └─ reads, posts, ...

Linux calls the first case wake-up preemption. Without it, ranks that outnumber the processors get
more done; time slices end as ever. Ranks that drive GPUs have processors of their own and would
only wake up later, so they keep the usual policy.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress


@contextmanager
def batch_scheduling(enabled: bool = True) -> Iterator[None]:
    """Put this thread under Linux's SCHED_BATCH (see sched(7)) inside the block.

    Threads and processes that it starts there stay under it. A thread that was given another
    policy than the usual one keeps it, and so does every thread where the system forbids a change.
    """
    changed = enabled and _change(os.SCHED_OTHER, os.SCHED_BATCH)
    try:
        yield
    finally:
        if changed:
            _change(os.SCHED_BATCH, os.SCHED_OTHER)


def _change(before: int, after: int) -> bool:
    """Change this thread's policy if it is `before`; return whether it was changed."""
    with suppress(OSError):  # forbidden; or unknown, where the kernel only resembles Linux
        if os.sched_getscheduler(0) == before:
            os.sched_setscheduler(0, after, os.sched_param(0))
            return True
    return False

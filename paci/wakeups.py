"""Who computes when a message comes: whoever did, to the end, and not at once who waits for it.

    usual    rank 2  F5 ──┐ message to rank 3   ┌── F5      two switches, and cold caches
             rank 3       └─ reads, posts, ... ─┘
    batch    rank 2  F5 ─────── F5 ┐
             rank 3                └─ reads, posts, ...

Where ranks outnumber processors this is how they get through most. With a processor each there is
nobody to interrupt, and nothing changes.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress


@contextmanager
def without_interrupting() -> Iterator[None]:
    """Inside, this thread does not interrupt another's work when something wakes it up; nor do the
    threads that it starts there, ever. That is Linux's batch scheduling, see sched(7). Who has
    chosen a policy already keeps it, and so does everybody where none may be chosen."""
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

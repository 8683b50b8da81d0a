"""Who failed first? One answer, at every rank.

A rank that raises says so on the board before its connections close. One that is killed cannot;
its neighbours see their connections close and say so for it. A rank that then ends because of
that looks lost to its own neighbours as well: so the first notice on the board is the cause.
"""

import time
from contextlib import suppress
from queue import Empty, SimpleQueue

from paci.bulletin import Bulletin
from paci.transport import LinkLost

PATIENCE = 2.0  # seconds until the cause of a lost connection must be on the board


class RankFailed(RuntimeError):
    """A rank of this pipeline has failed, this one or another; says which, at what, and why."""

    def __init__(self, rank: int | None, stage: int | None, microbatch: int | None, why: str):
        at = [
            f"{name} {value}"
            for name, value in (("stage", stage), ("micro-batch", microbatch))
            if value is not None
        ]
        who = "a rank" if rank is None else f"rank {rank}"
        super().__init__(f"{who}{' (' + ', '.join(at) + ')' if at else ''}: {why}")
        self.rank, self.stage, self.microbatch, self.why = rank, stage, microbatch, why


def post_failure(
    board: Bulletin, rank: int | None, stage: int | None, microbatch: int | None, why: str
) -> None:
    """Tell all ranks; if the store is gone, and with it every board, they know."""
    with suppress(RuntimeError):
        board.post({"failed": [rank, stage, microbatch, why]})


def first_failure(
    board: Bulletin, inbox: SimpleQueue, lost: LinkLost, first_microbatch: int
) -> RankFailed:
    """The failure behind a lost link, whose micro-batches count from `first_microbatch`."""
    microbatch = None if lost.microbatch is None else first_microbatch + lost.microbatch
    said, *_ = str(lost).partition(". This is typically")  # gloo goes on with advice
    own = lost.rank, lost.stage, microbatch, f"the process is gone ({said})"
    if lost.rank is not None:
        post_failure(board, *own)
    until = time.monotonic() + PATIENCE
    with suppress(Empty):
        while (left := until - time.monotonic()) > 0:
            item = inbox.get(timeout=left)
            if isinstance(item, dict) and "failed" in item:
                return RankFailed(*item["failed"])
    return RankFailed(*own)

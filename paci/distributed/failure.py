"""Who failed first? One answer, at every rank.

A rank that raises says so on the board before its connections close. One that is killed cannot;
its neighbours see their connections close and say so for it. A rank that then ends because of
that looks lost to its own neighbours as well: so the first notice on the board is the cause.
"""

import signal
import time
import traceback
from contextlib import suppress
from queue import Empty, SimpleQueue

from paci.distributed.control import ControlChannel
from paci.distributed.transport import LinkLost

PATIENCE = 2.0  # seconds until the cause of a lost connection must be on the board
SIGNALS = {number.name for number in signal.Signals}
EXIT, LOST = "exit", "lost"  # kinds of failures, as signals and the names of exceptions are


class RankFailed(RuntimeError):
    """A rank of this pipeline has failed, this one or another; says which, at what, and why.

    kind     the name of the exception that it raised; or, of a rank that could say nothing itself,
             the signal that killed it, `EXIT` (it just ended) or `LOST` (others hear no more of it)
    message  the exception's; or all there is to say
    """

    def __init__(
        self,
        rank: int | None,
        stage: int | None,
        microbatch: int | None,
        kind: str,
        message: str,
    ):
        # `args` make the same failure again: pickled from a process, posted on the board.
        super().__init__(rank, stage, microbatch, kind, message)
        self.rank, self.stage, self.microbatch = rank, stage, microbatch
        self.kind, self.message = kind, message

    @classmethod
    def of(
        cls,
        rank: int | None,
        error: BaseException,
        at: tuple[int | None, int | None] = (None, None),
    ) -> "RankFailed":
        """That of a `rank` that raised `error`, `at` a stage and a micro-batch; `error` itself, if
        it is such a failure already."""
        return error if isinstance(error, cls) else cls(rank, *at, type(error).__name__, str(error))

    @property
    def died(self) -> bool:
        """Whether the process ended without a word."""
        return self.kind == EXIT or self.kind in SIGNALS

    @property
    def why(self) -> str:
        """Whatever rank it was, and wherever."""
        silent = self.died or self.kind == LOST
        return self.message if silent else f"{self.kind}: {self.message}"

    def __str__(self) -> str:
        at = [
            f"{name} {value}"
            for name, value in (("stage", self.stage), ("micro-batch", self.microbatch))
            if value is not None
        ]
        who = "a rank" if self.rank is None else f"rank {self.rank}"
        return f"{who}{' (' + ', '.join(at) + ')' if at else ''}: {self.why}"


def as_told(rank: int, error: BaseException) -> RankFailed:
    """What the others are told of an `error` that ends this `rank`. If it is the one that failed,
    it prints where in its code: that is nothing to the others."""
    failure = RankFailed.of(rank, error)
    if failure.rank == rank:
        traceback.print_exception(error)
    return failure


def post_failure(board: ControlChannel, failure: RankFailed) -> None:
    """Tell all ranks; if the store is gone, and with it every board, they know."""
    with suppress(RuntimeError):
        board.post({"failed": failure.args})


def first_failure(
    board: ControlChannel, inbox: SimpleQueue, lost: LinkLost, first_microbatch: int
) -> RankFailed:
    """The failure behind a lost link, whose micro-batches count from `first_microbatch`."""
    microbatch = None if lost.microbatch is None else first_microbatch + lost.microbatch
    said, *_ = str(lost).partition(". This is typically")  # gloo goes on with advice
    own = RankFailed(lost.rank, lost.stage, microbatch, LOST, f"the process is gone ({said})")
    if lost.rank is not None:
        post_failure(board, own)
    until = time.monotonic() + PATIENCE
    with suppress(Empty):
        while (left := until - time.monotonic()) > 0:
            item = inbox.get(timeout=left)
            if isinstance(item, dict) and "failed" in item:
                return RankFailed(*item["failed"])
    return own

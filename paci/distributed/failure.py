"""Which rank failed first? One answer, at every rank.

A rank that raises says so on the control channel before its connections close. One that is killed
cannot; its neighbours see their connections close and say so for it. A rank that ends because of
that looks lost to its own neighbours as well, so the first notice on the channel is the cause.
"""

import signal
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue
from typing import Any

from paci.distributed.control import ControlChannel, Notice
from paci.distributed.transport import LinkLost

PATIENCE = 2.0  # seconds until the cause of a lost connection must be on the control channel
SIGNALS = {number.name for number in signal.Signals}
EXIT, LOST = "exit", "lost"  # kinds of failures, beside signals and the names of exceptions
Where = tuple[int | None, int | None]  # stage, micro-batch


class Refused(ValueError):
    """Arguments that do not fit together; raised at every rank alike, before any work."""


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
        # `args` make the same failure again: pickled from a process, or read from a notice.
        super().__init__(rank, stage, microbatch, kind, message)
        self.rank, self.stage, self.microbatch = rank, stage, microbatch
        self.kind, self.message = kind, message

    @classmethod
    def of(
        cls, rank: int | None, error: BaseException, where: Where = (None, None)
    ) -> "RankFailed":
        """Return the failure of a `rank` that raised `error`; `error` itself if it is one."""
        if isinstance(error, cls):
            return error
        return cls(rank, *where, type(error).__name__, str(error))

    @classmethod
    def of_notice(cls, notice: Notice | None) -> "RankFailed | None":
        """Return the failure that a notice on the control channel tells of, if it does."""
        if notice is None:
            why = "the process that holds torch's store is gone"
            return cls(None, None, None, LOST, why)
        return cls(*notice["failed"]) if "failed" in notice else None

    @property
    def died(self) -> bool:
        """Return whether the process ended without a word."""
        return self.kind == EXIT or self.kind in SIGNALS

    @property
    def why(self) -> str:
        """Return the cause alone, without the place."""
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


def report_failure(rank: int, error: BaseException) -> RankFailed:
    """Return the `RankFailed` behind the `error` that ends this `rank`. At the rank that failed,
    and only there, print where in its code."""
    failure = RankFailed.of(rank, error)
    if failure.rank == rank:
        traceback.print_exception(error)
    return failure


class FailureMonitor:
    """Lets a failure of any rank end the work of all ranks, with the same `RankFailed`.

    `disconnect` closes this rank's connections, so that nobody waits for it any more.
    """

    def __init__(
        self,
        rank: int,
        control: ControlChannel,
        inbox: "SimpleQueue[Any]",
        disconnect: Callable[[], None],
    ):
        self._rank, self._control, self._inbox = rank, control, inbox
        self._disconnect = disconnect
        self.failure: RankFailed | None = None

    @contextmanager
    def guard(
        self, first_microbatch: int = 0, where: Callable[[], Where] = lambda: (None, None)
    ) -> Iterator[None]:
        """If any rank fails inside, every rank raises the same `RankFailed`, and all pipelines are
        broken: the next guard refuses to begin.

        `where` returns the stage and the micro-batch that this rank is at; the micro-batches of
        the links count from `first_microbatch`. `Refused`, which all ranks raise before any work,
        breaks nothing. What is no Exception (Ctrl-C, an exit) ends this process in its own way,
        after the others were told.
        """
        self.check_unbroken()
        try:
            yield
        except Refused:
            raise
        except BaseException as error:
            self.failure = self._agree_on(error, first_microbatch, where)
            self._disconnect()
            if error is self.failure or not isinstance(error, Exception):
                raise
            raise self.failure from error

    def check_unbroken(self) -> None:
        """Raise RuntimeError if an earlier call has failed at any rank."""
        if self.failure is not None:
            raise RuntimeError(
                f"an earlier call failed ({self.failure}), and its micro-batches are still in "
                "flight: make a new pipeline, and load a checkpoint into it"
            )

    def _agree_on(
        self, error: BaseException, first_microbatch: int, where: Callable[[], Where]
    ) -> RankFailed:
        if isinstance(error, RankFailed):
            return error
        if isinstance(error, LinkLost):
            return self._cause_of(error, first_microbatch)
        failure = RankFailed.of(self._rank, error, where())
        self._post(failure)
        return failure

    def _cause_of(self, lost: LinkLost, first_microbatch: int) -> RankFailed:
        """Return the failure behind a lost link, as soon as the control channel tells it."""
        microbatch = None if lost.microbatch is None else first_microbatch + lost.microbatch
        reason, *_ = str(lost).partition(". This is typically")  # gloo goes on with advice
        why = f"the process is gone ({reason})"
        own = RankFailed(lost.rank, lost.stage, microbatch, LOST, why)
        if lost.rank is not None:
            self._post(own)
        until = time.monotonic() + PATIENCE
        with suppress(Empty):
            while (left := until - time.monotonic()) > 0:
                item = self._inbox.get(timeout=left)
                if item is None or isinstance(item, dict):
                    failure = RankFailed.of_notice(item)
                    if failure is not None:
                        return failure
        return own

    def _post(self, failure: RankFailed) -> None:
        """Tell all ranks; if the store is gone, and with it the channel, they know."""
        with suppress(RuntimeError):
            self._control.post({"failed": failure.args})

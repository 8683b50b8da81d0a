"""Failures of ranks: every rank raises the same error, which names the rank that failed first.

A rank that raises posts a notice on the control channel before its connections close. A rank that
is killed cannot; its neighbours see their connections close and post the notice for it. A rank that
ends because of that looks lost to its own neighbours as well, so the first notice on the channel is
the cause.
"""

import signal
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from paci.distributed.control import ControlChannel, Notice
from paci.distributed.inbox import Inbox
from paci.distributed.transport import LinkLost

PATIENCE = 2.0  # seconds until the cause of a lost connection must be on the control channel
SIGNALS = {number.name for number in signal.Signals}
EXIT, LOST = "exit", "lost"  # kinds of failures, beside signals and the names of exceptions
Where = tuple[int | None, int | None]  # stage, micro-batch


class Refused(ValueError):
    """Arguments that do not fit together; raised at every rank alike, before any work."""


class RankFailed(RuntimeError):
    """A rank of this pipeline has failed, this one or another.

    rank        the one that failed; None if that is not known
    stage       the stage that it was at, or None
    microbatch  the micro-batch that it was at, or None
    kind        the name of the exception that the rank raised; or, if it could post no notice, the
                signal that killed it, `EXIT` (it ended) or `LOST` (its connections closed)
    message     the exception's, or a sentence about the end of the rank
    """

    def __init__(
        self,
        rank: int | None,
        stage: int | None,
        microbatch: int | None,
        kind: str,
        message: str,
    ):
        # Pickle and notices carry `args`, from which the same failure is made again.
        super().__init__(rank, stage, microbatch, kind, message)
        self.rank, self.stage, self.microbatch = rank, stage, microbatch
        self.kind, self.message = kind, message

    @classmethod
    def of(
        cls, rank: int | None, error: BaseException, where: Where = (None, None)
    ) -> "RankFailed":
        """Return the failure of a `rank` that raised `error`; `error` itself if that is one."""
        if isinstance(error, cls):
            return error
        return cls(rank, *where, type(error).__name__, str(error))

    @classmethod
    def of_notice(cls, notice: Notice | None) -> "RankFailed | None":
        """Return the failure that a notice on the control channel reports; None for others."""
        if notice is None:
            why = "the process that holds torch's store is gone"
            return cls(None, None, None, LOST, why)
        return cls(*notice["failed"]) if "failed" in notice else None

    @property
    def died(self) -> bool:
        """Return whether the process ended without posting a notice."""
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
    """Return the `RankFailed` behind the `error` that ends this `rank`; print the traceback at the
    rank that failed, and only there."""
    failure = RankFailed.of(rank, error)
    if failure.rank == rank:
        traceback.print_exception(error)
    return failure


class FailureMonitor:
    """End the work of all ranks, with the same `RankFailed`, when any rank fails.

    `disconnect` closes this rank's connections, so that nobody waits for it any more.
    """

    def __init__(
        self,
        rank: int,
        control: ControlChannel,
        inbox: Inbox,
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
        broken: the next guard raises RuntimeError.

        `where` returns the stage and the micro-batch that this rank is at; the micro-batches of
        the links count from `first_microbatch`. `Refused`, which all ranks raise before any work,
        breaks nothing. An error that is no `Exception` (Ctrl-C, an exit) is raised as it is here,
        after the other ranks were told.
        """
        self.check_unbroken()
        try:
            yield
        except Refused:
            raise
        except BaseException as error:
            self.failure = self._agree_on(error, first_microbatch, where)
            _clear_frames(error)
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
        for notice in self._inbox.notices(PATIENCE):
            failure = RankFailed.of_notice(notice)
            if failure is not None:
                return failure
        return own

    def _post(self, failure: RankFailed) -> None:
        """Tell all ranks. If the store is gone, and with it the channel, they know already."""
        with suppress(RuntimeError):
            self._control.post({"failed": failure.args})


def _clear_frames(error: BaseException | None) -> None:
    """Drop the local variables of the frames behind `error`. Some hold the process group, whose
    connections stay open, with other ranks waiting on them, as long as it is referenced."""
    while error is not None:
        traceback.clear_frames(error.__traceback__)
        error = error.__cause__ or error.__context__

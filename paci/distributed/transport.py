"""Messages of one directed link between two ranks.

    rank 0                                  rank 1
    Sender ── Channel ══ bytes ══ Channel ──▶ Receiver (a thread) ──▶ inbox

A `Channel` carries tensors: `GlooChannel` between processors, `NcclChannel` between GPUs. Messages
of one link arrive in order, and both ends know the shape of each, so that a message is the bare
tensor. Neither gloo nor NCCL reports that a message has come unless a thread waits for it. So each
link has a thread that waits, asleep, and posts its next receives (between GPUs: those of the
doorbells, see `nccl.py`) before their messages come.
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from threading import Semaphore, Thread
from typing import Any, NamedTuple, Protocol

import torch

from paci.distributed.inbox import Inbox, Message

AHEAD = 2  # receives that are posted, and sends that are not waited for, on each link


class Spec(NamedTuple):
    """Shape and type of a message, and the device that it is on at one end of its link."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    device: torch.device

    @classmethod
    def of(cls, tensor: torch.Tensor) -> "Spec":
        return cls(tuple(tensor.shape), tensor.dtype, tensor.device)

    def empty(self, dtype: torch.dtype | None = None) -> torch.Tensor:
        return torch.empty(self.shape, dtype=dtype or self.dtype, device=self.device)

    def zeros(self) -> torch.Tensor:
        return torch.zeros(self.shape, dtype=self.dtype, device=self.device)


class Link(NamedTuple):
    """The way of all messages of one `kind` to `stage`, from rank `source` to rank `target`."""

    stage: int
    kind: str
    source: int
    target: int


class LinkLost(Exception):
    """The connection to `rank` has closed while a message of `microbatch` to or from its `stage`
    was under way; micro-batches count from the beginning of the segment."""

    def __init__(self, rank: int | None, stage: int | None, microbatch: int | None, why: str):
        super().__init__(why)
        self.rank, self.stage, self.microbatch = rank, stage, microbatch


@contextmanager
def link_errors(rank: int | None) -> Iterator[None]:
    """Raise `LinkLost` for errors inside, where there is only communication: with `rank`, or
    (None) with all ranks."""
    try:
        yield
    except RuntimeError as error:
        raise LinkLost(rank, None, None, str(error)) from error


class PendingSend(Protocol):
    def wait(self) -> object:
        """Block this thread until the message has been taken."""


class PendingReceive(Protocol):
    def wait(self) -> torch.Tensor:
        """Block this thread until the message is there, and return it."""


class Channel(ABC):
    """One end of a directed link. All methods, and those of what they return, raise
    `ConnectionError` if the other end is gone, and errors of the device as they are."""

    @abstractmethod
    def send(self, tensor: torch.Tensor) -> PendingSend:
        """Start sending `tensor`, which is contiguous and does not change any more."""

    @abstractmethod
    def send_placeholder(self, spec: Spec) -> PendingSend:
        """Answer a receive that is posted, where no message follows."""

    @abstractmethod
    def receive(self, spec: Spec) -> PendingReceive:
        """Start receiving one message."""

    def receiving(self) -> AbstractContextManager[Any]:
        """Return the context in which a thread receives."""
        return nullcontext()


class Transport(ABC):
    """The channels of one rank, by (receiving stage, kind).

    Every rank makes one with all `links` of the pipeline, in one order, because making process
    groups takes all ranks; it has channels for the links that begin or end at it. With a
    `message_dtype` floating-point messages travel in that type.
    """

    channels: Mapping[tuple[int, str], Channel]

    @abstractmethod
    def warm_up(self) -> None:
        """Send one message over every link, so that later ones find it at full speed."""

    def watch(self, lost: Callable[[LinkLost], None]) -> None:  # noqa: B027
        """Call `lost` if a neighbour dies while no receive waits on gloo, which would tell."""

    @abstractmethod
    def close(self) -> None:
        """Give the process groups back; every rank calls it."""


def in_transit(dtype: torch.dtype, message_dtype: torch.dtype | None) -> torch.dtype:
    """Return the type in which a message of `dtype` travels."""
    return message_dtype if message_dtype and dtype.is_floating_point else dtype


class Sender:
    """The sending end of a link to `stage` at `rank`, for messages of micro-batches 0, 1, 2, ...

    Their `specs` repeat: micro-batch m has that of m modulo their number.
    """

    def __init__(self, channel: Channel, rank: int, stage: int, specs: Sequence[Spec]):
        self.rank, self.stage, self.specs = rank, stage, specs
        self._channel = channel
        self._pending: deque[PendingSend] = deque()
        self._count = 0

    def send(self, tensor: torch.Tensor) -> None:
        """Start sending; wait for the message before the last one, which was taken long ago."""
        spec = self._next_spec()
        if tensor.shape != spec.shape or tensor.dtype != spec.dtype:
            raise ValueError(
                f"all micro-batches must have one shape: to stage {self.stage} go "
                f"{tuple(tensor.shape)}, {tensor.dtype}; agreed was {spec.shape}, {spec.dtype}"
            )
        self._count += 1
        try:
            self._pending.append(self._channel.send(tensor))
            if len(self._pending) > AHEAD:
                self._pending.popleft().wait()
        except ConnectionError as error:
            raise LinkLost(self.rank, self.stage, self._count - 1, str(error)) from error

    def drain(self, skipped: int = 0) -> None:
        """Wait until all messages have been taken.

        After an early stop the receiver still expects `skipped` messages. Placeholders answer the
        receives that it has posted for them, so that later messages do not meet these.
        """
        try:
            for _ in range(min(skipped, AHEAD)):
                self._pending.append(self._channel.send_placeholder(self._next_spec()))
                self._count += 1
            while self._pending:
                self._pending.popleft().wait()
        except ConnectionError as error:
            raise LinkLost(self.rank, None, None, str(error)) from error

    def _next_spec(self) -> Spec:
        return self.specs[self._count % len(self.specs)]


class Receiver(Thread):
    """The receiving end of a link from stage `source` at `rank` to `stage`: puts `count` messages
    of a `kind` into `inbox`. `specs` repeat, as those of a `Sender`.

    After an error, which it puts there as well, nothing more comes. With `room` it posts a receive
    only after acquiring it, so that whoever takes messages out decides how many may wait.
    """

    def __init__(
        self,
        channel: Channel,
        rank: int,
        source: int,
        stage: int,
        kind: str,
        specs: Sequence[Spec],
        count: int,
        inbox: Inbox,
        room: Semaphore | None = None,
    ):
        super().__init__(daemon=True)
        self.rank, self.source, self.stage, self.kind, self.specs = rank, source, stage, kind, specs
        self._channel = channel
        self._posted = 0
        self._count = self._wanted = count
        self._inbox = inbox
        self._room = room
        self.start()

    def stop_after(self, count: int) -> None:
        """Drop the messages from `count` on: after an early stop they are placeholders."""
        self._wanted = count

    def make_room(self) -> None:
        """Let one more message wait in the inbox."""
        if self._room:
            self._room.release()

    def run(self) -> None:
        taken = 0
        try:
            with self._channel.receiving():
                pending = deque(self._post() for _ in range(min(AHEAD, self._count)))
                while pending:
                    tensor = pending.popleft().wait()
                    taken += 1
                    if taken <= self._wanted:
                        self._inbox.put(Message(self.stage, self.kind, tensor))
                        if taken + len(pending) < self._count:
                            pending.append(self._post())
        except ConnectionError as error:
            self._inbox.put(LinkLost(self.rank, self.source, taken, str(error)))
        except BaseException as error:
            self._inbox.put(error)

    def _post(self) -> PendingReceive:
        if self._room:
            self._room.acquire()
        spec = self.specs[self._posted % len(self.specs)]
        self._posted += 1
        return self._channel.receive(spec)

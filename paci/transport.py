"""Messages between ranks, one way: gloo between processors, NCCL between GPUs.

    rank 0                 rank 1                 rank 2
    Sender ─ activations ▶ Receiver
                           Sender ─ activations ▶ Receiver       one process group
    Receiver ◀ gradients ─ Sender
                           Receiver ◀ gradients ─ Sender         another

Between two ranks messages of one direction arrive in order, of one shape agreed before, so a
message is the bare tensor. Neither gloo nor NCCL says that a message has come without being waited
for; a thread for each direction waits, asleep. Its next receive is always posted before the
message comes, so that a send never waits for what the receiving rank is busy with.
"""

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Thread
from typing import NamedTuple

import torch
import torch.distributed as dist

AHEAD = 2  # sends not yet waited for


class Spec(NamedTuple):
    """What every message of a link looks like."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    device: torch.device


class LinkLost(Exception):
    """The rank at the other end of a link is gone, and with it what concerned `microbatch`."""

    def __init__(self, rank: int, stage: int, microbatch: int, why: str):
        super().__init__(why)
        self.rank, self.stage, self.microbatch = rank, stage, microbatch


@contextmanager
def talking_to(rank: int | None) -> Iterator[None]:
    """Inside is only communication, with `rank` or (None) with all; `LinkLost` if it fails."""
    try:
        yield
    except RuntimeError as error:
        raise LinkLost(rank, None, None, str(error)) from error


class Sender:
    """The sending end of a link to `stage`, which is at `rank`. Messages are about micro-batches
    0, 1, 2, ...; a sent tensor must not be changed any more."""

    def __init__(self, group: dist.ProcessGroup, rank: int, stage: int, spec: Spec):
        self.rank, self.stage, self.spec = rank, stage, spec
        self._backend = _backend(group, spec)
        self._sent: deque = deque()
        self._count = 0

    def send(self, tensor: torch.Tensor) -> None:
        """Start sending. Waits for the message before the last one, which was taken long ago."""
        if tensor.shape != self.spec.shape or tensor.dtype != self.spec.dtype:
            raise ValueError(
                f"all micro-batches must have one shape: to stage {self.stage} go "
                f"{tuple(tensor.shape)}, {tensor.dtype}; agreed was {self.spec.shape}, "
                f"{self.spec.dtype}"
            )
        tensor = tensor.contiguous()
        try:
            self._sent.append((self._backend.send([tensor], self.rank, self.stage), tensor))
            self._count += 1
            if len(self._sent) > AHEAD:
                self._wait()
        except RuntimeError as error:
            raise LinkLost(self.rank, self.stage, self._count - 1, str(error)) from error

    def finish(self, unanswered: int) -> None:
        """All is sent, and `unanswered` messages never will be; answer the receives that are
        posted for them, so that the next message over this group meets none of them."""
        sent = self._count
        for _ in range(_posted(sent, sent + unanswered, self.spec.device) - sent):
            self.send(torch.empty(self.spec.shape, dtype=self.spec.dtype, device=self.spec.device))
        with talking_to(self.rank):
            while self._sent:
                self._wait()

    def _wait(self) -> None:
        work, _ = self._sent.popleft()
        work.wait()


class Receiver(Thread):
    """The receiving end of a link from `stage`, which is at `rank`, to stage `to`: hands `count`
    messages to `arrived`, one by one, or a `LinkLost`, after which nothing comes."""

    def __init__(
        self,
        group: dist.ProcessGroup,
        rank: int,
        stage: int,
        to: int,
        spec: Spec,
        count: int,
        arrived: Callable[[torch.Tensor | LinkLost], None],
    ):
        super().__init__(daemon=True)
        self.rank, self.stage, self.to, self.spec = rank, stage, to, spec
        self._backend = _backend(group, spec)
        self.count = count
        self.expected = count  # fewer if the others were told to stop early
        self.arrived = arrived
        self.start()

    def run(self) -> None:
        wait = self._wait_on_device if self.spec.device.type == "cuda" else _wait
        posted, taken = deque(), 0
        try:
            self._post_ahead(posted, taken)
            while posted:
                tensor, work = posted.popleft()
                wait(tensor, work)
                taken += 1
                if taken <= self.expected:
                    self._post_ahead(posted, taken)
                    self.arrived(tensor)
        except RuntimeError as error:
            self.arrived(LinkLost(self.rank, self.stage, taken, str(error)))

    def _post_ahead(self, posted: deque, taken: int) -> None:
        while taken + len(posted) < _posted(taken, self.count, self.spec.device):
            posted.append(self._post())

    def _post(self) -> tuple[torch.Tensor, dist.Work]:
        tensor = torch.empty(self.spec.shape, dtype=self.spec.dtype, device=self.spec.device)
        return tensor, self._backend.recv([tensor], self.rank, self.to)

    def _wait_on_device(self, tensor: torch.Tensor, work: dist.Work) -> None:
        """NCCL's `wait` makes a stream wait; that stream, and no other, is waited for."""
        stream = torch.cuda.current_stream(tensor.device)
        work.wait()
        event = torch.cuda.Event(blocking=True)
        event.record(stream)
        event.synchronize()
        tensor.record_stream(torch.cuda.default_stream(tensor.device))


def _posted(taken: int, count: int, device: torch.device) -> int:
    """How many of `count` receives are posted when `taken` messages have come.

    Always one batch ahead, and a batch at a time: the sender is told of each receive, and when
    that comes in the midst of its sending, a thread of gloo's spins until that is over. Memory
    that nothing has come to yet is free on a processor; on a GPU it is not, nor does NCCL spin.
    """
    batch = 1 if device.type == "cuda" else 4
    return min(count, (taken // batch + 2) * batch)


def _wait(tensor: torch.Tensor, work: dist.Work) -> None:
    work.wait()


def _backend(group: dist.ProcessGroup, spec: Spec):
    """What carries the group's messages. The group itself would look it up for each of them, by
    way of PyTorch's dispatcher, which is a tenth of what a message costs."""
    return group._get_backend(spec.device)

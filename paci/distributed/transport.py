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
from collections.abc import Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from threading import Thread
from typing import NamedTuple

import torch
import torch.distributed as dist

AHEAD = 2  # messages of a link that are under way and not yet waited for, at either end


class Spec(NamedTuple):
    """What every message of a link looks like."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    device: torch.device

    @classmethod
    def of(cls, tensor: torch.Tensor) -> "Spec":
        return cls(tuple(tensor.shape), tensor.dtype, tensor.device)

    def empty(self) -> torch.Tensor:
        return torch.empty(self.shape, dtype=self.dtype, device=self.device)

    def zeros(self) -> torch.Tensor:
        return torch.zeros(self.shape, dtype=self.dtype, device=self.device)


class LinkLost(Exception):
    """The rank at the other end of a link is gone, and with it what concerned `microbatch`."""

    def __init__(self, rank: int, stage: int, microbatch: int, why: str):
        super().__init__(why)
        self.rank, self.stage, self.microbatch = rank, stage, microbatch


@contextmanager
def link_errors(rank: int | None) -> Iterator[None]:
    """Inside is only communication, with `rank` or (None) with all; `LinkLost` if it fails."""
    try:
        yield
    except RuntimeError as error:
        raise LinkLost(rank, None, None, str(error)) from error


class Sender:
    """The sending end of a link to `stage`, which is at `rank`. Messages are about micro-batches
    0, 1, 2, ...; a sent tensor is contiguous, and must not be changed any more."""

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
        self._count += 1
        try:
            self._sent.append((self._backend.send([tensor], self.rank, self.stage), tensor))
            if len(self._sent) > AHEAD:
                self._wait()
        except RuntimeError as error:
            raise LinkLost(self.rank, self.stage, self._count - 1, str(error)) from error

    def finish(self, unanswered: int = 0) -> None:
        """All is sent; wait until it has been taken. The `unanswered` last messages that the
        receiver counts on never will be: answer the receives that it has posted for them, so that
        the next message over this group meets none of them."""
        for _ in range(min(unanswered, AHEAD)):
            self.send(self.spec.empty())
        with link_errors(self.rank):
            while self._sent:
                self._wait()

    def _wait(self) -> None:
        work, _ = self._sent.popleft()
        work.wait()


class Receiver(Thread):
    """The receiving end of a link from `stage`, which is at `rank`, to stage `to`: puts `count`
    messages of a `kind` into `inbox`, each as (to, kind, tensor), or a `LinkLost`, after which
    nothing comes."""

    def __init__(
        self,
        group: dist.ProcessGroup,
        rank: int,
        stage: int,
        to: int,
        kind: str,
        spec: Spec,
        count: int,
        inbox: SimpleQueue,
    ):
        super().__init__(daemon=True)
        self.rank, self.stage, self.to, self.kind, self.spec = rank, stage, to, kind, spec
        self._backend = _backend(group, spec)
        self.count = self._handed_on = count
        self.inbox = inbox
        self.start()

    def stop_after(self, count: int) -> None:
        """No message from `count` on means anything: all ranks were told to stop early."""
        self._handed_on = count

    def run(self) -> None:
        on_device = self.spec.device.type == "cuda"
        taken = 0
        try:
            posted = deque(self._post() for _ in range(min(AHEAD, self.count)))
            while posted:
                tensor, work = posted.popleft()
                work.wait()
                if on_device:
                    _settle(tensor)
                taken += 1
                if taken <= self._handed_on:
                    self.inbox.put((self.to, self.kind, tensor))
                    if taken + len(posted) < self.count:
                        posted.append(self._post())
        except RuntimeError as error:
            self.inbox.put(LinkLost(self.rank, self.stage, taken, str(error)))

    def _post(self) -> tuple[torch.Tensor, dist.Work]:
        tensor = self.spec.empty()
        return tensor, self._backend.recv([tensor], self.rank, self.to)


def _settle(tensor: torch.Tensor) -> None:
    """NCCL's `wait` only makes this thread's stream wait; that stream, and no other, is waited
    for."""
    event = torch.cuda.Event(blocking=True)
    event.record(torch.cuda.current_stream(tensor.device))
    event.synchronize()
    tensor.record_stream(torch.cuda.default_stream(tensor.device))


def _backend(group: dist.ProcessGroup, spec: Spec):
    """What carries the group's messages. The group itself would look it up for each of them, by
    way of PyTorch's dispatcher, which is a tenth of what a message costs."""
    return group._get_backend(spec.device)

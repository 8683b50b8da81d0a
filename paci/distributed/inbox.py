"""The inbox of a rank: messages and notices, in the order in which they arrive."""

import time
from collections.abc import Iterator
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import NamedTuple

import torch

from paci.distributed.control import Notice


class Message(NamedTuple):
    """An activation (`kind` F) or gradient (B) for `stage`, of any shape."""

    stage: int
    kind: str
    tensor: torch.Tensor


Item = Message | Notice | None
"""None: the control channel is gone."""


class Inbox:
    """A queue from the threads that receive to the one that acts."""

    def __init__(self) -> None:
        self._queue: SimpleQueue[Item | BaseException] = SimpleQueue()

    def put(self, item: Item | BaseException) -> None:
        """Add a message, a notice, or the error that has ended a receiver."""
        self._queue.put(item)

    def empty(self) -> bool:
        """Return whether nothing has come yet."""
        return self._queue.empty()

    def get(self) -> Item:
        """Wait for the next message or notice, and return it; raise the error of a receiver."""
        item = self._queue.get()
        if isinstance(item, BaseException):
            raise item
        return item

    def notices(self, seconds: float) -> Iterator[Notice | None]:
        """Yield the notices that come within `seconds`, and drop everything else."""
        until = time.monotonic() + seconds
        with suppress(Empty):
            while (left := until - time.monotonic()) > 0:
                item = self._queue.get(timeout=left)
                if item is None or isinstance(item, dict):
                    yield item

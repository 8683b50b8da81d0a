"""Messages between processors: gloo over TCP.

    sender    send ─────────────── bytes ─────────────▶ receive (posted ahead)    receiver

Gloo moves a message once its receive is posted, in threads of its own.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
import torch.distributed as dist

from paci.actions import BACKWARD, FORWARD
from paci.distributed.scheduling_policy import batch_scheduling
from paci.distributed.transport import Channel, Link, Spec, Transport, in_transit

WIDE = 1 << 20  # bytes of the message that widens a connection


class GlooTransport(Transport):
    """Two process groups of all ranks, one for activations and one for gradients; the links in
    one group differ in their tags."""

    def __init__(self, links: Sequence[Link], rank: int, message_dtype: torch.dtype | None = None):
        self._groups = new_gloo_groups()
        self._links = links
        self._rank = rank
        self.channels: dict[tuple[int, str], GlooChannel] = {
            (link.stage, link.kind): GlooChannel(
                gloo_backend(self._groups[link.kind]),
                link.target if link.source == rank else link.source,
                link.stage,
                message_dtype,
            )
            for link in links
            if rank in (link.source, link.target)
        }

    def warm_up(self) -> None:
        """Send one large message over every link.

        A new connection takes in 64 KB (Linux's default) until more has come through it. The end
        of a message that is a little larger then waits for an acknowledgement, which its receiver,
        if it has nothing to send, puts off for 40 ms.
        """
        large = torch.empty(WIDE, dtype=torch.uint8)
        pending: list[GlooMessage] = []
        for link in self._links:
            channel = self.channels.get((link.stage, link.kind))
            if channel and link.target == self._rank:
                pending.append(channel.receive(Spec.of(large)))
        for link in self._links:
            channel = self.channels.get((link.stage, link.kind))
            if channel and link.source == self._rank:
                pending.append(channel.send(large))
        for message in pending:
            message.wait()

    def close(self) -> None:
        for channel in self.channels.values():
            channel.close()
        close_groups(self._groups)


class GlooMessage(NamedTuple):
    """A tensor on its way, in either direction."""

    work: dist.Work
    tensor: torch.Tensor  # must live as long as the message is under way
    dtype: torch.dtype

    def wait(self) -> torch.Tensor:
        try:
            self.work.wait()
        except RuntimeError as error:
            raise ConnectionError(str(error)) from error
        return self.tensor if self.tensor.dtype == self.dtype else self.tensor.to(self.dtype)


class GlooChannel(Channel):
    """One end of a link, whose other end is at rank `peer`."""

    def __init__(self, backend: Any, peer: int, tag: int, message_dtype: torch.dtype | None):
        self._backend, self._peer, self._tag = backend, peer, tag
        self._message_dtype = message_dtype

    def send(self, tensor: torch.Tensor) -> GlooMessage:
        dtype = in_transit(tensor.dtype, self._message_dtype)
        if tensor.dtype != dtype:
            tensor = tensor.to(dtype)
        try:
            return GlooMessage(self._backend.send([tensor], self._peer, self._tag), tensor, dtype)
        except RuntimeError as error:
            raise ConnectionError(str(error)) from error

    def send_placeholder(self, spec: Spec) -> GlooMessage:
        return self.send(spec.empty())

    def receive(self, spec: Spec) -> GlooMessage:
        # Outside of the try: too little memory is no lost connection.
        tensor = spec.empty(in_transit(spec.dtype, self._message_dtype))
        try:
            work = self._backend.recv([tensor], self._peer, self._tag)
        except RuntimeError as error:
            raise ConnectionError(str(error)) from error
        return GlooMessage(work, tensor, spec.dtype)

    def close(self) -> None:
        """Drop the process group; its threads and connections last as long as it is referenced."""
        self._backend = None


def new_gloo_groups(batch: bool = True) -> dict[str, dist.ProcessGroup]:
    """Make a group of all ranks for each kind of message; every rank calls it. The groups' threads
    are scheduled as a `batch`."""
    everyone = list(range(dist.get_world_size()))
    with batch_scheduling(batch):
        return {kind: dist.new_group(everyone, backend="gloo") for kind in (FORWARD, BACKWARD)}


def gloo_backend(group: dist.ProcessGroup) -> Any:
    """Return the backend that carries the group's messages. The group itself would look it up for
    each message through PyTorch's dispatcher, which is a tenth of what a message costs."""
    return group._get_backend(torch.device("cpu"))


def close_groups(groups: dict[Any, dist.ProcessGroup]) -> None:
    """Give process groups back; every rank calls it."""
    for group in groups.values():
        dist.destroy_process_group(group)
    groups.clear()

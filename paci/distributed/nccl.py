"""Messages between GPUs: a gloo doorbell with an NCCL payload.

    sender                                          receiver
      settle the compute stream
      post the NCCL send            ── bell ──▶     asleep on gloo
            │                                       post the NCCL receive on the link's stream
            └════════════════ payload ════════════▶ wait on a blocking event
      asleep on gloo if it must wait ◀─ receipt ──  the message has arrived

A receive that is posted before its message exists occupies the device with a kernel that spins.
It blocks whatever the device must finish first, and the message may need this rank's own backward.
Here no receive is posted before its bell rings: kernels live as long as a transfer, the rule sees
what has really arrived, and every thread that waits for another rank waits on gloo, which tells
within seconds that a rank is gone. NCCL does not; a `Lifeline` tells of a rank that dies while its
payload is on its way.

Nothing makes the compute stream wait for a message or for a send: `wait` of an NCCL operation is
called only where the stream of a link is current.
"""

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from threading import Thread
from typing import Any, NamedTuple

import torch
import torch.distributed as dist

from paci.actions import FORWARD
from paci.distributed.device import settle
from paci.distributed.gloo import close_groups, gloo_backend, new_gloo_groups
from paci.distributed.transport import AHEAD, Channel, Link, LinkLost, Spec, Transport, in_transit

MESSAGE, PLACEHOLDER = 1, 0  # what a bell says


class NcclTransport(Transport):
    """A communicator of two ranks for each directed link, and gloo's groups for the bells.

    One communicator for several links would let a send queue behind a send that waits for this
    rank. Links that begin or end at this rank have one stream each, for the pipeline's life:
    short-lived streams would cycle through PyTorch's pool and strand cached blocks.
    """

    def __init__(
        self,
        links: Sequence[Link],
        rank: int,
        device: torch.device,
        message_dtype: torch.dtype | None = None,
    ):
        self._links, self._rank, self._device = links, rank, device
        self._bells = new_gloo_groups(batch=False)
        self._groups: dict[Link, Any] = {}
        for link in links:  # every rank makes every group, in this order
            members = sorted((link.source, link.target))
            self._groups[link] = dist.new_group(members, backend="nccl")
        self._lifelines: list[Lifeline] = []
        self.channels: dict[tuple[int, str], NcclChannel] = {}
        for number, link in enumerate(links):
            if rank in (link.source, link.target):
                peer = link.target if link.source == rank else link.source
                bell = Bell(gloo_backend(self._bells[link.kind]), peer, 2 * number)
                self.channels[link.stage, link.kind] = NcclChannel(
                    bell, self._groups[link]._get_backend(device), int(peer > rank), device,
                    message_dtype,
                )  # fmt: skip

    def warm_up(self) -> None:
        """Send one element over every link, one link after the other.

        The first message makes a communicator, for which both ranks must come. All go through the
        links in one order, in their main threads, so none waits for another in a circle.
        """
        for link in self._links:
            channel = self.channels.get((link.stage, link.kind))
            if channel is not None:
                channel.warm_up(sends=link.source == self._rank)

    def watch(self, lost: Callable[[LinkLost], None]) -> None:
        ends = [(link.source, link.target) for link in self._links if self._is_member(link)]
        backend, tag = gloo_backend(self._bells[FORWARD]), 2 * len(self._links)
        for peer in sorted({rank for both in ends for rank in both} - {self._rank}):
            self._lifelines.append(Lifeline(Bell(backend, peer, tag), peer, lost))

    def close(self) -> None:
        for lifeline in self._lifelines:
            lifeline.end()
        for channel in self.channels.values():
            channel.close()
        close_groups({link: g for link, g in self._groups.items() if self._is_member(link)})
        self._groups.clear()
        close_groups(self._bells)

    def _is_member(self, link: Link) -> bool:
        return self._rank in (link.source, link.target)


class Bell:
    """Single bytes on gloo, to `peer` and back, that accompany the messages of one link."""

    def __init__(self, backend: Any, peer: int, tag: int):
        self._backend, self._peer, self._tag = backend, peer, tag

    def send(self, byte: int, receipt: bool = False) -> "Ring":
        tensor = torch.tensor([byte], dtype=torch.uint8)
        return self._start(self._backend.send, tensor, receipt)

    def receive(self, receipt: bool = False) -> "Ring":
        return self._start(self._backend.recv, torch.empty(1, dtype=torch.uint8), receipt)

    def close(self) -> None:
        self._backend = None

    def _start(self, operation: Any, tensor: torch.Tensor, receipt: bool) -> "Ring":
        try:
            return Ring(operation([tensor], self._peer, self._tag + receipt), tensor)
        except RuntimeError as error:
            raise ConnectionError(str(error)) from error


class Ring(NamedTuple):
    """A byte on its way, in either direction."""

    work: dist.Work
    tensor: torch.Tensor

    def wait(self) -> int:
        try:
            self.work.wait()
        except RuntimeError as error:
            raise ConnectionError(str(error)) from error
        return int(self.tensor.item())


class Lifeline(Thread):
    """A thread that sleeps until the rank at the other end of `bell` closes its pipeline, or dies.

    A rank that dies after it has rung leaves the receiver with a kernel that spins for ever, on the
    device, where nothing tells of the death.
    """

    def __init__(self, bell: Bell, peer: int, lost: Callable[[LinkLost], None]):
        super().__init__(daemon=True)
        self._bell, self._peer, self._lost = bell, peer, lost
        self._closed = False
        self.start()

    def run(self) -> None:
        try:
            self._bell.receive().wait()
        except ConnectionError as error:
            if not self._closed:
                self._lost(LinkLost(self._peer, None, None, str(error)))

    def end(self) -> None:
        """Let the thread at the other end come to its end."""
        self._closed = True
        with suppress(ConnectionError):
            self._bell.send(MESSAGE).wait()
        self._bell.close()


class NcclChannel(Channel):
    """One end of a link; the other end is number `peer` of the two ranks of its communicator."""

    def __init__(
        self,
        bell: Bell,
        backend: Any,
        peer: int,
        device: torch.device,
        message_dtype: torch.dtype | None,
    ):
        self.bell = bell
        self._backend, self._peer, self._device = backend, peer, device
        self._message_dtype = message_dtype
        self._stream = torch.cuda.Stream(device)
        self._receipts: deque[Ring] = deque(maxlen=AHEAD + 1)  # of which the first has been taken
        self._compute_stream = torch.cuda.current_stream(device)

    def send(self, tensor: torch.Tensor) -> "NcclSend":
        payload = tensor.to(in_transit(tensor.dtype, self._message_dtype))
        settle(self._device)
        work = self._post(self._backend.send, payload)
        ring = self.bell.send(MESSAGE)
        return NcclSend(ring, self.bell.receive(receipt=True), work, payload)

    def send_placeholder(self, spec: Spec) -> Ring:
        return self.bell.send(PLACEHOLDER)

    def receive(self, spec: Spec) -> "NcclReceive":
        return NcclReceive(self, self.bell.receive(), spec)

    def receiving(self) -> AbstractContextManager[Any]:
        """Make the link's stream, and so its device, the current one."""
        return torch.cuda.stream(self._stream)

    def fetch(self, spec: Spec) -> torch.Tensor:
        """Return the message whose bell has rung; called inside `receiving`."""
        payload = spec.empty(in_transit(spec.dtype, self._message_dtype))
        self._post(self._backend.recv, payload).wait()  # the link's stream does
        tensor = payload.to(spec.dtype)
        settle(self._device)
        tensor.record_stream(self._compute_stream)
        self._receipts.append(self.bell.send(MESSAGE, receipt=True))
        return tensor

    def warm_up(self, sends: bool) -> None:
        """Send or receive one element."""
        with self.receiving():
            element = torch.zeros(1, device=self._device)
            self._post(self._backend.send if sends else self._backend.recv, element).wait()
            settle(self._device)

    def close(self) -> None:
        self.bell.close()
        self._backend = None

    def _post(self, operation: Any, tensor: torch.Tensor) -> Any:
        """Start an NCCL operation; raise ConnectionError if the peer is gone. Errors of the device,
        such as too little memory, pass as they are."""
        try:
            return operation([tensor], self._peer, 0)
        except dist.DistBackendError as error:
            raise ConnectionError(str(error)) from error


class NcclSend(NamedTuple):
    """A message on its way to its receiver."""

    ring: Ring
    receipt: Ring
    work: Any
    payload: torch.Tensor  # like the others, must live as long as it is under way

    def wait(self) -> None:
        self.receipt.wait()


class NcclReceive(NamedTuple):
    """A message whose bell has not rung yet."""

    channel: NcclChannel
    ring: Ring
    spec: Spec

    def wait(self) -> torch.Tensor:
        if self.ring.wait() == PLACEHOLDER:
            return self.ring.tensor
        return self.channel.fetch(self.spec)

"""The links of one rank: which of its stages send to, and receive from, those of other ranks.

rank 0: stage 0 ══ F ══▶ rank 1: stage 1 ══ F ══▶ ...
                ◀══ B ══                 ◀══ B ══
"""

from collections.abc import Callable, Iterable, Sequence
from threading import Semaphore

import torch

from paci.actions import BACKWARD, FORWARD
from paci.distributed.device import on_cuda
from paci.distributed.gloo import GlooTransport
from paci.distributed.inbox import Inbox
from paci.distributed.nccl import NcclTransport
from paci.distributed.transport import Link, LinkLost, Receiver, Sender, Spec, Transport
from paci.stage.stage import Stage

Specs = dict[int, Sequence[Spec]]
"""{stage: specs of what enters it}, one for each micro-batch of a window, or one for all.
A gradient has the spec of the activation that it belongs to."""


class Links:
    """The links of the rank that holds `stages`, where stage i of the pipeline is at `rank_of[i]`.

    Every rank makes one, and closes it; see `Transport`.
    """

    def __init__(
        self,
        rank_of: Sequence[int],
        rank: int,
        stages: Sequence[Stage],
        message_dtype: torch.dtype | None = None,
    ):
        self.rank_of, self.rank, self.stages = rank_of, rank, stages
        self._transport = open_transport(all_links(rank_of), rank, stages[0].device, message_dtype)

    def warm_up(self) -> None:
        """Send one message over every link; every rank calls it."""
        self._transport.warm_up()

    def watch(self, lost: Callable[[LinkLost], None]) -> None:
        """Call `lost` if a neighbour dies; see `Transport`."""
        self._transport.watch(lost)

    def senders(
        self, specs: Specs, kinds: str = FORWARD + BACKWARD
    ) -> dict[tuple[int, str], Sender]:
        """Return the sending ends, by (receiving stage, kind)."""
        senders = {}
        for stage in self.stages:
            for kind, to in ((FORWARD, stage.index + 1), (BACKWARD, stage.index - 1)):
                if kind in kinds and self._is_elsewhere(to):
                    channel = self._transport.channels[to, kind]
                    entering = specs[max(to, stage.index)]
                    senders[to, kind] = Sender(channel, self.rank_of[to], to, entering)
        return senders

    def receivers(
        self,
        specs: Specs,
        count: int,
        inbox: Inbox,
        kinds: str = FORWARD + BACKWARD,
        room: int | None = None,
    ) -> dict[tuple[int, str], Receiver]:
        """Return the receiving ends, by (receiving stage, kind), of `count` messages each, which
        go to `inbox`; at most `room` of each link at once, if that is given."""
        receivers = {}
        for stage in self.stages:
            for kind, source in ((FORWARD, stage.index - 1), (BACKWARD, stage.index + 1)):
                if kind in kinds and self._is_elsewhere(source):
                    receivers[stage.index, kind] = Receiver(
                        self._transport.channels[stage.index, kind], self.rank_of[source], source,
                        stage.index, kind, specs[max(source, stage.index)], count, inbox,
                        Semaphore(room) if room else None,
                    )  # fmt: skip
        return receivers

    def close(self) -> None:
        """Give the process groups back; every rank calls it."""
        self._transport.close()

    def _is_elsewhere(self, stage: int) -> bool:
        """Return whether there is such a stage, and it is at another rank."""
        return 0 <= stage < len(self.rank_of) and self.rank_of[stage] != self.rank


def open_transport(
    links: Sequence[Link], rank: int, device: torch.device, message_dtype: torch.dtype | None
) -> Transport:
    """Return the transport between devices like `device`: NCCL for GPUs, else gloo."""
    if on_cuda(device):
        return NcclTransport(links, rank, device, message_dtype)
    return GlooTransport(links, rank, message_dtype)


def all_links(rank_of: Sequence[int]) -> list[Link]:
    """Return all links between ranks, in an order that is the same everywhere."""
    neighbours = [(i - 1, i, FORWARD) for i in range(1, len(rank_of))]
    neighbours += [(i + 1, i, BACKWARD) for i in range(len(rank_of) - 1)]
    return [
        Link(stage, kind, rank_of[source], rank_of[stage])
        for source, stage, kind in neighbours
        if rank_of[source] != rank_of[stage]
    ]


def drain(senders: Iterable[Sender], receivers: Iterable[Receiver], skipped: int = 0) -> None:
    """Wait until all messages have been sent and received. After an early stop the last `skipped`
    of each link are never sent, and not waited for."""
    for sender in senders:
        sender.drain(skipped)
    for receiver in receivers:
        receiver.join()

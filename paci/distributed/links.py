"""The links of one rank: which of its stages send to, and receive from, those of other ranks.

rank 0: stage 0 ── F ──▶ rank 1: stage 1 ── F ──▶ ...
                ◀── B ──                 ◀── B ──
"""

from collections.abc import Mapping, Sequence
from queue import SimpleQueue

import torch
import torch.distributed as dist

from paci.actions import BACKWARD, FORWARD
from paci.distributed.transport import Receiver, Sender, Spec
from paci.stage.stage import Stage

WIDE = 1 << 20  # bytes of the message that widens a connection
Specs = dict[int, Spec]
"""{stage: what enters it}; gradients look like the activations that they belong to."""


class Links:
    """Those of the rank that holds `stages`; `rank_of` each stage of the pipeline is known. Every
    rank makes one, for it makes the process groups."""

    def __init__(self, rank_of: Sequence[int], rank: int, stages: Sequence[Stage]):
        self.rank_of, self.rank, self.stages = rank_of, rank, stages
        self.backend = "nccl" if stages[0].device.type == "cuda" else "gloo"
        self.groups = _groups(len(rank_of), len(stages), self.backend)

    def widen(self) -> None:
        """Send one large message over every link that is a TCP connection; every rank does.

        A new connection takes in 64 KB (Linux's default) until more has come through it. The end
        of a message that is a little larger then waits for an acknowledgement, which its receiver,
        if it has nothing to send, puts off for 40 ms.
        """
        if self.backend != "gloo":
            return
        large = torch.empty(WIDE, dtype=torch.uint8)
        specs = dict.fromkeys(range(len(self.rank_of)), Spec.of(large))
        receivers, senders = self.receivers(specs, 1, SimpleQueue()), self.senders(specs)
        for sender in senders.values():
            sender.send(large)
        drain(senders, receivers)

    def senders(
        self, specs: Specs, kinds: str = FORWARD + BACKWARD
    ) -> dict[tuple[int, str], Sender]:
        """{(receiving stage, kind): the sending end}."""
        senders = {}
        for stage in self.stages:
            for kind, to in ((FORWARD, stage.index + 1), (BACKWARD, stage.index - 1)):
                if kind in kinds and self.is_elsewhere(to):
                    spec = specs[max(to, stage.index)]
                    senders[to, kind] = Sender(self.groups[to, kind], self.rank_of[to], to, spec)
        return senders

    def receivers(self, specs: Specs, count: int, inbox: SimpleQueue) -> list[Receiver]:
        """The receiving ends, of `count` messages each, which go to `inbox`."""
        receivers = []
        for stage in self.stages:
            for kind, source in ((FORWARD, stage.index - 1), (BACKWARD, stage.index + 1)):
                if self.is_elsewhere(source):
                    receivers.append(
                        Receiver(
                            self.groups[stage.index, kind], self.rank_of[source], source,
                            stage.index, kind, specs[max(source, stage.index)], count, inbox,
                        )
                    )  # fmt: skip
        return receivers

    def is_elsewhere(self, stage: int) -> bool:
        """Whether there is such a stage, and it is at another rank."""
        return 0 <= stage < len(self.rank_of) and self.rank_of[stage] != self.rank

    def close(self) -> None:
        """Give the process groups back; every rank does."""
        for group in dict.fromkeys(self.groups.values()):
            dist.destroy_process_group(group)
        self.groups.clear()  # their threads and connections last as long as anybody holds them


def drain(
    senders: Mapping[tuple[int, str], Sender], receivers: Sequence[Receiver], unanswered: int = 0
) -> None:
    """All is sent, but for the last `unanswered` messages of each link; wait until all has come."""
    for sender in senders.values():
        sender.finish(unanswered)
    for receiver in receivers:
        receiver.join()


def _groups(stages: int, per_rank: int, backend: str) -> dict[tuple[int, str], dist.ProcessGroup]:
    """The process group of every link, by (receiving stage, kind): one for activations, one for
    gradients. NCCL knows no tags and delivers in the order of posting, so where two links can
    join the same two ranks each has a group of its own."""
    links = [(to, FORWARD) for to in range(1, stages)] + [(to, BACKWARD) for to in range(stages)]
    everyone = list(range(dist.get_world_size()))
    if backend == "gloo" or per_rank == 1:
        of = {kind: dist.new_group(everyone, backend=backend) for kind in (FORWARD, BACKWARD)}
        return {(to, kind): of[kind] for to, kind in links}
    return {link: dist.new_group(everyone, backend=backend) for link in links}

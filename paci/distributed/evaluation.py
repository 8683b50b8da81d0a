"""Forwards only, through a pipeline of ranks, as full as it gets.

    tick      0    1    2    3          every stage does micro-batch `tick - stage`
    stage 0   0F0  0F1  0F2
    stage 1        1F0  1F1  1F2

What an action needs was sent a tick before, so ranks that keep to the order of ticks cannot wait
for each other in a circle; and none runs ahead of the next by more than the messages under way.
"""

from collections import deque
from collections.abc import Iterator, Sequence

import torch
import torch.distributed as dist

from paci.actions import FORWARD
from paci.distributed.links import Links, Specs, drain
from paci.distributed.transport import AHEAD, Spec, link_errors
from paci.segment import Batch


def evaluate(links: Links, specs: Specs, batches: Sequence[Batch]) -> list[torch.Tensor]:
    """The loss of each of `batches` at the rank of the last stage; elsewhere nothing."""
    senders = links.senders(specs, FORWARD)
    arriving = {
        stage.index: _arriving(
            links.groups[stage.index, FORWARD], links.rank_of[stage.index - 1], stage.index,
            specs[stage.index], len(batches),
        )
        for stage in links.stages if links.is_elsewhere(stage.index - 1)
    }  # fmt: skip
    staying: dict[int, torch.Tensor] = {}  # at this rank, until the next tick, by receiving stage
    losses = []
    for tick in range(len(batches) + len(links.rank_of) - 1):
        # Later stages first: they take what this tick would replace.
        for stage in sorted(links.stages, key=lambda stage: -stage.index):
            microbatch, to = tick - stage.index, stage.index + 1
            if not 0 <= microbatch < len(batches):
                continue
            if stage.is_first:
                input = batches[microbatch][0]
            elif stage.index in arriving:
                input = next(arriving[stage.index])
            else:
                input = staying.pop(stage.index)
            target = batches[microbatch][1] if stage.is_last else None
            output = stage.evaluate(input, target)
            if stage.is_last:
                losses.append(output)
            elif (to, FORWARD) in senders:
                senders[to, FORWARD].send(output)
            else:
                staying[to] = output
    drain(senders, [])
    return losses


def _arriving(
    group: dist.ProcessGroup, rank: int, stage: int, spec: Spec, count: int
) -> Iterator[torch.Tensor]:
    """The `count` inputs of `stage` that `rank` sends; a few receives are posted ahead."""
    posted: deque[tuple[torch.Tensor, dist.Work]] = deque()
    with link_errors(rank):
        for taken in range(count):
            while len(posted) < min(AHEAD, count - taken):
                tensor = spec.empty()
                posted.append((tensor, group.recv([tensor], rank, stage)))
            tensor, work = posted.popleft()
            work.wait()
            yield tensor

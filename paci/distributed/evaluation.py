"""Evaluation: forwards only, through a pipeline of ranks that is kept full.

    tick      0    1    2    3          every stage does micro-batch `tick - stage`
    stage 0   0F0  0F1  0F2
    stage 1        1F0  1F1  1F2

The input of an action was sent a tick before, so ranks that keep to the order of ticks cannot wait
for each other in a circle. None runs ahead of the next by more than the messages that its links
have room for.
"""

from collections.abc import Callable, Sequence

import torch

from paci.actions import FORWARD
from paci.distributed.control import Notice
from paci.distributed.inbox import Inbox, Message
from paci.distributed.links import Links, Specs, drain
from paci.distributed.transport import AHEAD
from paci.stage.perform import Mailbox
from paci.stage.stage import Batch


def evaluate(
    links: Links,
    specs: Specs,
    batches: Sequence[Batch],
    inbox: Inbox,
    on_notice: Callable[[Notice | None], None],
) -> list[torch.Tensor]:
    """Return the loss of each of `batches` at the rank of the last stage, elsewhere nothing.

    Messages come through `inbox`; notices in it go to `on_notice`.
    """
    senders = links.senders(specs, FORWARD)
    receivers = links.receivers(specs, len(batches), inbox, FORWARD, AHEAD)
    mail = Mailbox()
    losses = []

    def take(stage: int) -> torch.Tensor:
        while not mail.has(stage, FORWARD):
            item = inbox.get()
            if isinstance(item, Message):
                mail.put(*item)
            else:
                on_notice(item)
        if (stage, FORWARD) in receivers:
            receivers[stage, FORWARD].make_room()
        return mail.take(stage, FORWARD)

    for tick in range(len(batches) + len(links.rank_of) - 1):
        # Later stages first: they take the messages of the tick before.
        for stage in sorted(links.stages, key=lambda stage: -stage.index):
            microbatch, to = tick - stage.index, stage.index + 1
            if not 0 <= microbatch < len(batches):
                continue
            batch_input, target = batches[microbatch]
            input = batch_input if stage.is_first else take(stage.index)
            output = stage.evaluate(input, target if stage.is_last else None)
            if stage.is_last:
                losses.append(output)
            elif (to, FORWARD) in senders:
                senders[to, FORWARD].send(output)
            else:
                mail.put(to, FORWARD, output)
    drain(senders.values(), receivers.values())
    return losses

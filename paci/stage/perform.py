"""One action of a stage, with the messages that it takes from its neighbours and sends to them.

    F     take(i, F) ─▶ forward  ─▶ send(i + 1, F)
    B, I  take(i, B) ─▶ backward ─▶ send(i - 1, B)
    W                   nothing: the gradients of the weights stay

The first stage has a batch to take instead of an activation, and sends no gradient; the last has
a loss instead of an activation to send, and takes no gradient.
"""

from collections import defaultdict, deque
from collections.abc import Callable
from functools import partial

import torch

from paci.actions import BACKWARD, FORWARD, WEIGHT_GRADIENT
from paci.stage.stage import Batch, Stage

Take = Callable[[int, str], torch.Tensor]
Send = Callable[[int, str, torch.Tensor], None]


class Mailbox:
    """Messages on their way to a stage, by kind, in the order in which they were put."""

    def __init__(self) -> None:
        self._waiting: defaultdict[tuple[int, str], deque[torch.Tensor]] = defaultdict(deque)

    def put(self, stage: int, kind: str, tensor: torch.Tensor) -> None:
        self._waiting[stage, kind].append(tensor)

    def has(self, stage: int, kind: str) -> bool:
        return bool(self._waiting[stage, kind])

    def take(self, stage: int, kind: str) -> torch.Tensor:
        return self._waiting[stage, kind].popleft()


def perform(
    stage: Stage,
    kind: str,
    microbatch: int,
    batch_of: Callable[[int], Batch],
    take: Take,
    send: Send,
) -> torch.Tensor | None:
    """Do the action `kind` of `microbatch` at `stage`; return the loss if that is a forward of the
    last stage, else None.

    batch_of(microbatch)       returns its (input, target); only the first and last stage read it
    take(stage, kind)          returns what has come for `stage`: an activation (F), a gradient (B)
    send(stage, kind, tensor)  hands `tensor` to `stage`; called before any update
    """
    if kind == FORWARD:
        input = batch_of(microbatch)[0] if stage.is_first else take(stage.index, FORWARD)
        target = batch_of(microbatch)[1] if stage.is_last else None
        output = stage.forward(microbatch, input, target)
        if stage.is_last:
            return output
        send(stage.index + 1, FORWARD, output)
    elif kind == WEIGHT_GRADIENT:
        stage.backward_weight(microbatch)
    else:
        backward = stage.backward if kind == BACKWARD else stage.backward_input
        gradient = None if stage.is_last else take(stage.index, BACKWARD)
        backward(microbatch, gradient, partial(send, stage.index - 1, BACKWARD))
    return None

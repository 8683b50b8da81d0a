"""The event loop of one rank: ask the rule, act, else wait for a message.

          ┌─────────────── inbox ◀── receiver of activations (thread)
          ▼                      ◀── receiver of gradients (thread)
counts ─▶ rule ── action ──▶ Stage ──▶ sender ──▶ other rank
  ▲        │ None                │
  │        └─▶ sleep on inbox    │
  └──────── action has ended ◀───┘
"""

import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Sequence
from functools import partial
from queue import SimpleQueue

import torch

from paci.actions import BACKWARD, FORWARD, INPUT_GRADIENT, WEIGHT_GRADIENT
from paci.schedules import Schedule, StageView
from paci.stage import Stage
from paci.transport import LinkLost, Sender


class Engine:
    """One segment of `count` micro-batches at one rank, which owns `stages`.

    inbox      (stage, kind, tensor) of arrived messages; a `LinkLost`, which is raised; and
               notices, which `on_notice` gets
    senders    {(receiving stage, kind): link}; what has none stays at this rank
    first      the number that the segment's micro-batch 0 has in training
    on_window  called by the last stage after each update: (window's losses, its learning rate)

    `steps` are the actions done, as tuples of `Step`, in seconds of `time.monotonic`.
    """

    def __init__(
        self,
        rank: int,
        rule: Schedule,
        stages: Sequence[Stage],
        count: int,
        first: int,
        inbox: SimpleQueue,
        senders: dict[tuple[int, str], Sender],
        on_notice: Callable,
        on_window: Callable | None,
    ):
        self.rank = rank
        self.rule = rule
        self.stages = {stage.index: stage for stage in stages}
        self.views = tuple(StageView(stage.index, stage.is_last) for stage in stages)
        self.view_of = {view.index: view for view in self.views}
        self.count = count
        self.first = first
        self.inbox = inbox
        self.senders = senders
        self.on_notice = on_notice
        self.on_window = on_window
        self.arrived: defaultdict[tuple[int, str], deque] = defaultdict(deque)  # by stage, kind
        self.steps: list[tuple] = []
        self.waiting: Counter[str] = Counter()
        self.losses: list[torch.Tensor] = []
        self.now: tuple[int | None, int | None] = (None, None)  # stage, micro-batch at work
        device = stages[0].device
        self._settle = _settle_stream if device.type == "cuda" else lambda: None
        self._admit()

    def run(self, batches: Sequence) -> None:
        """Until every micro-batch has been through every stage of this rank."""
        inbox, views = self.inbox, self.views
        while True:
            while not inbox.empty():
                self._read(inbox.get())
            choice = self.rule.next(views)
            if choice is not None:
                self._act(*choice, batches)
            elif all(view.weights == self.count for view in views):
                return
            else:
                self._wait()

    def stop_at(self, count: int) -> None:
        """No micro-batch from `count` on begins; fewer than that have begun anywhere."""
        self.count = min(self.count, count)
        self.rule = self.rule.up_to(self.count)
        self._admit()

    def _admit(self) -> None:
        for view in self.views:
            if self.stages[view.index].is_first:
                view.inputs = self.count

    def _act(self, view: StageView, kind: str, batches: Sequence) -> None:
        stage, microbatch = self.stages[view.index], view.microbatch(kind)
        self.now = view.index, self.first + microbatch
        version = view.weights // self.rule.accumulation
        start = time.monotonic()
        if kind == FORWARD:
            self._forward(stage, microbatch, batches)
        else:
            self._backward(stage, kind, microbatch)
        self._settle()
        view.finish(kind)
        end = time.monotonic()
        self.steps.append((self.rank, view.index, kind, microbatch, start, end, version))

    def _forward(self, stage: Stage, microbatch: int, batches: Sequence) -> None:
        input = batches[microbatch][0] if stage.is_first else self._take(stage, FORWARD)
        target = batches[microbatch][1] if stage.is_last else None
        output = stage.forward(self.first + microbatch, input, target)
        if stage.is_last:
            self.losses.append(output)
        else:
            self._send(stage.index + 1, FORWARD, output)

    def _backward(self, stage: Stage, kind: str, microbatch: int) -> None:
        """All of a backward or half of it. Its gradient leaves before any update."""
        m, a, rate = self.first + microbatch, self.rule.accumulation, stage.learning_rate
        if kind == WEIGHT_GRADIENT:
            stage.backward_weight(m)
        else:
            gradient = None if stage.is_last else self._take(stage, BACKWARD)
            if kind == BACKWARD:
                stage.backward(m, gradient, partial(self._send, stage.index - 1, BACKWARD))
            else:
                gradient = stage.backward_input(m, gradient)
                if not stage.is_first:
                    self._send(stage.index - 1, BACKWARD, gradient)
        if (
            self.on_window
            and stage.is_last
            and kind != INPUT_GRADIENT
            and (microbatch + 1) % a == 0
        ):
            self.on_window(self.losses[microbatch + 1 - a : microbatch + 1], rate)

    def _take(self, stage: Stage, kind: str) -> torch.Tensor:
        return self.arrived[stage.index, kind].popleft()

    def _send(self, to: int, kind: str, tensor: torch.Tensor) -> None:
        sender = self.senders.get((to, kind))
        if sender is None:
            self._read((to, kind, tensor))
        else:
            sender.send(tensor)

    def _read(self, item) -> None:
        if isinstance(item, tuple):
            stage, kind, tensor = item
            self.arrived[stage, kind].append(tensor)
            self.view_of[stage].arrive(kind)
        elif isinstance(item, LinkLost):
            raise item
        else:
            self.on_notice(item)

    def _wait(self) -> None:
        """Sleep until something comes."""
        start, cause = time.monotonic(), self._cause()
        self._read(self.inbox.get())
        self.waiting[cause] += time.monotonic() - start

    def _cause(self) -> str:
        """What this rank waits for. A forward whose input is here and that the rule does not want
        waits for backpressure to ease; one that an input would allow, for the input."""
        if any(view.inputs > view.forwards for view in self.views):
            return "backpressure"
        for view in self.views:
            view.inputs += 1
            would_act = self.rule.next(self.views) is not None
            view.inputs -= 1
            if would_act:
                return "input"
        return "gradient"


def _settle_stream() -> None:
    """The rule decides when a device is free, so what it is given is waited for: this stream only,
    after the messages have been handed to theirs."""
    torch.cuda.current_stream().synchronize()

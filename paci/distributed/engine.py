"""The event loop of one rank: ask the rule, act, else wait for a message.

          ┌─────────────── inbox ◀── receiver of activations (thread)
          ▼                      ◀── receiver of gradients (thread)
counts ─▶ rule ── action ──▶ Stage ──▶ sender ──▶ other rank
  ▲        │ None                │
  │        └─▶ sleep on inbox    │
  └──────── action has ended ◀───┘
"""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from queue import SimpleQueue

import torch

from paci.distributed.transport import LinkLost, Sender
from paci.schedules import Schedule, StageView
from paci.segment import Batch
from paci.simulation.event_loop import Step
from paci.stage.perform import Mailbox, perform
from paci.stage.stage import Stage


class Engine:
    """One segment of `count` micro-batches at one rank, which owns `stages`.

    inbox      (stage, kind, tensor) of arrived messages; a `LinkLost`, which is raised; and
               notices, which `on_notice` gets
    senders    {(receiving stage, kind): link}; what has none stays at this rank
    first      the number that the segment's micro-batch 0 has in training
    on_window  called by the last stage after each update: (window's losses, its learning rate,
               when it had made it)

    `steps` are the actions done, in seconds of `time.monotonic`.
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
        self.mail = Mailbox()
        self.steps: list[Step] = []
        self.waiting: Counter[str] = Counter()
        self.losses: list[torch.Tensor] = []
        self.at_work: tuple[int | None, int | None] = (None, None)  # stage, micro-batch
        device = stages[0].device
        self._settle = _settle_stream if device.type == "cuda" else lambda: None
        self._admit()

    def run(self, batches: Sequence[Batch]) -> None:
        """Until every micro-batch has been through every stage of this rank."""
        inbox, views = self.inbox, self.views

        def batch_of(microbatch: int) -> Batch:
            return batches[microbatch - self.first]

        while True:
            while not inbox.empty():
                self._read(inbox.get())
            choice = self.rule.next(views)
            if choice is not None:
                self._act(*choice, batch_of)
            elif all(view.weights == self.count for view in views):
                return
            else:
                self._wait()

    @property
    def window_end(self) -> int:
        """Micro-batches up to the end of the window that stage 0, of this rank, has begun, or of
        the first."""
        a = self.rule.accumulation
        return max(a, -(-self.view_of[0].forwards // a) * a)

    def stop_at(self, count: int) -> None:
        """No micro-batch from `count` on begins; fewer than that have begun anywhere."""
        self.count = min(self.count, count)
        self.rule = self.rule.up_to(self.count)
        self._admit()

    def _admit(self) -> None:
        for view in self.views:
            if self.stages[view.index].is_first:
                view.inputs = self.count

    def _act(self, view: StageView, kind: str, batch_of: Callable[[int], Batch]) -> None:
        stage, microbatch = self.stages[view.index], view.microbatch(kind)
        self.at_work = stage.index, self.first + microbatch
        a, rate = self.rule.accumulation, stage.learning_rate
        version = view.weights // a
        start = time.monotonic()
        loss = perform(stage, kind, self.first + microbatch, batch_of, self.mail.take, self._send)
        self._settle()
        view.finish(kind)
        end = time.monotonic()
        self.steps.append(Step(self.rank, stage.index, kind, microbatch, start, end, version))
        if loss is not None:
            self.losses.append(loss)
        if self.on_window and stage.is_last and view.weights // a > version:
            self.on_window(self.losses[view.weights - a : view.weights], rate, end)

    def _send(self, to: int, kind: str, tensor: torch.Tensor) -> None:
        sender = self.senders.get((to, kind))
        if sender is None:
            self._read((to, kind, tensor))
        else:
            sender.send(tensor)

    def _read(self, item) -> None:
        if isinstance(item, tuple):
            stage, kind, tensor = item
            self.mail.put(stage, kind, tensor)
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

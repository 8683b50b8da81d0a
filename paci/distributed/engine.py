"""The event loop of one rank: ask the rule, act, else wait for a message.

          ┌─────────────── inbox ◀── receiver of activations (thread)
          ▼                      ◀── receiver of gradients (thread)
counts ─▶ rule ── action ──▶ Stage ──▶ sender ──▶ other rank
  ▲        │ None                │
  │        └─▶ sleep on inbox    │
  └──────── action has ended ◀───┘
"""

import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

import torch

from paci.distributed.control import Notice
from paci.distributed.device import settle
from paci.distributed.inbox import Inbox, Item, Message
from paci.distributed.transport import Sender
from paci.schedules import Schedule, StageView
from paci.simulation.event_loop import Step
from paci.stage.perform import Mailbox, perform
from paci.stage.safeguards import global_norm
from paci.stage.stage import Batch, Stage

OnWindow = Callable[[list[torch.Tensor], float, float], None]


class Engine:
    """One segment at one rank, which owns `stages`.

    microbatches  the segment's, by their numbers in training; the rule counts them from 0
    inbox         messages from other ranks, and notices, which `on_notice` gets
    senders       {(receiving stage, kind): link}; a message without a link stays at this rank
    on_window     called by the last stage after each update with the window's losses (scalars), the
                  learning rate, and the time (seconds of `time.monotonic`)
    gather        returns the value of every rank, all of which call it alike: at the end of every
                  window if gradients are clipped to their global norm

    `steps` are the actions done so far, in seconds of `time.monotonic`; `waiting` the seconds
    waited, by cause.
    """

    def __init__(
        self,
        rule: Schedule,
        stages: Sequence[Stage],
        microbatches: range,
        inbox: Inbox,
        senders: Mapping[tuple[int, str], Sender],
        on_notice: Callable[[Notice | None], None],
        on_window: OnWindow | None,
        gather: Callable[[dict[int, float]], list[dict[int, float]]],
    ):
        self.rank = rule.rank_of[stages[0].index]
        self.rule = rule
        self.stages = {stage.index: stage for stage in stages}
        self.views = tuple(StageView(stage.index, stage.is_last) for stage in stages)
        self.view_of = {view.index: view for view in self.views}
        self.count = len(microbatches)
        self.first = microbatches.start
        self.inbox = inbox
        self.senders = senders
        self.on_notice = on_notice
        self.gather = gather
        self.on_window = on_window
        self.mail = Mailbox()
        self.steps: list[Step] = []
        self.waiting: defaultdict[str, float] = defaultdict(float)
        self.losses: list[torch.Tensor] = []
        self.at_work: tuple[int | None, int | None] = (None, None)  # stage, micro-batch
        self.together = stages[0].waits_for_update
        self.open = (
            rule.accumulation if self.together else self.count
        )  # micro-batches that may begin
        self._closed: tuple[float, float] | None = None  # rate and end of the last window
        self._admit_inputs()

    def run(self, batches: Sequence[Batch]) -> None:
        """Act until every micro-batch has been through every stage of this rank."""
        inbox, views = self.inbox, self.views

        def batch_of(microbatch: int) -> Batch:
            return batches[microbatch - self.first]

        while True:
            while not inbox.empty():
                self._read(inbox.get())
            action = self.rule.next(views)
            if action is not None:
                self._act(*action, batch_of)
            elif self.together and all(view.weights == self.open for view in views):
                self._update_together()
            elif all(view.weights == self.count for view in views):
                return
            else:
                self._wait()

    @property
    def window_end(self) -> int:
        """The micro-batches up to the end of the window that stage 0, at this rank, has begun."""
        a = self.rule.accumulation
        return max(a, -(-self.view_of[0].forwards // a) * a)

    def _update_together(self) -> None:
        """Update this rank's stages, with the gradients of all stages clipped together, and let the
        next window begin. All ranks have ended this one, or soon will."""
        own = {index: stage.gradient_norm() for index, stage in self.stages.items()}
        norm = global_norm({i: norm for rank in self.gather(own) for i, norm in rank.items()})
        for stage in self.stages.values():
            stage.update(norm)
        self._report_window()
        self.open += self.rule.accumulation
        self._admit_inputs()

    def stop_at(self, count: int) -> None:
        """Begin no micro-batch from `count` on. No rank has begun one of them."""
        self.count = min(self.count, count)
        self.rule = self.rule.truncated(self.count)
        self._admit_inputs()

    def _admit_inputs(self) -> None:
        for view in self.views:
            if self.stages[view.index].is_first:
                view.inputs = min(self.count, self.open)

    def _act(self, view: StageView, kind: str, batch_of: Callable[[int], Batch]) -> None:
        stage, microbatch = self.stages[view.index], view.microbatch(kind)
        self.at_work = stage.index, self.first + microbatch
        a, rate = self.rule.accumulation, stage.learning_rate
        version = view.weights // a
        start = time.monotonic()
        loss = perform(stage, kind, self.first + microbatch, batch_of, self.mail.take, self._send)
        settle(stage.device)  # the rule decides when the device is free
        view.finish(kind)
        end = time.monotonic()
        self.steps.append(Step(self.rank, stage.index, kind, microbatch, start, end, version))
        if loss is not None:
            self.losses.append(loss)
        if stage.is_last and view.weights // a > version:
            self._closed = rate, end
            if not self.together:
                self._report_window()

    def _report_window(self) -> None:
        """Report the window that the last stage has ended, if it is at this rank."""
        if self.on_window and self._closed:
            losses = self.losses[-self.rule.accumulation :]
            self.on_window(losses, *self._closed)
            self._closed = None

    def _send(self, to: int, kind: str, tensor: torch.Tensor) -> None:
        sender = self.senders.get((to, kind))
        if sender is None:
            self._read(Message(to, kind, tensor))
        else:
            sender.send(tensor)

    def _read(self, item: Item) -> None:
        if isinstance(item, Message):
            self.mail.put(*item)
            self.view_of[item.stage].arrive(item.kind)
        else:
            self.on_notice(item)

    def _wait(self) -> None:
        """Sleep until something comes."""
        start, cause = time.monotonic(), self._cause()
        self._read(self.inbox.get())
        self.waiting[cause] += time.monotonic() - start

    def _cause(self) -> str:
        """Return what this rank waits for.

        It is backpressure if an input is here that the rule does not admit yet, and the input if
        one more would let the rule act.
        """
        if any(view.inputs > view.forwards for view in self.views):
            return "backpressure"
        for view in self.views:
            view.inputs += 1
            would_act = self.rule.next(self.views) is not None
            view.inputs -= 1
            if would_act:
                return "input"
        return "gradient"

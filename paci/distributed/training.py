"""One segment of training at one rank: what surrounds its `Engine`.

senders, receivers ─▶ engine ─▶ statistics of all ranks ─▶ drained links ─▶ Segment
                        ▲
             notices: a rank has failed, stop early
"""

import time
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import Any

import torch
import torch.distributed as dist

from paci.distributed.control import ControlChannel, Notice
from paci.distributed.engine import Engine
from paci.distributed.failure import RankFailed
from paci.distributed.links import Links, Specs, drain
from paci.distributed.prefetch import batches_for
from paci.distributed.rank_group import RankGroup
from paci.distributed.statistics import RankStatistics, segment_of
from paci.distributed.transport import link_errors
from paci.schedules import Schedule
from paci.segment import Batch, Segment, Update


class Training:
    """Segment `number` of this pipeline, of `count` micro-batches of which the first has the
    number `first` in training.

    `clock_offset` is added to this rank's clock to give the one that all ranks share. `on_update`
    is called at the rank of the last stage; earlier segments took `seconds`. Afterwards
    `count` is the micro-batches done, `seconds` what they took from the first rank's start to the
    last rank's end, and `interrupted` whether the segment ended early.
    """

    def __init__(
        self,
        number: int,
        rule: Schedule,
        count: int,
        first: int,
        ranks: RankGroup,
        links: Links,
        specs: Specs,
        control: ControlChannel,
        inbox: "SimpleQueue[Any]",
        clock_offset: float,
        on_update: Callable[[Update], None] | None,
        seconds: float,
    ):
        self.number = number
        self.count = count
        self.interrupted = False
        self.seconds = 0.0
        self._on_update, self._seconds_before = on_update, seconds
        self._ranks, self._links, self._control = ranks, links, control
        self._offset = clock_offset
        self._senders = links.senders(specs)
        self._receivers = links.receivers(specs, count, inbox)
        self.engine = Engine(
            ranks.rank, rule, links.stages, count, first, inbox, self._senders, self._on_notice,
            self._report_window if on_update else None,
        )  # fmt: skip

    def run(self, batches: Sequence[Batch]) -> Segment | None:
        """Train on `batches`; return what all ranks did at the rank of the last stage, elsewhere
        None."""
        self._started = time.monotonic()
        self.engine.run(batches_for(self._links.stages, batches))
        own = RankStatistics.of(self.engine, self._started, self._offset, self.interrupted)
        everyones = self._ranks.gather(own)
        self._drain()
        origin = min(statistics.started for statistics in everyones)
        self.seconds = max(statistics.ended for statistics in everyones) - origin
        self.interrupted = any(statistics.interrupted for statistics in everyones)
        steps = self._gather_steps(self._offset - origin)
        if steps is None:
            return None
        losses = torch.stack(self.engine.losses).tolist()
        return segment_of(everyones, steps, losses, self.engine.rule.accumulation)

    def _report_window(self, losses: list[torch.Tensor], rate: float, end: float) -> None:
        assert self._on_update is not None
        version = self._links.stages[-1].versions.version
        seconds = self._seconds_before + end - self._started
        self._on_update(Update(version, torch.stack(losses).mean().item(), rate, seconds))

    def _drain(self) -> None:
        """Empty the links, also of what was posted for micro-batches that never began."""
        planned, self.count = self.count, self.engine.count
        for receiver in self._receivers.values():
            receiver.stop_after(self.count)
        self._ranks.gather(None)  # now the receivers of all ranks know where the segment ends
        drain(self._senders.values(), self._receivers.values(), skipped=planned - self.count)

    def _gather_steps(self, shift: float) -> list[Any] | None:
        """Return the steps of all ranks, `shift` seconds later than on this rank's clock, at the
        rank of the last stage."""
        own = [s._replace(start=s.start + shift, end=s.end + shift) for s in self.engine.steps]
        reporter = self._links.rank_of[-1]
        everyones: list[Any] | None = None
        if reporter == self._ranks.rank:
            everyones = [None] * self._ranks.size
        with link_errors(None):
            dist.gather_object(own, everyones, reporter, group=self._ranks.process_group)
        return everyones and [step for steps in everyones for step in steps]

    def _on_notice(self, notice: Notice | None) -> None:
        """Obey the control channel.

        {"failed": ...}       raises `RankFailed`, and so does None: the channel is gone
        {"interrupt": rank}   is answered, by the rank of stage 0, with
        {"stop": micro-batches, "segment": its number}, which every rank obeys
        """
        failure = RankFailed.of_notice(notice)
        if failure is not None:
            raise failure
        assert notice is not None
        holds_first_stage = self._links.rank_of[0] == self._ranks.rank
        if "interrupt" in notice and holds_first_stage and not self.interrupted:
            notice = {"stop": self.engine.window_end, "segment": self.number}
            self._control.post(notice)
        if notice.get("segment") == self.number:
            self.interrupted = True
            self.engine.stop_at(notice["stop"])

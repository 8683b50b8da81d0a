"""One segment of training at one rank, around its `Engine`: links, notices, statistics, result.

senders, receivers ─▶ engine ─▶ drained links ─▶ statistics of all ranks ─▶ Segment
                        ▲
             notices: a rank has failed, stop early
"""

import time
from collections.abc import Callable, Sequence
from itertools import chain
from operator import attrgetter
from typing import Any

import torch
import torch.distributed as dist

from paci.distributed.connections import Connections
from paci.distributed.control import Notice
from paci.distributed.device import device_memory
from paci.distributed.engine import Engine
from paci.distributed.failure import RankFailed
from paci.distributed.links import Specs, drain
from paci.distributed.prefetch import batches_for
from paci.distributed.transport import link_errors
from paci.schedules import Schedule
from paci.segment import RankStatistics, Segment, StageStatistics, Update
from paci.simulation.event_loop import Step
from paci.simulation.timeline import Timeline
from paci.stage.stage import Batch

RankReport = tuple[RankStatistics, list[StageStatistics], list[Step]]


class Training:
    """Segment `number` of a pipeline, which trains on `microbatches`, by their numbers in training.

    `on_update` is called at the rank of the last stage; earlier segments took `seconds`. Afterwards
    `count` is the micro-batches done, `seconds` what they took from the first rank's start to the
    last rank's end, and `interrupted` whether the segment ended early.
    """

    def __init__(
        self,
        number: int,
        rule: Schedule,
        microbatches: range,
        specs: Specs,
        connections: Connections,
        on_update: Callable[[Update], None] | None,
        seconds: float,
    ):
        self.number = number
        self.count = len(microbatches)
        self.interrupted = False
        self.seconds = 0.0
        self._on_update, self._seconds_before = on_update, seconds
        self._ranks, self._links, self._control, inbox, self._offset = connections
        self._senders = self._links.senders(specs)
        self._receivers = self._links.receivers(specs, self.count, inbox)
        self.engine = Engine(
            rule, self._links.stages, microbatches, inbox, self._senders, self._on_notice,
            self._report_window if on_update else None, self._ranks.gather,
        )  # fmt: skip

    def run(self, batches: Sequence[Batch]) -> Segment | None:
        """Train on `batches`; return what all ranks did at the rank of the last stage, elsewhere
        None."""
        self._started = time.monotonic()
        self.engine.run(batches_for(self._links.stages, batches))
        ended = self.engine.steps[-1].end
        own = self._started + self._offset, ended + self._offset, self.interrupted
        starts, ends, interrupted = zip(*self._ranks.gather(own), strict=True)
        self._drain()
        origin = min(starts)
        self.seconds = max(ends) - origin
        self.interrupted = any(interrupted)
        reports = self._gather_reports(self._offset - origin)
        if reports is None:
            return None
        ranks, stages, steps = zip(*reports, strict=True)
        return Segment(
            torch.stack(self.engine.losses).tolist(),
            sorted(chain(*stages), key=attrgetter("index")),
            Timeline(list(chain(*steps)), len(ranks), self.engine.rule.accumulation),
            list(ranks),
            self.interrupted,
        )

    def _report_window(self, losses: list[torch.Tensor], rate: float, end: float) -> None:
        assert self._on_update is not None
        last = self._links.stages[-1]
        seconds = self._seconds_before + end - self._started
        update = Update(last.versions.version, last.window_loss(losses), rate, seconds)
        self._on_update(update)

    def _drain(self) -> None:
        """Empty the links, also of what was posted for micro-batches that never began."""
        planned, self.count = self.count, self.engine.count
        for receiver in self._receivers.values():
            receiver.stop_after(self.count)
        self._ranks.gather(None)  # now the receivers of all ranks know where the segment ends
        drain(self._senders.values(), self._receivers.values(), skipped=planned - self.count)

    def _gather_reports(self, shift: float) -> list[RankReport] | None:
        """Return what every rank did, at the rank of the last stage, elsewhere None. Steps are
        `shift` seconds later than on the clock of their rank."""
        memory = device_memory(self._links.stages[0].device)
        own = (
            RankStatistics(dict(self.engine.waiting), memory),
            [StageStatistics.of(stage) for stage in self._links.stages],
            [s._replace(start=s.start + shift, end=s.end + shift) for s in self.engine.steps],
        )
        reporter = self._links.rank_of[-1]
        everyones: list[Any] | None = None
        if reporter == self._ranks.rank:
            everyones = [None] * self._ranks.size
        with link_errors(None):
            dist.gather_object(own, everyones, reporter, group=self._ranks.process_group)
        return everyones

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

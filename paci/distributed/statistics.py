"""What one rank has noted of a segment, and how the segment comes together from all ranks."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from paci.distributed.engine import Engine
from paci.segment import Segment, StageStatistics
from paci.simulation.event_loop import Step
from paci.simulation.timeline import Timeline


@dataclass(frozen=True)
class RankStatistics:
    """Those of one rank; see `Segment`. Times are seconds of a clock that all ranks share."""

    started: float
    ended: float
    interrupted: bool
    waiting: dict[str, float]
    allocated: int | None
    stages: list[StageStatistics]

    @classmethod
    def of(
        cls, engine: Engine, started: float, offset: float, interrupted: bool
    ) -> "RankStatistics":
        """`offset` is added to this rank's clock to give the common one."""
        stages = list(engine.stages.values())
        device = stages[0].device
        return cls(
            started=started + offset,
            ended=engine.steps[-1].end + offset,
            interrupted=interrupted,
            waiting=dict(engine.waiting),
            allocated=torch.cuda.max_memory_allocated(device) if device.type == "cuda" else None,
            stages=list(map(StageStatistics.of, stages)),
        )


def segment_of(
    ranks: Sequence[RankStatistics], steps: Sequence[Step], losses: list[float], accumulation: int
) -> Segment:
    """The segment of all `ranks`, whose actions are `steps`."""
    allocated = [books.allocated for books in ranks]
    return Segment.of(
        (stage for books in ranks for stage in books.stages),
        losses,
        Timeline(steps, len(ranks), accumulation),
        waiting=[books.waiting for books in ranks],
        allocated=None if None in allocated else allocated,
        interrupted=any(books.interrupted for books in ranks),
    )

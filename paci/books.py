"""What one rank has noted of a segment, and how the segment comes together from all ranks."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from paci.clock import Step
from paci.engine import Engine
from paci.segment import Segment, StageBooks
from paci.timeline import Timeline


@dataclass(frozen=True)
class Books:
    """Those of one rank; see `Segment`. Times are seconds of a clock that all ranks share."""

    started: float
    ended: float
    interrupted: bool
    waiting: dict[str, float]
    allocated: int | None
    stages: list[StageBooks]

    @classmethod
    def of(cls, engine: Engine, started: float, offset: float, interrupted: bool) -> "Books":
        """`offset` is added to this rank's clock to give the common one."""
        stages = list(engine.stages.values())
        device = stages[0].device
        return cls(
            started=started + offset,
            ended=engine.steps[-1].end + offset,
            interrupted=interrupted,
            waiting=dict(engine.waiting),
            allocated=torch.cuda.max_memory_allocated(device) if device.type == "cuda" else None,
            stages=list(map(StageBooks.of, stages)),
        )


def segment_of(
    ranks: Sequence[Books], steps: Sequence[Step], losses: list[float], accumulation: int
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

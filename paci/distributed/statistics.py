"""The statistics of one rank, and how the segment comes together from those of all ranks."""

from collections.abc import Sequence
from dataclasses import dataclass

from paci.distributed.device import device_memory
from paci.distributed.engine import Engine
from paci.segment import DeviceMemory, Segment, StageStatistics
from paci.simulation.event_loop import Step
from paci.simulation.timeline import Timeline


@dataclass(frozen=True)
class RankStatistics:
    """What one rank has noted of a segment; see `Segment`. `started` and `ended` are seconds of a
    clock that all ranks share."""

    started: float
    ended: float
    interrupted: bool
    waiting: dict[str, float]
    memory: DeviceMemory | None
    stages: list[StageStatistics]

    @classmethod
    def of(
        cls, engine: Engine, started: float, offset: float, interrupted: bool
    ) -> "RankStatistics":
        """Return those of a rank whose clock the `offset` turns into the common one."""
        stages = list(engine.stages.values())
        return cls(
            started=started + offset,
            ended=engine.steps[-1].end + offset,
            interrupted=interrupted,
            waiting=dict(engine.waiting),
            memory=device_memory(stages[0].device),
            stages=[StageStatistics.of(stage) for stage in stages],
        )


def segment_of(
    ranks: Sequence[RankStatistics], steps: Sequence[Step], losses: list[float], accumulation: int
) -> Segment:
    """Return the segment of all `ranks`, whose actions are `steps`."""
    memory = [rank.memory for rank in ranks if rank.memory]
    return Segment.of(
        (stage for rank in ranks for stage in rank.stages),
        losses,
        Timeline(steps, len(ranks), accumulation),
        waiting=[rank.waiting for rank in ranks],
        device_memory=memory or None,
        interrupted=any(rank.interrupted for rank in ranks),
    )

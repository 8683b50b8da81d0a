"""The results of one `train`, on whichever executor."""

from collections import Counter
from dataclasses import dataclass
from typing import NamedTuple

from paci.simulation.timeline import Timeline
from paci.stage.memory import MemoryUsage
from paci.stage.stage import Stage
from paci.stage.version_tracker import Movement


@dataclass(frozen=True)
class StageStatistics:
    """The statistics of one stage in a segment.

    drift            histogram {updates between forward and backward: micro-batches}
    staleness        histogram {updates between forward and the update that uses it: micro-batches}
    movements        samples of how far the weights moved between forward and backward
    peak_in_flight   micro-batches
    peak_held        most bytes held beside the parameters: activations, parameter copies,
                     gradients, optimizer state
    parameter_bytes  of the parameters that actions see
    copied           the share of the parameters of which a graph keeps a copy, as under autocast:
                     for them a backward sees the weights of its forward, whatever the policy says
    skipped          updates left out, as (update, what was not finite)
    """

    index: int
    drift: Counter[int]
    staleness: Counter[int]
    movements: list[Movement]
    peak_in_flight: int
    peak_held: MemoryUsage
    parameter_bytes: int
    copied: float
    skipped: list[tuple[int, str]]

    @classmethod
    def of(cls, stage: Stage) -> "StageStatistics":
        """Return the statistics of the segment that `stage` has just done."""
        versions = stage.versions
        return cls(
            stage.index, versions.drift, versions.staleness, versions.movements,
            versions.peak_in_flight, stage.saved.peak,
            sum(parameter.nbytes for parameter in stage.computation.parameters),
            stage.copied, stage.guard.skipped,
        )  # fmt: skip


@dataclass(frozen=True)
class DeviceMemory:
    """Bytes of a rank's CUDA device in a segment.

    allocated  peak of what PyTorch's allocator had given out to tensors
    reserved   peak of what that allocator had taken from the device, cached blocks included
    used       taken from the device at the end of the segment, by all processes together: the
               context, NCCL's buffers and cached blocks included, as nvidia-smi shows it
    """

    allocated: int
    reserved: int
    used: int


@dataclass(frozen=True)
class RankStatistics:
    """The statistics of one rank of a distributed pipeline in a segment.

    waiting   seconds that it waited, by cause: an "input", a "gradient", or "backpressure", an
              input that the schedule does not admit yet
    memory    of its device; None without CUDA
    """

    waiting: dict[str, float]
    memory: DeviceMemory | None


@dataclass(frozen=True)
class Segment:
    """The results of one `train`, from a filled to a drained pipeline.

    losses        the loss of each micro-batch, in their order, not scaled
    stages        statistics of the stages, in order
    timeline      every action, on the executor's clock
    ranks         statistics of the ranks, in order, if each has a process of its own; else None
    interrupted   whether it ended early, after a whole window, because it was asked to
    """

    losses: list[float]
    stages: list[StageStatistics]
    timeline: Timeline
    ranks: list[RankStatistics] | None = None
    interrupted: bool = False

    def __repr__(self) -> str:
        if not self.losses:
            return "<Segment of no micro-batch>"
        mean = sum(self.losses) / len(self.losses)
        unit = "seconds" if self.ranks else "units of simulated time"
        return (
            f"<Segment of {len(self.losses)} micro-batches: mean loss {mean:.4g}, "
            f"{self.seconds:.4g} {unit}>"
        )

    @property
    def seconds(self) -> float:
        """The makespan, on the executor's clock: the wall's, or a simulated one (the time that the
        pipeline would have taken at the given cost)."""
        return self.timeline.makespan

    @property
    def drift(self) -> list[Counter[int]]:
        """The histogram of drift of each stage."""
        return [stage.drift for stage in self.stages]


class Update(NamedTuple):
    """One update of all stages.

    number          counts from 1
    loss            mean over the window's sequences
    learning_rate   the optimizer's rate in this update; the highest, if stages differ
    seconds         time at which the last of the stages had made it, on the executor's clock
    """

    number: int
    loss: float
    learning_rate: float
    seconds: float

"""What one `train` leaves, on whichever executor."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from operator import attrgetter
from typing import NamedTuple

import torch

from paci.simulation.timeline import Timeline
from paci.stage.memory import MemoryUsage
from paci.stage.stage import Stage
from paci.stage.version_tracker import Movement

Batch = tuple[torch.Tensor, torch.Tensor]


class DeviceMemory(NamedTuple):
    """Bytes of a rank's CUDA device in a segment.

    allocated  peak of what PyTorch's allocator had given out to tensors
    reserved   peak of what that allocator had taken from the device, cached blocks included
    used       taken from the device at the end of the segment, by all processes together: the
               context, NCCL's buffers and cached blocks included, as nvidia-smi shows it
    """

    allocated: int
    reserved: int
    used: int


class StageStatistics(NamedTuple):
    """What stage `index` has noted of a segment; see `Segment`."""

    index: int
    drift: Counter[int]
    staleness: Counter[int]
    movements: list[Movement]
    peak_in_flight: int
    peak_held: MemoryUsage

    @classmethod
    def of(cls, stage: Stage) -> "StageStatistics":
        ledger = stage.versions
        return cls(
            stage.index, ledger.drift, ledger.staleness, ledger.movements,
            ledger.peak_in_flight, stage.saved.peak,
        )  # fmt: skip


@dataclass(frozen=True)
class Segment:
    """What one `train` did, from a filled to a drained pipeline; lists of lists are per stage.

    losses           of each micro-batch, in their order, not scaled
    drift            histogram {updates between forward and backward: micro-batches}
    staleness        histogram {updates between forward and the update that uses it: micro-batches}
    movements        samples of how far the weights moved between forward and backward
    peak_in_flight   micro-batches
    peak_held        most bytes held beside the parameters: activations, parameter copies,
                     gradients, optimizer state
    timeline         every action, on the executor's clock
    waiting          seconds that each rank waited, by cause: an "input", a "gradient", or
                     "backpressure", an input that the schedule does not admit yet (wall clock only)
    device_memory    bytes of each rank's device (CUDA only, and only where every rank has a process
                     of its own)
    interrupted      whether it ended early, after a whole window, because it was asked to
    """

    losses: list[float]
    drift: list[Counter[int]]
    staleness: list[Counter[int]]
    movements: list[list[Movement]]
    peak_in_flight: list[int]
    peak_held: list[MemoryUsage]
    timeline: Timeline
    waiting: list[dict[str, float]] | None = None
    device_memory: list[DeviceMemory] | None = None
    interrupted: bool = False

    @classmethod
    def of(
        cls, stages: Iterable[StageStatistics], losses: list[float], timeline: Timeline, **of_ranks
    ) -> "Segment":
        """Of the books of all stages, in any order; `of_ranks` are the last fields."""
        by_stage = zip(*sorted(stages, key=attrgetter("index")), strict=True)
        _, drift, staleness, movements, peak_in_flight, peak_held = map(list, by_stage)
        return cls(
            losses, drift, staleness, movements, peak_in_flight, peak_held, timeline, **of_ranks
        )

    def __repr__(self) -> str:
        if not self.losses:
            return "<Segment of no micro-batch>"
        mean = sum(self.losses) / len(self.losses)
        return (
            f"<Segment of {len(self.losses)} micro-batches: mean loss {mean:.4g}, "
            f"{self.seconds:.4g} seconds>"
        )

    @property
    def seconds(self) -> float:
        """On the executor's clock: simulated, what the pipeline would have taken at the given
        cost; or the wall's."""
        return self.timeline.makespan


class Update(NamedTuple):
    """One update of all stages: its number from 1, the mean loss of its window, the learning rate
    it was made with (the highest, if stages differ), and when the last stage to make it had made
    it, on the executor's clock."""

    number: int
    loss: float
    learning_rate: float
    seconds: float

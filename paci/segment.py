"""What one `train` leaves, on whichever executor; and how it comes together from many ranks."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch

from paci.clock import Step
from paci.engine import Engine
from paci.ledger import Movement
from paci.memory import Held
from paci.timeline import Timeline

Batch = tuple[torch.Tensor, torch.Tensor]


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
    allocated        most bytes of each rank's device that its allocator had given out (CUDA only,
                     and only where every rank has a process of its own)
    interrupted      whether it ended early, after a whole window, because it was asked to
    """

    losses: list[float]
    drift: list[Counter[int]]
    staleness: list[Counter[int]]
    movements: list[list[Movement]]
    peak_in_flight: list[int]
    peak_held: list[Held]
    timeline: Timeline
    waiting: list[dict[str, float]] | None = None
    allocated: list[int] | None = None
    interrupted: bool = False

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


@dataclass(frozen=True)
class Books:
    """What one rank has noted of a segment; see `Segment`. Times are seconds of one clock."""

    started: float
    ended: float
    interrupted: bool
    waiting: dict[str, float]
    allocated: int | None
    stages: list[tuple[int, Counter[int], Counter[int], list[Movement], int, Held]]

    @classmethod
    def of(cls, engine: Engine, started: float, offset: float, interrupted: bool) -> "Books":
        """`offset` is added to this rank's clock to give the common one."""
        device = next(iter(engine.stages.values())).device
        return cls(
            started=started + offset,
            ended=engine.steps[-1][5] + offset,
            interrupted=interrupted,
            waiting=dict(engine.waiting),
            allocated=torch.cuda.max_memory_allocated(device) if device.type == "cuda" else None,
            stages=[
                (
                    stage.index, stage.ledger.drift, stage.ledger.staleness,
                    stage.ledger.movements, stage.ledger.peak_in_flight, stage.saved.peak,
                )
                for stage in engine.stages.values()
            ],
        )  # fmt: skip


def segment_of(
    ranks: Sequence[Books], steps: Sequence[Step], losses: list[float], accumulation: int
) -> Segment:
    """The segment of all `ranks`, whose actions are `steps`."""
    stages = sorted((stage for books in ranks for stage in books.stages), key=lambda s: s[0])
    _, drift, staleness, movements, peak_in_flight, peak_held = map(list, zip(*stages, strict=True))
    allocated = [books.allocated for books in ranks]
    return Segment(
        losses=losses,
        drift=drift,
        staleness=staleness,
        movements=movements,
        peak_in_flight=peak_in_flight,
        peak_held=peak_held,
        timeline=Timeline(steps, len(ranks), accumulation),
        waiting=[books.waiting for books in ranks],
        allocated=None if None in allocated else allocated,
        interrupted=any(books.interrupted for books in ranks),
    )

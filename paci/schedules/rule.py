"""The interface of a schedule: a rule that picks a rank's next action from what the rank sees.

                     inputs ─▶ ┌───────────┐ ─▶ next stage
                               │  stage i  │
             previous stage ◀─ └───────────┘ ◀─ gradients

For each of its stages a rank sees how many activations and gradients have arrived and how many
forwards and backwards have finished. Links deliver in order and stages work in order, so these
counts are the whole state: the next forward of a stage is that of micro-batch `forwards`.

The executors (`paci.simulate`, `LocalPipeline`, `DistributedPipeline`) keep the counts and call
the rule; a rule keeps no state.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable

from paci.actions import FORWARD, INPUT_GRADIENT, WEIGHT_GRADIENT
from paci.checks import positive
from paci.schedules import theory


class StageView:
    """The counts of micro-batches that a rank keeps for one of its stages, each starting at 0."""

    __slots__ = ("backwards", "forwards", "gradients", "index", "inputs", "is_last", "weights")

    def __init__(self, index: int, is_last: bool = False):
        self.index = index
        self.is_last = is_last
        self.inputs = 0  # activations (at the first stage: data) that have arrived
        self.gradients = 0  # gradients (at the last stage: losses) that have arrived
        self.forwards = 0  # finished forwards
        self.backwards = 0  # finished gradients of the input (B or I)
        self.weights = 0  # finished gradients of the weights (B or W)

    @property
    def in_flight(self) -> int:
        """Micro-batches between their forward and the end of their backward."""
        return self.forwards - self.weights

    def microbatch(self, kind: str) -> int:
        """Return the micro-batch of the next action of `kind`."""
        if kind == FORWARD:
            return self.forwards
        return self.weights if kind == WEIGHT_GRADIENT else self.backwards

    def finish(self, kind: str) -> None:
        """Count an action of `kind` that has ended."""
        if kind == FORWARD:
            self.forwards += 1
            if self.is_last:
                self.gradients += 1  # the loss: its backward needs no message
            return
        if kind != WEIGHT_GRADIENT:
            self.backwards += 1
        if kind != INPUT_GRADIENT:
            self.weights += 1

    def arrive(self, kind: str) -> None:
        """Count a message that a neighbour's action of `kind` has sent to this stage."""
        if kind == FORWARD:
            self.inputs += 1
        else:
            self.gradients += 1


Choice = tuple[StageView, str] | None


class Schedule(ABC):
    """A rule for `stages` stages, each of which updates after every `accumulation` micro-batches.

    A *window* is the micro-batches whose gradients are accumulated for one optimizer step.

    placement        `placement[rank]` is the stages of that rank; by default rank i has stage i
    stages_per_rank  the number of them, where no option sets another
    flushes          whether every window starts as in a drained pipeline (see `window_is_open`)
    slack            forwards that a stage admits beyond those that fill the pipeline
    """

    name: str
    default_accumulation = 4
    stages_per_rank = 1
    flushes = True
    slack = 0

    def __init__(self, stages: int, accumulation: int | None = None):
        self.stages = positive("stages", stages)
        self.accumulation = self.window(accumulation)
        self.placement: tuple[tuple[int, ...], ...] = tuple((i,) for i in range(stages))

    @classmethod
    def window(cls, accumulation: int | None) -> int:
        """Return the micro-batches of a window: `accumulation`, or the default if it is None.

        Raises ValueError unless it is a whole number of at least 1.
        """
        given = cls.default_accumulation if accumulation is None else accumulation
        return positive("accumulation", given)

    @property
    def rank_of(self) -> list[int]:
        """The rank of each stage: the inverse of `placement`."""
        ranks = ((stage, rank) for rank, own in enumerate(self.placement) for stage in own)
        return [rank for _, rank in sorted(ranks)]

    @abstractmethod
    def next(self, stages: tuple[StageView, ...]) -> Choice:
        """Return the stage and the kind of this rank's next action, or None to wait for a message.

        `stages` are the views of the rank's stages, in the order of `placement[rank]`.
        """

    def truncated(self, microbatches: int) -> "Schedule":
        """Return the rule for the first `microbatches` only: itself, unless its order is written
        down."""
        return self

    def in_flight_limit(self, stage: int) -> int:
        """Return the micro-batches in flight at `stage` that fill the pipeline, N - i, or the limit
        that the rule sets instead."""
        return theory.in_flight_bound(self.stages, stage)

    def drift_bound(self, stage: int) -> int:
        """Return the most updates of `stage` between a micro-batch's forward and its backward."""
        return 0

    def window_is_open(self, stage: StageView) -> bool:
        """Return whether the stage's next forward belongs to the window that it is accumulating.

        Flush schedules start no forward of window k+1 at a stage before that stage's update k.
        Since every stage does so, none sees weights that a drained pipeline would not show it.
        """
        a = self.accumulation
        return stage.forwards // a == stage.weights // a


def if_ready(stage: StageView, kind: str) -> Choice:
    """Return the next action of `kind` at `stage` if its input is here, else None."""
    if kind == FORWARD:
        ready = stage.inputs > stage.forwards
    elif kind == WEIGHT_GRADIENT:
        ready = stage.backwards > stage.weights
    else:
        ready = stage.gradients > stage.backwards
    return (stage, kind) if ready else None


def progress(stages: Iterable[StageView]) -> int:
    """Return a count that grows with every action of a rank: a full backward counts as two."""
    done = 0
    for stage in stages:
        done += stage.forwards + stage.backwards + stage.weights
    return done

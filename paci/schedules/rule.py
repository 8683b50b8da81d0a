"""A schedule is a rule: what does a rank do next, given only what it can see itself?

                     inputs ─▶ ┌───────────┐ ─▶ next stage
                               │  stage i  │
             previous stage ◀─ └───────────┘ ◀─ gradients

A rank sees, of each of its stages, how many activations and gradients have arrived and how many
forwards and backwards it has finished. Links deliver in order and stages work in order, so counts
are all there is to know: the next forward of a stage is that of micro-batch `forwards`.

The executors (`paci.simulate`, `LocalPipeline`, `DistributedPipeline`) keep the counts and ask
the rule; a rule keeps no state.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable

from paci.actions import FORWARD, INPUT_GRADIENT, WEIGHT_GRADIENT
from paci.checks import positive


class StageView:
    """What a rank sees of one of its stages: counts of micro-batches, each starting at 0.

    At the last stage a gradient is there as soon as the loss is.
    """

    __slots__ = ("backwards", "forwards", "gradients", "index", "inputs", "is_last", "weights")

    def __init__(self, index: int, is_last: bool = False):
        self.index = index
        self.is_last = is_last
        self.inputs = 0  # activations (or, at the first stage, data) that have arrived
        self.gradients = 0  # gradients (or, at the last stage, losses) that have arrived
        self.forwards = 0  # finished forwards
        self.backwards = 0  # finished backwards, as far as the previous stage is concerned (B, I)
        self.weights = 0  # finished backwards, as far as the weights are concerned (B, W)

    @property
    def in_flight(self) -> int:
        """Micro-batches between their forward and the end of their backward."""
        return self.forwards - self.weights

    def microbatch(self, kind: str) -> int:
        """That of the next action of `kind`."""
        if kind == FORWARD:
            return self.forwards
        return self.weights if kind == WEIGHT_GRADIENT else self.backwards

    def finish(self, kind: str) -> None:
        """An action of `kind` has ended."""
        if kind == FORWARD:
            self.forwards += 1
            if self.is_last:
                self.gradients += 1
            return
        if kind != WEIGHT_GRADIENT:
            self.backwards += 1
        if kind != INPUT_GRADIENT:
            self.weights += 1

    def arrive(self, kind: str) -> None:
        """What another stage's action of `kind` sends is here."""
        if kind == FORWARD:
            self.inputs += 1
        else:
            self.gradients += 1


Choice = tuple[StageView, str] | None


class Schedule(ABC):
    """A rule for `stages` stages that update after every `accumulation` micro-batches.

    `placement[rank]` names the stages of that rank, `stages_per_rank` of them; here one each, in
    order. `flushes` says whether every window begins as in a drained pipeline (see
    `window_is_open`), `slack` how many more forwards a stage admits than fill the pipeline.
    """

    name: str
    default_accumulation = 4
    stages_per_rank = 1
    flushes = True
    slack = 0

    def __init__(self, stages: int, accumulation: int | None = None):
        if accumulation is None:
            accumulation = self.default_accumulation
        self.stages = positive("stages", stages)
        self.accumulation = positive("accumulation", accumulation)
        self.placement: tuple[tuple[int, ...], ...] = tuple((i,) for i in range(stages))

    @property
    def rank_of(self) -> list[int]:
        """The rank of each stage: `placement`, the other way round."""
        ranks = ((stage, rank) for rank, own in enumerate(self.placement) for stage in own)
        return [rank for _, rank in sorted(ranks)]

    @abstractmethod
    def next(self, stages: tuple[StageView, ...]) -> Choice:
        """The stage and the kind of this rank's next action, or None to wait for a message."""

    def up_to(self, microbatches: int) -> "Schedule":
        """The rule for the first `microbatches` only; one that goes by counts is good for any."""
        return self

    def window_is_open(self, stage: StageView) -> bool:
        """Whether the next forward belongs to the window that the stage is accumulating.

        Flush schedules start no forward of window k+1 before their own update k. Gated so at
        every stage, no stage can see a weight that a drained pipeline would not have shown it.
        """
        a = self.accumulation
        return stage.forwards // a == stage.weights // a


def if_ready(stage: StageView, kind: str) -> Choice:
    """The next action of `kind` of a stage: now if what it needs is here, else wait."""
    if kind == FORWARD:
        ready = stage.inputs > stage.forwards
    elif kind == WEIGHT_GRADIENT:
        ready = stage.backwards > stage.weights
    else:
        ready = stage.gradients > stage.backwards
    return (stage, kind) if ready else None


def progress(stages: Iterable[StageView]) -> int:
    """Grows with every action of a rank (by two with a whole backward), so it says where in a
    fixed order the rank is."""
    done = 0
    for stage in stages:
        done += stage.forwards + stage.backwards + stage.weights
    return done

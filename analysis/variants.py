"""What a run's method is called in tables, and how far its weights may drift."""

from dataclasses import dataclass

from paci.method import label
from paci.schedules import SCHEDULES, theory
from paci.simulation.traits import VERSIONED


@dataclass(frozen=True, order=True)
class Variant:
    """A method with the numbers that tell it from its siblings: one line of a table."""

    method: str
    schedule: str
    accumulation: int
    slack: int
    weights: str
    stages: int
    options: str = ""  # the schedule's own, "stages_per_rank=2"

    @property
    def asynchronous(self) -> bool:
        """Whether a stage updates while micro-batches are in flight through it."""
        return not SCHEDULES[self.schedule].flushes

    @property
    def is_flush(self) -> bool:
        """The baseline of every comparison."""
        return self.method == "1f1b-flush"

    @property
    def is_paci(self) -> bool:
        """One copy of the weights, of which backwards see the newest; whatever the slack."""
        return self.method == "paci" and self.weights == "live"

    @property
    def label(self) -> str:
        flushes = not self.asynchronous
        return label(
            self.method, flushes, self.accumulation, self.slack, self.weights, self.options
        )

    def drift_bound(self, stage: int) -> int:
        """Most versions between the weights that a micro-batch's forward and its backward see, at
        a stage counted from 0."""
        return 0 if self.weights in VERSIONED else self._updates_between(stage)

    def _updates_between(self, stage: int) -> int:
        """Most updates between a micro-batch's forward and its backward, whatever they see."""
        if not self.asynchronous:
            return 0
        return theory.drift_bound(self.stages, stage, self.accumulation, self.slack)

    @property
    def max_drift(self) -> int:
        """Δmax, the bound of the first stage."""
        return self.drift_bound(0)

    @property
    def is_mild_paci(self) -> bool:
        """PACI with the drift that the paper's claims are about."""
        return self.is_paci and 1 <= self.max_drift <= 2

    @property
    def order(self) -> tuple:
        """Sort key of every table and legend: flush first, then the least delay first."""
        return self.asynchronous, self._updates_between(0), -self.accumulation, self.label

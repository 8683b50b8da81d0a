"""A method at a number of stages: what the comparisons of the paper tell apart."""

from dataclasses import dataclass, field

from paci.method import Method


@dataclass(frozen=True)
class Variant(Method):
    """A method in a pipeline of `stages` stages: one line of a table."""

    stages: int = field(kw_only=True)

    @property
    def asynchronous(self) -> bool:
        """Whether a stage updates while micro-batches are in flight through it."""
        return not self.flushes

    @property
    def is_flush(self) -> bool:
        """Whether this is the baseline of every comparison."""
        return self.name == "1f1b-flush"

    @property
    def is_paci(self) -> bool:
        """Whether there is one copy of the weights and backwards see the newest, at any slack."""
        return self.name == "paci" and self.weights == "live"

    @property
    def in_paper(self) -> bool:
        """Whether the paper trains this method."""
        return self.is_flush or self.is_paci

    @property
    def max_drift(self) -> int:
        """Δmax, the drift bound of the first stage."""
        return self.drift_bound(0)

    @property
    def is_mild_paci(self) -> bool:
        """Whether this is PACI with the drift that the paper's claims are about."""
        return self.is_paci and 1 <= self.max_drift <= 2

    @property
    def order(self) -> tuple[bool, int, int, str]:
        """The sort key of every table and legend: flush first, then the least delay first."""
        delay = self.updates_between(self.stages, 0)
        return self.asynchronous, delay, -self.accumulation, self.label

    def __lt__(self, other: "Variant") -> bool:
        return self.order < other.order

    def drift_bound(self, stage: int) -> int:
        """Return the most versions between the weights that a micro-batch's forward and its
        backward see at `stage`, which counts from 0."""
        return self.drift_bound_at(self.stages, stage)

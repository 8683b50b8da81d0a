"""The books of one stage's weight versions: how old is what a micro-batch meets?

    version         0 ─────── 1 ─────── 2 ─────── 3      (updates of this stage)
    micro-batch 5        F ───────────────── B    ▲
                         └── drift Δ = 2 ────┘    │ its gradient becomes part of update 3,
                         └── staleness = 2 ───────┘ which changes version 2 into 3

The two are the same where a backward sees live weights; where it sees those of its forward, drift
is 0 and staleness stays.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Movement:
    """How far a stage's weights really moved between a micro-batch's forward and its backward.

    `relative` is ‖w_backward - w_forward‖ / ‖w_forward‖ over all parameters of the stage: drift
    says how many updates came in between, this says how much they did.
    """

    update: int
    microbatch: int
    drift: int
    relative: float


class Ledger:
    """Versions seen by each micro-batch of one stage.

    `version` counts the stage's updates; `drift` and `staleness` are histograms over
    micro-batches; `movements` samples, every `measure_every` updates (0: never), the first
    micro-batch of a window, which has the window's largest drift. A sample holds one copy of the
    parameters while its micro-batch is in flight.
    """

    def __init__(
        self, parameters: Iterable[torch.Tensor], accumulation: int, measure_every: int = 0
    ):
        self.version = 0
        self.parameters = list(parameters)
        self.accumulation = accumulation
        self.measured_microbatches = measure_every * accumulation
        self.clear()
        self._version_at_forward: dict[int, int] = {}
        self._weights_at_forward: dict[int, torch.Tensor] = {}

    def clear(self) -> None:
        """Start new histograms; the version goes on."""
        self.drift: Counter[int] = Counter()
        self.staleness: Counter[int] = Counter()
        self.movements: list[Movement] = []
        self.peak_in_flight = 0

    def forward(self, microbatch: int) -> None:
        """A forward begins."""
        self._version_at_forward[microbatch] = self.version
        self.peak_in_flight = max(self.peak_in_flight, len(self._version_at_forward))
        if self.measured_microbatches and microbatch % self.measured_microbatches == 0:
            self._weights_at_forward[microbatch] = self._flat_weights()

    def backward(self, microbatch: int) -> None:
        """A backward begins, on the weights of now."""
        seen = self._version_at_forward.pop(microbatch)
        drift = self.version - seen
        self.drift[drift] += 1
        self.staleness[microbatch // self.accumulation - seen] += 1
        before = self._weights_at_forward.pop(microbatch, None)
        if before is not None:
            relative = (self._flat_weights() - before).norm() / before.norm()
            self.movements.append(Movement(self.version, microbatch, drift, relative.item()))

    def _flat_weights(self) -> torch.Tensor:
        return torch.cat([parameter.detach().flatten() for parameter in self.parameters])

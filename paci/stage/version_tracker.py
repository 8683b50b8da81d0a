"""Statistics of one stage's weight versions: the age of the weights that a micro-batch sees.

    version         0 ─────── 1 ─────── 2 ─────── 3      (updates of this stage)
    micro-batch 5        F ───────────────── B    ▲
                         └── drift Δ = 2 ────┘    │ its gradient becomes part of update 3,
                         └── staleness = 2 ───────┘ which changes version 2 into 3

The two are the same where a backward sees live weights; where it sees those of its forward, drift
is 0 and staleness stays. A split backward sees the weights in its first half, `I`; its micro-batch
is in flight until the second, `W`.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch

from paci.checks import not_negative


class WeightsView(NamedTuple):
    """The weights that an action sees: a version, and what it holds (while the action lasts)."""

    version: int
    tensors: Sequence[torch.Tensor]


@dataclass(frozen=True)
class Movement:
    """The movement of the weights between a micro-batch's forward and its backward.

    `relative` is ‖w_backward - w_forward‖ / ‖w_forward‖ over all parameters of the stage. `drift`
    is the number of updates in between; `relative` is their effect.
    """

    update: int
    microbatch: int
    drift: int
    relative: float


class VersionTracker:
    """Versions seen by each micro-batch of one stage.

    `version` counts the stage's updates; `drift` and `staleness` are histograms over
    micro-batches; `movements` samples, every `measure_every` updates (0: never), the first
    micro-batch of a window, which has the window's largest drift. A sample holds one copy of the
    parameters while its micro-batch is in flight.
    """

    def __init__(self, accumulation: int, measure_every: int = 0):
        self.version = 0
        self.accumulation = accumulation
        self.measured_microbatches = not_negative("measure_every", measure_every) * accumulation
        self.clear()
        self._version_at_forward: dict[int, int] = {}
        self._weights_at_forward: dict[int, torch.Tensor] = {}
        self._half_done: set[int] = set()

    def clear(self) -> None:
        """Start new histograms; the version goes on."""
        self.drift: Counter[int] = Counter()
        self.staleness: Counter[int] = Counter()
        self.movements: list[Movement] = []
        self.peak_in_flight = 0

    def forward(self, microbatch: int, view: WeightsView) -> None:
        """Note that a forward begins, and what it sees."""
        self._version_at_forward[microbatch] = view.version
        in_flight = len(self._version_at_forward) + len(self._half_done)
        self.peak_in_flight = max(self.peak_in_flight, in_flight)
        if self.measured_microbatches and microbatch % self.measured_microbatches == 0:
            self._weights_at_forward[microbatch] = _flat(view.tensors)

    def backward(self, microbatch: int, view: WeightsView) -> None:
        """Note that a backward begins, and what it sees."""
        version_at_forward = self._version_at_forward.pop(microbatch)
        drift = view.version - version_at_forward
        self.drift[drift] += 1
        self.staleness[microbatch // self.accumulation - version_at_forward] += 1
        before = self._weights_at_forward.pop(microbatch, None)
        if before is not None:
            relative = (_flat(view.tensors) - before).norm() / before.norm()
            self.movements.append(Movement(self.version, microbatch, drift, relative.item()))

    def backward_input(self, microbatch: int, view: WeightsView) -> None:
        """Note that the first half of a split backward begins, and what it sees."""
        self.backward(microbatch, view)
        self._half_done.add(microbatch)

    def backward_weight(self, microbatch: int) -> None:
        """Note that the second half of a split backward begins."""
        self._half_done.remove(microbatch)


def _flat(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    return torch.cat([tensor.detach().flatten() for tensor in tensors])

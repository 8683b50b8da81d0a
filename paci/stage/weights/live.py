"""Live weights, as in PACI: one copy, which every action sees and an update writes in place.

    version    0 ─────────── 1 ─────────── 2
    forward    sees 0
    backward                                 of the same micro-batch sees 2

Between the two the weights drift, which PACI bounds instead of preventing. A module that computes
its forward again during the backward (`torch.utils.checkpoint`) sees the newest weights there, too:
the gradient of the loss with respect to the stage's output, as it was sent on, meets activations
that the weights of the backward give. The paper's appendix describes this and does not evaluate it.
"""

from contextlib import AbstractContextManager, nullcontext

from paci.stage.version_tracker import WeightsView
from paci.stage.weights.policy import Policy


class Live(Policy):
    """Every action sees the newest weights."""

    name = "live"

    def forward(self, microbatch: int, version: int) -> AbstractContextManager[WeightsView]:
        return nullcontext(WeightsView(version, self.parameters))

    def backward(self, microbatch: int, version: int) -> AbstractContextManager[WeightsView]:
        return nullcontext(WeightsView(version, self.parameters))

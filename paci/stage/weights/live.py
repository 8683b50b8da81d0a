"""PACI's answer: there is one copy, every action sees the newest, an update writes it in place.

    version    0 ─────────── 1 ─────────── 2
    forward    sees 0
    backward                                 of the same micro-batch sees 2

Between the two the weights drift, which is what PACI bounds instead of preventing.
"""

from contextlib import nullcontext

from paci.stage.version_tracker import WeightsView
from paci.stage.weights.policy import Policy


class Live(Policy):
    name = "live"

    def forward(self, microbatch, version):
        return nullcontext(WeightsView(version, self.parameters))

    def backward(self, microbatch, version):
        return nullcontext(WeightsView(version, self.parameters))

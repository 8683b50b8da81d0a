"""PipeMare's discrepancy correction, T2 (Yang et al., MLSys 2021): the backward sees what the
forward saw, estimated from the mean of the weights' latest changes.

    version    0 ─────────── 1 ─────────── 2
    forward    sees 0
    backward                                 of the same micro-batch sees 2 - 2 mean changes
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import torch
from torch import nn

from paci.schedules.delay import delay_of_limit
from paci.stage.torch_private import add_each, differences, scale_each
from paci.stage.version_tracker import WeightsView
from paci.stage.weights.moved import Moved
from paci.stage.weights.policy import Position


class Corrected(Moved):
    """A backward sees the weights moved back by their mean change δ, once for each update since
    its forward.

    With every update δ ← γ δ + (1 - γ) change, where γ = decay^(1/delay): over the delay of the
    stage a change fades to `decay`, e⁻² in the paper.
    """

    name = "corrected"

    def __init__(
        self,
        module: nn.Module,
        optimizer: torch.optim.Optimizer,
        position: Position,
        decay: float = 0.135,
    ):
        super().__init__(module, optimizer, position)
        delay = delay_of_limit(position.in_flight, position.accumulation)
        self.fading = decay ** (1 / delay) if delay else 0.0
        self._change: list[torch.Tensor] = []  # δ
        self._version_at_forward: dict[int, int] = {}

    @contextmanager
    def forward(self, microbatch: int, version: int) -> Iterator[WeightsView]:
        self._version_at_forward[microbatch] = version
        yield WeightsView(version, self.parameters)

    @contextmanager
    def backward(self, microbatch: int, version: int) -> Iterator[WeightsView]:
        drift = version - self._version_at_forward[microbatch]
        if drift and self._change:
            with self.moved(self._change, -drift):
                yield WeightsView(version, self.parameters)
        else:
            yield WeightsView(version, self.parameters)

    def release(self, microbatch: int) -> None:
        del self._version_at_forward[microbatch]

    @torch.no_grad()
    def update(self, step: Callable[[], None]) -> None:
        before = [master.clone() for master in self.masters]
        super().update(step)
        if not self._change:
            self._change = [torch.zeros_like(master) for master in self.masters]
        scale_each(self._change, self.fading)
        add_each(self._change, differences(self.masters, before), 1 - self.fading)

    @property
    def extra_bytes(self) -> int:
        return self._aside_bytes + sum(change.nbytes for change in self._change)

    def state(self) -> dict[str, Sequence[torch.Tensor]]:
        return {"change": self._change} if self._change else {}

    def load(self, state: Mapping[str, Sequence[torch.Tensor]]) -> None:
        self._change = [
            tensor.to(master.data, copy=True)
            for tensor, master in zip(state.get("change", []), self.masters, strict=False)
        ]

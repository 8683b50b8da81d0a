"""Weight prediction (SpecTrain, XPipe, PipeOptim): the forward sees what the backward will see.

    version    0 ─────────── 1 ─────────── 2
    forward    sees 0 + 2 steps of the optimizer
    backward                                 of the same micro-batch sees 2

How many steps ahead is known exactly: backwards are in order, so those of window k see version k.
The steps themselves are predicted from the optimizer's average of its gradients: each step is taken
to be like the next.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import torch
from torch import nn

from paci.stage.version_tracker import WeightsView
from paci.stage.weights.moved import Moved
from paci.stage.weights.policy import Position
from paci.stage.weights.steps import step_predictor


class Predicted(Moved):
    """A forward sees the weights moved ahead by the optimizer's predicted step, once for each
    update until its backward.

    Raises ValueError for an optimizer whose steps `steps.py` cannot predict. Parameters that the
    optimizer does not hold never move.
    """

    name = "predicted"

    def __init__(self, module: nn.Module, optimizer: torch.optim.Optimizer, position: Position):
        super().__init__(module, optimizer, position)
        self._accumulation = position.accumulation
        self._optimizer = optimizer
        self._predict_step = step_predictor(optimizer)
        self._gradients: dict[torch.Tensor, torch.Tensor] = {}  # the last, where nothing averages
        self._steps: list[torch.Tensor] = []  # of this version, once a forward has asked

    @contextmanager
    def forward(self, microbatch: int, version: int) -> Iterator[WeightsView]:
        ahead = microbatch // self._accumulation - version
        if ahead > 0:
            with self.moved(self.steps(), -ahead):
                yield WeightsView(version, self.parameters)
        else:
            yield WeightsView(version, self.parameters)

    @contextmanager
    def backward(self, microbatch: int, version: int) -> Iterator[WeightsView]:
        yield WeightsView(version, self.parameters)

    def update(self, step: Callable[[], None]) -> None:
        for group in self._optimizer.param_groups:
            if group.get("momentum") == 0:
                self._gradients |= {
                    p: _dense(p.grad) for p in group["params"] if p.grad is not None
                }
        super().update(step)
        self._steps = []

    @torch.no_grad()
    def steps(self) -> list[torch.Tensor]:
        """Return what the next update is predicted to subtract from each parameter."""
        if not self._steps:
            groups = self._optimizer.param_groups
            group_of = {p: group for group in groups for p in group["params"]}
            state = self._optimizer.state
            self._steps = [
                self._predict_step(p, group_of[p], state.get(p, {}), self._gradients.get(p))
                if p in group_of
                else torch.zeros_like(p)
                for p in self.masters
            ]
        return self._steps

    @property
    def extra_bytes(self) -> int:
        kept = (*self._steps, *self._gradients.values())
        return self._aside_bytes + sum(tensor.nbytes for tensor in kept)

    def state(self) -> dict[str, Sequence[torch.Tensor]]:
        if not self._gradients:
            return {}
        return {"gradient": [self._gradients.get(p, torch.zeros_like(p)) for p in self.masters]}

    def load(self, state: Mapping[str, Sequence[torch.Tensor]]) -> None:
        self._steps = []
        self._gradients = {
            master: tensor.to(master.data, copy=True)
            for master, tensor in zip(self.masters, state.get("gradient", ()), strict=False)
            if master.requires_grad
        }


def _dense(gradient: torch.Tensor) -> torch.Tensor:
    return gradient.to_dense() if gradient.is_sparse else gradient

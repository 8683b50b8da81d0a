"""Weight prediction (SpecTrain, XPipe, PipeOptim): the forward sees what the backward will see.

    version    0 ─────────── 1 ─────────── 2
    forward    sees 0 + 2 steps of the optimizer
    backward                                 of the same micro-batch sees 2

How far ahead is no guess: backwards are in order, so those of window k see version k. What the
steps will be is one: that the optimizer, which averages its gradients, goes on as it does.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import torch

from paci.stage.version_tracker import WeightsView
from paci.stage.weights.moved import Moved
from paci.stage.weights.steps import step_predictor


class Predicted(Moved):
    """Raises ValueError for an optimizer whose steps nobody here can predict_step."""

    name = "predicted"

    def __init__(self, stage):
        super().__init__(stage)
        self.accumulation = stage.accumulation
        self.optimizer = stage.optimizer
        self._predict_step = step_predictor(stage.optimizer)
        self._gradients: dict[torch.Tensor, torch.Tensor] = {}  # the last, where nothing averages
        self._steps: list[torch.Tensor] = []  # of this version, once a forward has asked

    @contextmanager
    def forward(self, microbatch: int, version: int) -> Iterator[WeightsView]:
        ahead = microbatch // self.accumulation - version
        if ahead > 0:
            with self.moved(self.steps(), -ahead):
                yield WeightsView(version, self.parameters)
        else:
            yield WeightsView(version, self.parameters)

    @contextmanager
    def backward(self, microbatch: int, version: int) -> Iterator[WeightsView]:
        yield WeightsView(version, self.parameters)

    def update(self, step: Callable[[], None]) -> None:
        for group in self.optimizer.param_groups:
            if group.get("momentum") == 0:
                self._gradients |= {p: p.grad for p in group["params"] if p.grad is not None}
        super().update(step)
        self._steps = []

    @torch.no_grad()
    def steps(self) -> list[torch.Tensor]:
        """What the next update is foretold to subtract from each parameter."""
        if not self._steps:
            group_of = {p: group for group in self.optimizer.param_groups for p in group["params"]}
            state = self.optimizer.state
            self._steps = [
                self._predict_step(p, group_of[p], state.get(p, {}), self._gradients.get(p))
                for p in self.parameters
            ]
        return self._steps

    @property
    def extra_bytes(self) -> int:
        kept = (*self._steps, *self._gradients.values())
        return self._aside_bytes + sum(tensor.nbytes for tensor in kept)

    def state(self) -> dict[str, Sequence[torch.Tensor]]:
        if not self._gradients:
            return {}
        return {"gradient": [self._gradients.get(p, torch.zeros_like(p)) for p in self.parameters]}

    def load(self, state: Mapping[str, Sequence[torch.Tensor]]) -> None:
        self._steps = []
        self._gradients = {
            parameter: tensor.to(parameter, copy=True)
            for parameter, tensor in zip(self.parameters, state.get("gradient", ()), strict=False)
        }

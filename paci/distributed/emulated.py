"""Stages that wait instead of computing, in place of devices that this machine does not have.

Messages, rule, statistics and processes are real, so the runtime can be compared with theory on a
machine with fewer cores than stages.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from paci.actions import BACKWARD, FORWARD, INPUT_GRADIENT, WEIGHT_GRADIENT
from paci.cost import Cost, Durations
from paci.stage.stage import Loss, SendGradient, Stage


class Emulation:
    """Make stages that take the times of `cost` (seconds) instead of computing.

    Pass it to `DistributedPipeline` as `make_stage`. All stages that one emulation makes share one
    emulated device. Evaluation runs the real modules.
    """

    def __init__(self, cost: Cost):
        self.cost = cost
        self._device = EmulatedDevice()

    def __call__(
        self, index: int, stages: int, module: nn.Module, *arguments: Any, **options: Any
    ) -> Stage:
        times = EmulatedTimes(self.cost, index, stages, options["seed"])
        options["loss_fn"] = _given_loss(options["loss_fn"])
        emulated = EmulatedModule(module, index == stages - 1, times, self._device)
        return EmulatedStage(index, stages, emulated, *arguments, **options)


class EmulatedDevice:
    """Waits as long as a device would be busy.

    The processor comes back from a wait a little late; a device would have been on time, so what
    was overslept is taken off the next wait.
    """

    def __init__(self) -> None:
        self._overslept = 0.0

    def rest(self) -> None:
        """Forget what was overslept: the device has been idle since."""
        self._overslept = 0.0

    def work(self, seconds: float) -> None:
        """Wait for `seconds`, less what was overslept before."""
        end = time.monotonic() + seconds - self._overslept
        while (left := end - time.monotonic()) > 0:
            time.sleep(left)
        self._overslept = -left


class EmulatedTimes:
    """The times of one stage by kind and micro-batch, drawn as `Durations` draws them."""

    def __init__(self, cost: Cost, index: int, stages: int, seed: int):
        self._cost, self._index, self._stages, self._seed = cost, index, stages, seed
        self._known = 1024
        self._durations = Durations(cost, stages, self._known, seed)

    def of(self, kind: str, microbatch: int) -> float:
        """Return the seconds of an action."""
        while microbatch >= self._known:
            self._known *= 2
            self._durations = Durations(self._cost, self._stages, self._known, self._seed)
        return self._durations.of[kind][self._index][microbatch]

    @property
    def update(self) -> float:
        """The seconds of an optimizer step."""
        return self._durations.update[self._index]


class EmulatedModule(nn.Module):
    """A stand-in for `module`.

    In training, forwards and backwards wait for the times of the stage and give zeros. In
    evaluation it runs `module` and notes the shape of the output for every shape of input."""

    def __init__(
        self, module: nn.Module, is_last: bool, times: EmulatedTimes, device: EmulatedDevice
    ):
        super().__init__()
        self.module, self.is_last, self.times, self.device = module, is_last, times, device
        self.microbatch = 0  # the one in work
        self.backward_is_split = False
        self.outputs: dict[torch.Size, torch.Tensor] = {}  # zeros like it, by shape of the input

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        if self.training:
            result: torch.Tensor = _Wait.apply(
                input, next(self.parameters()), self, self.microbatch
            )
            return result
        output: torch.Tensor = self.module(input)
        if not self.is_last:
            self.outputs[input.shape] = torch.zeros_like(output)
        return output

    def work(self, kind: str, microbatch: int) -> None:
        self.device.work(self.times.of(kind, microbatch))


class EmulatedStage(Stage):
    """A stage whose module is an `EmulatedModule`."""

    module: EmulatedModule

    def __init__(self, *arguments: Any, **options: Any):
        super().__init__(*arguments, **options)
        module = self.module
        self.optimizer.register_step_pre_hook(lambda *_: module.device.work(module.times.update))

    def _output(
        self, microbatch: int, input: torch.Tensor, target: torch.Tensor | None
    ) -> torch.Tensor:
        self.module.microbatch = microbatch
        return super()._output(microbatch, input, target)

    def begin_segment(self) -> None:
        super().begin_segment()
        self.module.device.rest()

    def backward_input(
        self,
        microbatch: int,
        gradient: torch.Tensor | None = None,
        send: SendGradient | None = None,
    ) -> None:
        with self._half(INPUT_GRADIENT, microbatch):
            super().backward_input(microbatch, gradient, send)

    def backward_weight(self, microbatch: int) -> None:
        with self._half(WEIGHT_GRADIENT, microbatch):
            super().backward_weight(microbatch)

    @contextmanager
    def _half(self, kind: str, microbatch: int) -> Iterator[None]:
        """Wait for half of a backward once, however often autograd runs `_Wait.backward` inside."""
        self.module.work(kind, microbatch)
        self.module.backward_is_split = True
        yield
        self.module.backward_is_split = False


class _Wait(torch.autograd.Function):
    """Wait in the forward and in the backward, and give zeros.

    The parameter makes autograd run the backward at the first stage, too, whose input needs no
    gradient.
    """

    @staticmethod
    def forward(
        ctx: Any,
        input: torch.Tensor,
        parameter: nn.Parameter,
        emulated: EmulatedModule,
        microbatch: int,
    ) -> torch.Tensor:
        ctx.emulated, ctx.microbatch = emulated, microbatch
        ctx.input = input if input.requires_grad else None
        emulated.work(FORWARD, microbatch)
        return torch.zeros(()) if emulated.is_last else emulated.outputs[input.shape].detach()

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        if not ctx.emulated.backward_is_split:
            ctx.emulated.work(BACKWARD, ctx.microbatch)
        gradient = None if ctx.input is None else torch.zeros_like(ctx.input)
        return gradient, None, None, None


def _given_loss(loss_fn: Loss) -> Loss:
    """Return a loss that passes the last stage's zero on in training."""
    return lambda output, target: output if output.dim() == 0 else loss_fn(output, target)

"""Devices that are not there: a stage that takes its time and computes nothing.

Messages, rule, books and processes are real, so the runtime can be held against theory on a
machine with fewer cores than stages.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import nn

from paci.actions import BACKWARD, FORWARD, INPUT_GRADIENT, WEIGHT_GRADIENT
from paci.cost import Durations
from paci.distributed.transport import Spec
from paci.stage.stage import Loss, Stage


class EmulatedDevice:
    """Waits as a device would be busy. The processor comes back from a wait a little late; a
    device would have been on time, so what was overslept is taken off the next wait."""

    def __init__(self):
        self.begin()

    def begin(self) -> None:
        """Nothing is owed from before."""
        self._overslept = 0.0

    def work(self, seconds: float) -> None:
        """Be busy for so long."""
        end = time.monotonic() + seconds - self._overslept
        while (left := end - time.monotonic()) > 0:
            time.sleep(left)
        self._overslept = -left


class Emulated(nn.Module):
    """Takes the place of `module`, stage `stage`, in training: its forwards and backwards give
    zeros of the shape of `output`, after the times (seconds, by micro-batch, in order) that
    `begin` was given. Evaluation is the module's own."""

    def __init__(self, module: nn.Module, stage: int, device: EmulatedDevice):
        super().__init__()
        self.module, self.stage, self.device = module, stage, device
        self.is_split = False  # whether the backward under way is half of one

    def begin(self, durations: Durations, output: torch.Tensor, first: int = 0) -> None:
        self.durations, self.output, self.first, self.microbatch = durations, output, first, 0
        self.device.begin()

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        if not self.training:
            return self.module(input)
        self.microbatch += 1
        return _Wait.apply(input, next(self.parameters()), self, self.microbatch - 1)

    def work(self, kind: str, microbatch: int) -> None:
        self.device.work(self.durations.of[kind][self.stage][microbatch])

    @contextmanager
    def half(self, kind: str, microbatch: int) -> Iterator[None]:
        """Half of a backward takes its own time, however often autograd comes by."""
        self.work(kind, microbatch - self.first)
        self.is_split = True
        yield
        self.is_split = False

    def update(self, *_) -> None:
        """A hook before the optimizer's step, which finds no gradients and does nothing."""
        self.device.work(self.durations.update[self.stage])


class EmulatedStage(Stage):
    """A stage whose module is `Emulated`."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.optimizer.register_step_pre_hook(self.module.update)

    def begin(self, durations: Durations, specs: Mapping[int, Spec], first: int) -> None:
        """A segment begins, with micro-batch `first` of training; `specs` says what enters each
        stage, but for the loss, which leaves the last."""
        spec = specs.get(self.index + 1, Spec((), torch.float32, self.device))
        self.module.begin(durations, spec.zeros(), first)

    def backward_input(self, microbatch, gradient=None, send=None):
        with self.module.half(INPUT_GRADIENT, microbatch):
            super().backward_input(microbatch, gradient, send)

    def backward_weight(self, microbatch):
        with self.module.half(WEIGHT_GRADIENT, microbatch):
            super().backward_weight(microbatch)


class _Wait(torch.autograd.Function):
    """The parameter is there for autograd to come back to at the first stage, too."""

    @staticmethod
    def forward(ctx, input, parameter, emulated, microbatch):
        ctx.emulated, ctx.microbatch = emulated, microbatch
        ctx.gradient = input if input.requires_grad else None
        emulated.work(FORWARD, microbatch)
        return emulated.output.detach()

    @staticmethod
    def backward(ctx, gradient):
        if not ctx.emulated.is_split:
            ctx.emulated.work(BACKWARD, ctx.microbatch)
        gradient = None if ctx.gradient is None else torch.zeros_like(ctx.gradient)
        return gradient, None, None, None


def emulated_loss(loss_fn: Loss) -> Loss:
    """The last stage's `Emulated` gives the loss, a number, itself."""
    return lambda output, target: output if output.dim() == 0 else loss_fn(output, target)

"""How a stage computes: its precision, the activations that it keeps, and compilation.

                    parameters    what a graph keeps of them            optimizer steps
    float32         float32       the parameters themselves             the parameters
    bfloat16-       float32       a bfloat16 copy of each weight of     the parameters
      autocast                    a matrix product, made by the forward
    bfloat16        bfloat16      the parameters themselves             float32 masters

A graph that keeps copies, as autocast's does, shows its backward the weights of its forward: live
weights are then stashed in effect. With bfloat16 parameters a backward sees what the policy says.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass

import torch
from torch import nn

from paci.stage.torch_private import copy_each, keep_version_counters

PRECISIONS = ("float32", "bfloat16-autocast", "bfloat16")
RECOMPUTE = ("none", "stage")


@dataclass(frozen=True)
class Compute:
    """Choices of how every stage computes; none changes the schedule.

    precision   float32: in the types of the module
                bfloat16-autocast: the module runs under `torch.autocast`
                bfloat16: a copy of the module with bfloat16 parameters runs, and its activations,
                gradients and messages are bfloat16; the module's own parameters are the masters.
                Gradients are accumulated in the masters' type, losses taken in float32
    recompute   none: a forward keeps its activations for its backward
                stage: it keeps its input only, and the backward runs it again, with the same random
                numbers and the weights that the policy shows the backward (GPipe's
                re-materialisation)
    compile     whether modules run through `torch.compile`

    Raises ValueError for other values.
    """

    precision: str = "float32"
    recompute: str = "none"
    compile: bool = False

    def __post_init__(self) -> None:
        for name, choices in (("precision", PRECISIONS), ("recompute", RECOMPUTE)):
            if getattr(self, name) not in choices:
                raise ValueError(
                    f"{name} must be {' or '.join(choices)}, not {getattr(self, name)!r}"
                )
        if not isinstance(self.compile, bool):
            raise ValueError(f"compile must be true or false, not {self.compile!r}")


class Computation:
    """The computation of one stage's `module` in its own types.

    module       the module that runs
    parameters   its parameters, which a policy of weights writes and binds
    masters      the tensors that the optimizer steps, one for each of `parameters`; the same ones
                 unless they are kept in another type
    """

    def __init__(self, module: nn.Module, compile: bool):
        self.module = module
        self.parameters = tuple(module.parameters())
        self.masters = self.parameters
        self._run = torch.compile(module) if compile else module

    def __call__(self, input: torch.Tensor) -> torch.Tensor:
        """Return the output of the module; both are of shape (sequences, ...)."""
        output: torch.Tensor = self._run(input)
        return output

    def logits(self, output: torch.Tensor) -> torch.Tensor:
        """Return the last stage's output as the loss takes it."""
        return output

    def follow(self) -> None:
        """Take over what the user has done to the module since the last call."""

    def collect(self) -> None:
        """Add the gradients of a backward to those of the masters."""

    def publish(self) -> None:
        """Write the masters, which have been stepped, into the parameters, in place."""


class Autocast(Computation):
    """The computation under `torch.autocast` in bfloat16."""

    def __call__(self, input: torch.Tensor) -> torch.Tensor:
        with torch.autocast(input.device.type, torch.bfloat16):
            return super().__call__(input)


class LowPrecision(Computation):
    """The computation with bfloat16 parameters, whose masters are those of `original`.

    The module that runs is a copy of `original`, made now; it shares the buffers. Hooks that are
    registered on `original` later do not run.
    """

    def __init__(self, original: nn.Module, compile: bool):
        shared = {id(buffer): buffer for buffer in original.buffers()}
        copy = deepcopy(original, shared)
        for parameter in copy.parameters():
            parameter.data = _low(parameter.data)
        super().__init__(copy, compile)
        self._original = original
        self.masters = tuple(original.parameters())

    def __call__(self, input: torch.Tensor) -> torch.Tensor:
        return super().__call__(_low(input))

    def logits(self, output: torch.Tensor) -> torch.Tensor:
        return output.float()

    def follow(self) -> None:
        pairs = zip(self.module.modules(), self._original.modules(), strict=True)
        for own, original in pairs:
            own.training = original.training
        for parameter, master in zip(self.parameters, self.masters, strict=True):
            if parameter.device != master.device:
                parameter.data = _low(master.data)
        with keep_version_counters(self.parameters):  # micro-batches may be in flight
            self.publish()

    @torch.no_grad()
    def collect(self) -> None:
        for parameter, master in zip(self.parameters, self.masters, strict=True):
            if parameter.grad is None:
                continue
            gradient = parameter.grad.to(master.dtype)
            if master.grad is None:
                master.grad = gradient
            else:
                master.grad += gradient
            parameter.grad = None

    @torch.no_grad()
    def publish(self) -> None:
        copy_each(self.parameters, self.masters)


COMPUTATIONS: dict[str, type[Computation]] = {
    "float32": Computation,
    "bfloat16-autocast": Autocast,
    "bfloat16": LowPrecision,
}


def computation_of(module: nn.Module, compute: Compute) -> Computation:
    """Return the computation of `module` that `compute` asks for."""
    return COMPUTATIONS[compute.precision](module, compute.compile)


@contextmanager
def buffers_kept(module: nn.Module) -> Iterator[None]:
    """Undo what a second forward does to the buffers of `module`, such as running statistics,
    which the first has done."""
    buffers = list(module.buffers())
    before = [buffer.clone() for buffer in buffers]
    yield
    with torch.no_grad(), keep_version_counters(buffers):
        for buffer, value in zip(buffers, before, strict=True):
            buffer.copy_(value)


def _low(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.to(torch.bfloat16) if tensor.is_floating_point() else tensor

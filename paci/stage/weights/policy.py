"""A policy says which weights a forward sees, which a backward sees, and how an update writes.

    with forward(m, version) as view:     the module runs on what `view` holds
    with backward(m, version) as view:    autograd reads what `view` holds
    release(m)                            the backward of m is done
    update(step)                          the optimizer steps

`version` counts the stage's updates so far. Outside of these calls the parameters of the module
are the newest weights, and the optimizer knows no others. Inside, a policy may write other values
into the same `nn.Parameter`s or bind them to other storages, but it never puts other tensors in
their place. So whatever a module does with its parameters works as in plain PyTorch: hooks on
them, parameters kept in lists, and forwards that are computed again during the backward
(`torch.utils.checkpoint`), which then see the weights that the policy shows the backward.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import nn

from paci.stage.torch_private import keep_version_counters
from paci.stage.version_tracker import WeightsView


@dataclass(frozen=True)
class Position:
    """The place of a stage: it is stage `index` of `stages`, has `accumulation` micro-batches a
    window, and holds `in_flight` micro-batches when the pipeline is full."""

    index: int
    stages: int
    accumulation: int
    in_flight: int

    @property
    def is_first(self) -> bool:
        return self.index == 0

    @property
    def is_last(self) -> bool:
        return self.index == self.stages - 1


class Policy(ABC):
    """The weights of one stage: the parameters of `module`, which `optimizer` updates.

    `masters` are the tensors that the optimizer steps, one for each parameter: the parameters,
    unless the stage sets others, which it writes into the parameters after each step.
    """

    name: ClassVar[str]

    def __init__(self, module: nn.Module, optimizer: torch.optim.Optimizer, position: Position):
        self.parameters = tuple(module.parameters())
        self.masters = self.parameters
        self.bytes_of_one_copy = sum(parameter.nbytes for parameter in self.parameters)

    @property
    def extra_bytes(self) -> int:
        """Bytes of parameters held beyond the one copy that every stage has."""
        return 0

    @abstractmethod
    def forward(self, microbatch: int, version: int) -> AbstractContextManager[WeightsView]:
        """Return a context in which the module runs on what the forward of `microbatch` sees."""

    @abstractmethod
    def backward(self, microbatch: int, version: int) -> AbstractContextManager[WeightsView]:
        """Return a context in which autograd reads what the backward of `microbatch`, or a half
        of it, sees."""

    def release(self, microbatch: int) -> None:  # noqa: B027 (most keep nothing)
        """Forget `microbatch`, whose backward is done."""

    def update(self, step: Callable[[], None]) -> None:
        """Run the optimizer's `step`, in place, under the micro-batches in flight."""
        with in_place(self.parameters):
            step()

    def state(self) -> dict[str, Sequence[torch.Tensor]]:
        """Return what a checkpoint needs beside the parameters: lists of tensors like them."""
        return {}

    def load(self, state: Mapping[str, Sequence[torch.Tensor]]) -> None:  # noqa: B027
        """Go on from what `state` once returned (nothing: from the parameters alone)."""

    def begin_segment(self) -> None:
        """Follow the parameters to another type or device, if the caller has moved them there."""
        self.bytes_of_one_copy = sum(parameter.nbytes for parameter in self.parameters)
        state = self.state()
        pairs = (
            pair for kept in state.values() for pair in zip(kept, self.parameters, strict=True)
        )
        if any((t.dtype, t.device) != (p.dtype, p.device) for t, p in pairs):
            self.load(state)


@contextmanager
def in_place(parameters: tuple[torch.Tensor, ...]) -> Iterator[None]:
    """Allow writing `parameters` inside, under the micro-batches in flight.

    Autograd refuses a backward through a tensor that has changed since its forward. Here the
    change is meant: version counters stay as they are, and a backward reads what is there by then.
    """
    with torch.no_grad(), keep_version_counters(parameters):
        yield
    torch.clear_autocast_cache()  # of casts that the caller's autocast made of the old weights

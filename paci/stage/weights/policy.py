"""A policy says which weights a forward sees, which a backward sees, and how an update writes.

    with forward(m, version) as seen:     the module runs on what `seen` holds
    with backward(m, version) as seen:    autograd reads what `seen` holds
    release(m)                            the last of a micro-batch's backward is done
    update(step)                          the optimizer steps

`version` is the stage's count of updates so far. The parameters of the module are always the
newest weights, and what the optimizer knows: policies differ in what else there is.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

import torch

from paci.stage.version_tracker import WeightsView

if TYPE_CHECKING:
    from paci.stage.stage import Stage


class Policy(ABC):
    """The weights of one `Stage`. `extra_bytes` are those of the parameters held beyond the one
    copy that every stage has."""

    name: str
    extra_bytes = 0

    def __init__(self, stage: "Stage"):
        self.parameters = tuple(stage.module.parameters())
        self.bytes_of_one_copy = sum(parameter.nbytes for parameter in self.parameters)

    @abstractmethod
    def forward(self, microbatch: int, version: int) -> AbstractContextManager[WeightsView]:
        """Inside, the module runs on what the forward of `microbatch` shall see."""

    @abstractmethod
    def backward(self, microbatch: int, version: int) -> AbstractContextManager[WeightsView]:
        """Inside, autograd reads what the backward of `microbatch`, or a half of it, shall see."""

    def release(self, microbatch: int) -> None:  # noqa: B027 (most keep nothing)
        """The backward of `microbatch` is done."""

    def update(self, step: Callable[[], None]) -> None:
        """Let the optimizer `step`: in place, under whatever is in flight."""
        with in_place(self.parameters):
            step()

    def state(self) -> dict[str, Sequence[torch.Tensor]]:
        """What a checkpoint needs, besides the parameters, to go on: tensors like them, by name."""
        return {}

    def load(self, state: Mapping[str, Sequence[torch.Tensor]]) -> None:  # noqa: B027
        """Go on from what `state` once gave (nothing: from the parameters alone)."""


@contextmanager
def in_place(parameters: tuple[torch.Tensor, ...]) -> Iterator[None]:
    """Inside, the parameters may be written under the micro-batches in flight.

    Autograd refuses a backward through a tensor that has changed since its forward. Here that is
    meant, so its version counters stay as they are, and a backward reads what is there by then.
    """
    with torch.no_grad(), torch.autograd._unsafe_preserve_version_counter(parameters):
        yield
    torch.clear_autocast_cache()  # of casts that the caller's autocast made of the old weights

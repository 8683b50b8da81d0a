"""Several versions of a stage's weights at once, each where it was written.

    version 4   storage A  ◀── aliases ◀── graphs of micro-batches 7 and 8
    version 5   storage B  ◀── aliases ◀── graph of micro-batch 9
                           ◀── the parameters, which the optimizer writes

A forward runs on aliases of the parameters: leaves of their own, which for the length of a backward
hold the parameters' gradients. If a version is still needed when the optimizer is about to write,
the parameters move to a storage of their own, and the aliases stay: no graph notices, and a version
is gone with its last user.
"""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import nn

from paci.ledger import Seen
from paci.weights.policy import Policy

Aliases = tuple[torch.Tensor, ...]


class Versioned(Policy):
    """A policy under which a micro-batch sees one version from its forward to its backward."""

    def __init__(self, stage):
        super().__init__(stage)
        self.in_flight: dict[int, Seen] = {}  # by micro-batch
        self._newest: Aliases | None = None
        self._sites = _sites(stage.module, self.parameters)

    @abstractmethod
    def choose(self, microbatch: int, version: int) -> Seen:
        """What `microbatch` sees, now that its forward begins at `version`."""

    @contextmanager
    def forward(self, microbatch: int, version: int) -> Iterator[Seen]:
        seen = self.in_flight[microbatch] = self.choose(microbatch, version)
        self._module_holds(seen.tensors)
        try:
            yield seen
        finally:
            self._module_holds(self.parameters)

    @contextmanager
    def backward(self, microbatch: int, version: int) -> Iterator[Seen]:
        seen = self.in_flight[microbatch]  # its graph holds no other
        for alias, parameter in zip(seen.tensors, self.parameters, strict=True):
            alias.grad = parameter.grad
        yield seen
        for alias, parameter in zip(seen.tensors, self.parameters, strict=True):
            parameter.grad, alias.grad = alias.grad, None

    def release(self, microbatch: int) -> None:
        del self.in_flight[microbatch]

    @property
    def newest(self) -> Aliases:
        if self._newest is None:
            self._newest = tuple(p.data.requires_grad_(p.requires_grad) for p in self.parameters)
        return self._newest

    @property
    def needed(self) -> list[Aliases]:
        """The versions that somebody will still read."""
        return [seen.tensors for seen in self.in_flight.values()]

    def update(self, step) -> None:
        if any(aliases is self._newest for aliases in self.needed):
            self._move(torch._foreach_clone([parameter.data for parameter in self.parameters]))
        super().update(step)

    @property
    def extra_bytes(self) -> int:
        older = {id(aliases) for aliases in self.needed if aliases is not self._newest}
        return len(older) * self.bytes_of_one_copy

    def _move(self, storages: Sequence[torch.Tensor]) -> None:
        """Bind the parameters to other storages; the aliases keep what they have."""
        for parameter, storage in zip(self.parameters, storages, strict=True):
            parameter.data = storage
        self._newest = None

    def _module_holds(self, tensors: Sequence[torch.Tensor]) -> None:
        for held, name, number in self._sites:
            held[name] = tensors[number]


def _sites(module: nn.Module, parameters: Aliases) -> list[tuple[dict, str, int]]:
    """Everywhere in `module` where a parameter is held (a tied one: at several places)."""
    number_of = {parameter: number for number, parameter in enumerate(parameters)}
    return [
        (part._parameters, name, number_of[parameter])
        for part in module.modules()
        for name, parameter in part._parameters.items()
        if parameter is not None
    ]

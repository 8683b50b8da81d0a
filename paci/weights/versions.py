"""Several versions of a stage's weights at once, each where it was written.

    version 4   storage A  ◀── aliases ◀── graphs of micro-batches 7 and 8
    version 5   storage B  ◀── aliases ◀── graph of micro-batch 9
                           ◀── the parameters, which the optimizer writes

A forward runs on aliases of the parameters: leaves of their own, where autograd adds up gradients.
Those of a window move along when its next backward sees another version, and to the parameters
before the optimizer steps. If a version is still needed when the optimizer is about to write, the
parameters move to a storage of their own, and the aliases stay: no graph notices, and a version is
gone with its last user.
"""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext

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
        self._with_gradients: Aliases = self.parameters  # where those of this window are
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

    def backward(self, microbatch: int, version: int) -> AbstractContextManager[Seen]:
        seen = self.in_flight[microbatch]  # its graph holds no other
        self._move_gradients(seen.tensors)
        return nullcontext(seen)

    def release(self, microbatch: int) -> None:
        del self.in_flight[microbatch]
        if not self._is_needed(self._with_gradients):
            self._move_gradients(self.parameters)

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
        self._move_gradients(self.parameters)
        if self._newest and self._is_needed(self._newest):
            self._move(torch._foreach_clone([parameter.data for parameter in self.parameters]))
        super().update(step)

    @property
    def extra_bytes(self) -> int:
        versions = set(map(id, self.needed)) - {id(self._newest)}
        return len(versions) * self.bytes_of_one_copy

    def _is_needed(self, tensors: Aliases) -> bool:
        return any(aliases is tensors for aliases in self.needed)

    def _move_gradients(self, to: Aliases) -> None:
        if to is not self._with_gradients:
            for before, after in zip(self._with_gradients, to, strict=True):
                after.grad, before.grad = before.grad, None
            self._with_gradients = to

    def _move(self, storages: Sequence[torch.Tensor]) -> None:
        """Bind the parameters to other storages; the aliases keep what they have."""
        for parameter, storage in zip(self.parameters, storages, strict=True):
            parameter.data = storage
        self._newest = None

    def _module_holds(self, tensors: Sequence[torch.Tensor]) -> None:
        for held, name, number in self._sites:
            held[name] = tensors[number]


def _sites(module: nn.Module, parameters: Aliases) -> list[tuple[dict, str, int]]:
    """Everywhere in `module` where a parameter is held (a tied one: at several places). PyTorch's
    own dictionaries, for its public ways let nothing but an `nn.Parameter` take one's place."""
    number_of = {parameter: number for number, parameter in enumerate(parameters)}
    return [
        (part._parameters, name, number_of[parameter])
        for part in module.modules()
        for name, parameter in part._parameters.items()
        if parameter is not None
    ]

"""Several versions of a stage's weights at once, each in the storage it was written to.

    version 4   storage A  ◀── micro-batches 7 and 8 are in flight
    version 5   storage B  ◀── micro-batch 9 is in flight
                           ◀── the parameters, which the optimizer writes

Graphs hold the parameters themselves, so an action sees a version when the parameters are bound
to its storages (`parameter.data = ...`) while the action lasts; then they are bound to the newest
again. If a version is still needed when the optimizer is about to write, the parameters first move
to new storages. A version is gone with its last user, and between segments there is none but the
newest (double-buffered weights: and the one before).

`torch.func.functional_call` would run a module on other tensors as well, but these have no hooks
of the parameters, collect their gradients elsewhere and are unknown to a forward that is computed
again during the backward; and it takes 150 µs a call for twelve parameters, binding them takes 10.
"""

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import nn

from paci.stage.torch_private import clones
from paci.stage.version_tracker import WeightsView
from paci.stage.weights.policy import Policy, Position

Tensors = tuple[torch.Tensor, ...]


@dataclass(eq=False)
class Version:
    """The weights of one version, in the order of the parameters."""

    tensors: Tensors


class Versioned(Policy):
    """A policy under which a micro-batch sees one version from its forward to its backward."""

    def __init__(self, module: nn.Module, optimizer: torch.optim.Optimizer, position: Position):
        super().__init__(module, optimizer, position)
        self._in_flight: dict[int, tuple[int, Version]] = {}  # by micro-batch
        self._users: Counter[Version] = Counter()
        self._newest: Version | None = None  # while it has users

    @abstractmethod
    def choose(self, microbatch: int, version: int) -> tuple[int, Version]:
        """Return the number and the weights that `microbatch` sees, whose forward begins at
        `version`."""

    @contextmanager
    def forward(self, microbatch: int, version: int) -> Iterator[WeightsView]:
        number, chosen = self._in_flight[microbatch] = self.choose(microbatch, version)
        self.acquire(chosen)
        with self._bound_to(chosen):
            yield WeightsView(number, chosen.tensors)

    @contextmanager
    def backward(self, microbatch: int, version: int) -> Iterator[WeightsView]:
        number, chosen = self._in_flight[microbatch]
        with self._bound_to(chosen):
            yield WeightsView(number, chosen.tensors)

    def release(self, microbatch: int) -> None:
        _, chosen = self._in_flight.pop(microbatch)
        self.release_version(chosen)

    @property
    def newest(self) -> Version:
        """The version that the parameters hold now."""
        return self._newest or Version(tuple(parameter.data for parameter in self.parameters))

    def acquire(self, version: Version) -> None:
        """Count one more user of `version`, the newest or one that has users."""
        if version not in self._users:
            self._newest = version
        self._users[version] += 1

    def release_version(self, version: Version) -> None:
        """Count one user of `version` less; the last one takes it away."""
        self._users[version] -= 1
        if not self._users[version]:
            del self._users[version]
            if version is self._newest:
                self._newest = None

    def update(self, step: Callable[[], None]) -> None:
        if self._newest:
            _bind(self.parameters, clones(self._newest.tensors))
            self._newest = None
        super().update(step)

    @property
    def extra_bytes(self) -> int:
        others = len(self._users) - (self._newest is not None)
        return others * self.bytes_of_one_copy

    @contextmanager
    def _bound_to(self, version: Version) -> Iterator[None]:
        if version is self._newest:
            yield
            return
        newest = [parameter.data for parameter in self.parameters]
        _bind(self.parameters, version.tensors)
        try:
            yield
        finally:
            _bind(self.parameters, newest)


def _bind(parameters: Tensors, storages: Tensors | list[torch.Tensor]) -> None:
    for parameter, storage in zip(parameters, storages, strict=True):
        parameter.data = storage
    torch.clear_autocast_cache()  # of casts that the caller's autocast made of the other version

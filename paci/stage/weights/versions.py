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
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass

import torch
from torch import nn

from paci.stage.version_tracker import WeightsView
from paci.stage.weights.policy import Policy

Tensors = tuple[torch.Tensor, ...]


@dataclass(eq=False)
class Version:
    """What one version holds; no two are the same."""

    tensors: Tensors


class Versioned(Policy):
    """A policy under which a micro-batch sees one version from its forward to its backward."""

    def __init__(self, stage):
        super().__init__(stage)
        self.in_flight: dict[int, tuple[int, Version]] = {}  # by micro-batch, as `choose` gives it
        self._newest: Version | None = None
        self._users: Counter[Version] = Counter()  # how many need each
        self._with_gradients: Tensors | None = None  # where those of this window are, if any
        self._sites = _sites(stage.module, self.parameters)

    @abstractmethod
    def choose(self, microbatch: int, version: int) -> tuple[int, Version]:
        """What `microbatch` sees, and its number, now that its forward begins at `version`."""

    @contextmanager
    def forward(self, microbatch: int, version: int) -> Iterator[WeightsView]:
        number, chosen = self.in_flight[microbatch] = self.choose(microbatch, version)
        self.need(chosen)
        self._module_holds(chosen.tensors)
        try:
            yield WeightsView(number, chosen.tensors)
        finally:
            self._module_holds(self.parameters)

    def backward(self, microbatch: int, version: int) -> AbstractContextManager[WeightsView]:
        number, chosen = self.in_flight[microbatch]  # its graph holds no other
        self._move_gradients(chosen.tensors)
        return nullcontext(WeightsView(number, chosen.tensors))

    def release(self, microbatch: int) -> None:
        _, chosen = self.in_flight.pop(microbatch)
        self.let_go(chosen)

    @property
    def newest(self) -> Version:
        """What the parameters hold now."""
        if self._newest is None:
            self._newest = self.version_of(self.parameters)
        return self._newest

    def version_of(self, tensors: Sequence[torch.Tensor]) -> Version:
        """Leaves of their own on what `tensors`, which are like the parameters, hold."""
        pairs = zip(tensors, self.parameters, strict=True)
        return Version(tuple(t.data.requires_grad_(p.requires_grad) for t, p in pairs))

    def need(self, version: Version) -> None:
        """One more needs it."""
        self._users[version] += 1

    def let_go(self, version: Version) -> None:
        """One fewer needs it; after the last it is gone."""
        self._users[version] -= 1
        if not self._users[version]:
            del self._users[version]
            if self._with_gradients is version.tensors:
                self._move_gradients(self.parameters)

    def update(self, step: Callable[[], None]) -> None:
        self._move_gradients(self.parameters)
        if self._newest in self._users:
            self._leave_newest()
        super().update(step)
        self._with_gradients = None  # the stage clears them

    @property
    def extra_bytes(self) -> int:
        others = len(self._users) - (self._newest in self._users)
        return others * self.bytes_of_one_copy

    def _move_gradients(self, to: Tensors) -> None:
        if self._with_gradients is not None and self._with_gradients is not to:
            for before, after in zip(self._with_gradients, to, strict=True):
                after.grad, before.grad = before.grad, None
        self._with_gradients = to

    def _leave_newest(self) -> None:
        """Bind the parameters to a storage of their own; the aliases keep what they have."""
        storages = torch._foreach_clone([parameter.data for parameter in self.parameters])
        for parameter, storage in zip(self.parameters, storages, strict=True):
            parameter.data = storage
        self._newest = None

    def _module_holds(self, tensors: Sequence[torch.Tensor]) -> None:
        for held, name, number in self._sites:
            held[name] = tensors[number]


def _sites(module: nn.Module, parameters: Tensors) -> list[tuple[dict, str, int]]:
    """Everywhere in `module` where a parameter is held (a tied one: at several places). PyTorch's
    own dictionaries, for its public ways let nothing but an `nn.Parameter` take one's place."""
    number_of = {parameter: number for number, parameter in enumerate(parameters)}
    return [
        (part._parameters, name, number_of[parameter])
        for part in module.modules()
        for name, parameter in part._parameters.items()
        if parameter is not None
    ]

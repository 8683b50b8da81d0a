"""What a stage holds beside its parameters, in bytes: activations, parameter copies, gradients,
optimizer state.

Autograd keeps the tensors that a backward will need. Most are activations. Some are the stage's
own parameters, which cost nothing, being there anyway. And some are *copies* of parameters: under
autocast a linear layer saves its own low-precision copy of the weight, so that every micro-batch
in flight holds the weights of its forward, and the stage no longer holds one version only.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass

import torch
from torch.autograd.graph import saved_tensors_hooks

from paci.stage.torch_private import sparse_bytes


@dataclass
class MemoryUsage:
    """Bytes held.

    activations   tensors that the micro-batches in flight need for their backwards
    copies        parameters beyond the live ones, held by graphs in flight or by the policy
    gradients     the gradients of the parameters
    optimizer     the tensors of the optimizer's state
    """

    activations: int = 0
    copies: int = 0
    gradients: int = 0
    optimizer: int = 0


class SavedTensors:
    """Counts the bytes that the micro-batches in flight keep for their backwards, and those that
    an update finds and leaves.

    What a forward saves depends on the shape of its input, so one micro-batch of each shape is
    weighed, through autograd's hooks, and all of that shape weigh the same. Hooks cost time and
    switch PyTorch's own check for changed tensors off; the other micro-batches are spared both.
    """

    def __init__(self, parameters: Iterable[torch.Tensor]):
        self.parameters = list(parameters)
        self._in_flight: dict[int, MemoryUsage] = {}
        self._now = MemoryUsage()
        self._versions = 0
        self.clear()

    def clear(self) -> None:
        """Start new peaks, and weigh anew."""
        self.peak = MemoryUsage()
        self._of_shape: dict[torch.Size, MemoryUsage] = {}

    def saving(
        self, microbatch: int, input: torch.Tensor, parameters: Sequence[torch.Tensor]
    ) -> AbstractContextManager[None]:
        """Return a context: what autograd saves inside is held by `microbatch`, with this `input`,
        until `release`. The module runs on `parameters`."""
        if input.shape in self._of_shape:
            self._hold(microbatch, self._of_shape[input.shape])
            return nullcontext()
        return self._weighing(microbatch, input.shape, parameters)

    def add_activations(self, microbatch: int, bytes: int) -> None:
        """Add what `microbatch` holds beyond its forward: gradients between two halves."""
        held = self._in_flight[microbatch]
        self._in_flight[microbatch] = MemoryUsage(held.activations + bytes, held.copies)
        self._now.activations += bytes
        self._note_peak()

    def note_versions(self, bytes: int) -> None:
        """Note the bytes of other versions of the parameters that the policy holds now."""
        self._versions = bytes
        self._note_peak()

    def before_update(self) -> None:
        """Note the gradients of a window, which are complete."""
        found = (_nbytes(p.grad) for p in self.parameters if p.grad is not None)
        self.peak.gradients = max(self.peak.gradients, sum(found))

    def after_update(self, optimizer: torch.optim.Optimizer) -> None:
        """Note the state of `optimizer`, which has all that it will ever have."""
        state = (value for kept in optimizer.state.values() for value in kept.values())
        left = sum(_nbytes(value) for value in state if isinstance(value, torch.Tensor))
        self.peak.optimizer = max(self.peak.optimizer, left)

    def release(self, microbatch: int) -> None:
        """Take away what `microbatch` held, whose backward is done."""
        held = self._in_flight.pop(microbatch)
        self._now.activations -= held.activations
        self._now.copies -= held.copies

    def _hold(self, microbatch: int, held: MemoryUsage) -> None:
        self._in_flight[microbatch] = held
        self._now.activations += held.activations
        self._now.copies += held.copies
        self._note_peak()

    def _note_peak(self) -> None:
        self.peak.activations = max(self.peak.activations, self._now.activations)
        self.peak.copies = max(self.peak.copies, self._now.copies + self._versions)

    @contextmanager
    def _weighing(
        self, microbatch: int, shape: torch.Size, parameters: Sequence[torch.Tensor]
    ) -> Iterator[None]:
        with saved_tensors(parameters) as saved:
            yield
        held, types = MemoryUsage(), {parameter.dtype for parameter in parameters}
        for tensor in saved:
            if tensor.dtype not in types and _is_cast_of_one(parameters, tensor):
                held.copies += tensor.untyped_storage().nbytes()
            else:
                held.activations += tensor.untyped_storage().nbytes()
        self._of_shape[shape] = held
        self._hold(microbatch, held)


@contextmanager
def saved_tensors(parameters: Iterable[torch.Tensor]) -> Iterator[list[torch.Tensor]]:
    """Collect the tensors that autograd saves inside: one of each storage, and none of the storages
    of `parameters`."""
    known = {parameter.untyped_storage().data_ptr() for parameter in parameters}
    saved: list[torch.Tensor] = []

    def note(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage().data_ptr()
        if storage not in known:
            known.add(storage)
            saved.append(tensor)
        return tensor

    with saved_tensors_hooks(note, lambda tensor: tensor):
        yield saved


def _nbytes(tensor: torch.Tensor) -> int:
    return sparse_bytes(tensor) if tensor.is_sparse else tensor.nbytes


def _is_cast_of_one(parameters: Sequence[torch.Tensor], tensor: torch.Tensor) -> bool:
    return any(
        same.shape == parameter.shape and torch.equal(same, parameter.to(tensor.dtype))
        for parameter in parameters
        for same in ((tensor, tensor.t()) if tensor.dim() == 2 else (tensor,))
    )

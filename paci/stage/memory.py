"""Memory of a stage beside its parameters: activations, copies, gradients, optimizer state.

Autograd keeps the tensors that a backward will need. Most are activations. Some are the stage's
own parameters, which are there anyway and cost nothing. Others are *copies* of parameters: under
autocast a linear layer saves a low-precision copy of its weight, so every micro-batch in flight
holds the weights of its forward, and the stage holds more than one version.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass

import torch
from torch.autograd.graph import saved_tensors_hooks

from paci.stage.torch_private import sparse_bytes


@dataclass
class MemoryUsage:
    """Bytes that a stage holds beside its parameters.

    activations   tensors that the micro-batches in flight need for their backwards
    copies        parameters beyond the live ones, held by graphs in flight or by the policy
    gradients     the gradients of the parameters
    optimizer     the tensors of the optimizer's state, float32 masters included
    """

    activations: int = 0
    copies: int = 0
    gradients: int = 0
    optimizer: int = 0


class SavedTensors:
    """Count the bytes that micro-batches in flight keep for their backwards, and the bytes of
    gradients and optimizer state around an update.

    The tensors that a forward saves depend on the shape of its input. So autograd's hooks measure
    one micro-batch of each shape, and the others of that shape count the same. Hooks cost time and
    switch off PyTorch's check for changed tensors, so the other micro-batches run without.
    """

    def __init__(
        self, parameters: Sequence[torch.Tensor], masters: Sequence[torch.Tensor] | None = None
    ):
        self.parameters = parameters
        self.masters = parameters if masters is None else masters  # that the optimizer steps
        self._in_flight: dict[int, MemoryUsage] = {}
        self._now = MemoryUsage()
        self._versions = 0
        self.clear()

    def clear(self) -> None:
        """Start new peaks, and measure every shape again."""
        self.peak = MemoryUsage()
        self.copied = 0.0  # share of the parameters that a graph keeps copies of
        self._of_shape: dict[torch.Size, MemoryUsage] = {}

    def hold_input(self, microbatch: int, input: torch.Tensor) -> None:
        """Note that `microbatch` holds its `input` alone, until `release`."""
        self._hold(microbatch, MemoryUsage(activations=input.nbytes))

    def saving(self, microbatch: int, input: torch.Tensor) -> AbstractContextManager[None]:
        """Return a context in which autograd saves tensors for `microbatch`, which holds them until
        `release`. Inside, the module runs on `input`."""
        if input.shape in self._of_shape:
            self._hold(microbatch, self._of_shape[input.shape])
            return nullcontext()
        return self._measuring(microbatch, input.shape)

    def add_activations(self, microbatch: int, bytes: int) -> None:
        """Add `bytes` to what `microbatch` holds: gradients between the halves of its backward."""
        held = self._in_flight[microbatch]
        self._in_flight[microbatch] = MemoryUsage(held.activations + bytes, held.copies)
        self._now.activations += bytes
        self._note_peak()

    def note_versions(self, bytes: int) -> None:
        """Note the bytes of other versions of the parameters that the policy holds now."""
        self._versions = bytes
        self._note_peak()

    def before_update(self) -> None:
        """Note the bytes of the gradients, which are complete at the end of a window."""
        found = (_nbytes(p.grad) for p in self.masters if p.grad is not None)
        self.peak.gradients = max(self.peak.gradients, sum(found))

    def after_update(self, optimizer: torch.optim.Optimizer) -> None:
        """Note the bytes of the state of `optimizer`, which is complete after its first step."""
        state = (value for kept in optimizer.state.values() for value in kept.values())
        left = sum(_nbytes(value) for value in state if isinstance(value, torch.Tensor))
        if self.masters is not self.parameters:
            left += sum(master.nbytes for master in self.masters)
        self.peak.optimizer = max(self.peak.optimizer, left)

    def release(self, microbatch: int) -> None:
        """Subtract what `microbatch` held, whose backward is done."""
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
    def _measuring(self, microbatch: int, shape: torch.Size) -> Iterator[None]:
        parameters = self.parameters
        with saved_tensors(parameters) as saved:
            yield
        held, types = MemoryUsage(), {parameter.dtype for parameter in parameters}
        copied = 0
        for tensor in saved:
            if tensor.dtype not in types and _is_cast_of_one(parameters, tensor):
                held.copies += tensor.untyped_storage().nbytes()
                copied += tensor.numel()
            else:
                held.activations += tensor.untyped_storage().nbytes()
        self.copied = copied / sum(parameter.numel() for parameter in parameters)
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

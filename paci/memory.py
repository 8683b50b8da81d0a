"""What a stage holds for its backwards, in bytes, told apart: activations and parameter copies.

Autograd keeps the tensors that a backward will need. Most are activations. Some are the stage's
own parameters, which cost nothing, being there anyway. And some are *copies* of parameters: under
autocast a linear layer saves its own low-precision copy of the weight, so that every micro-batch
in flight holds the weights of its forward, and the stage no longer holds one version only.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch.autograd.graph import saved_tensors_hooks


@dataclass
class Held:
    """Bytes held: `activations`, and `copies` of parameters beyond the live ones."""

    activations: int = 0
    copies: int = 0


class SavedTensors:
    """Counts the bytes that the micro-batches in flight keep for their backwards.

    Storages are counted once a micro-batch. PyTorch does not check versions of tensors that pass
    through hooks, so `saving` does: an activation changed in place is still an error.
    """

    def __init__(self, parameters: Iterable[torch.Tensor]):
        self.parameters = list(parameters)
        self.clear()
        self._of: dict[int, Held] = {}

    def clear(self) -> None:
        """Start new peaks."""
        self.peak = Held()

    @property
    def now(self) -> Held:
        held = self._of.values()
        return Held(sum(h.activations for h in held), sum(h.copies for h in held))

    @contextmanager
    def saving(self, microbatch: int) -> Iterator[None]:
        """Count what autograd saves inside as held by `microbatch` until `release`."""
        live = {parameter.untyped_storage().data_ptr() for parameter in self.parameters}
        shapes = {tuple(parameter.shape) for parameter in self.parameters}
        seen: set[int] = set()
        held = self._of[microbatch] = Held()

        def pack(tensor: torch.Tensor):
            storage = tensor.untyped_storage()
            address = storage.data_ptr()
            if address not in live and address not in seen:
                seen.add(address)
                shape = tuple(tensor.shape)
                if (shape in shapes or shape[::-1] in shapes) and self._copies_parameter(tensor):
                    held.copies += storage.nbytes()
                else:
                    held.activations += storage.nbytes()
            return tensor, tensor._version

        def unpack(packed):
            tensor, version = packed
            if tensor._version != version:
                raise RuntimeError(
                    f"a tensor of shape {tuple(tensor.shape)} that the backward of micro-batch "
                    f"{microbatch} needs was changed in place after its forward"
                )
            return tensor

        with saved_tensors_hooks(pack, unpack):
            yield
        now = self.now
        self.peak.activations = max(self.peak.activations, now.activations)
        self.peak.copies = max(self.peak.copies, now.copies)

    def release(self, microbatch: int) -> None:
        """The backward of `microbatch` is done, and what it needed is gone."""
        del self._of[microbatch]

    def _copies_parameter(self, tensor: torch.Tensor) -> bool:
        return any(
            same.shape == parameter.shape and torch.equal(same, parameter.to(tensor.dtype))
            for parameter in self.parameters
            for same in ((tensor, tensor.t()) if tensor.dim() == 2 else (tensor,))
        )

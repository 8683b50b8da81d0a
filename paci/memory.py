"""What a stage holds for its backwards, in bytes, told apart: activations and parameter copies.

Autograd keeps the tensors that a backward will need. Most are activations. Some are the stage's
own parameters, which cost nothing, being there anyway. And some are *copies* of parameters: under
autocast a linear layer saves its own low-precision copy of the weight, so that every micro-batch
in flight holds the weights of its forward, and the stage no longer holds one version only.
"""

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
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

    What a forward saves depends on the shape of its input, so one micro-batch of each shape is
    weighed, through autograd's hooks, and all of that shape weigh the same. Hooks cost time and
    switch PyTorch's own check for changed tensors off; the other micro-batches are spared both.
    """

    def __init__(self, parameters: Iterable[torch.Tensor]):
        self.parameters = list(parameters)
        self._in_flight: dict[int, Held] = {}
        self._now = Held()
        self.clear()

    def clear(self) -> None:
        """Weigh anew and start new peaks."""
        self.peak = Held()
        self._of_shape: dict[torch.Size, Held] = {}

    def saving(self, microbatch: int, input: torch.Tensor) -> AbstractContextManager:
        """What autograd saves inside is held by `microbatch`, with this input, until `release`."""
        if input.shape in self._of_shape:
            self._hold(microbatch, self._of_shape[input.shape])
            return nullcontext()
        return self._weighing(microbatch, input.shape)

    def release(self, microbatch: int) -> None:
        """The backward of `microbatch` is done, and what it needed is gone."""
        held = self._in_flight.pop(microbatch)
        self._now.activations -= held.activations
        self._now.copies -= held.copies

    def _hold(self, microbatch: int, held: Held) -> None:
        self._in_flight[microbatch] = held
        self._now.activations += held.activations
        self._now.copies += held.copies
        self.peak.activations = max(self.peak.activations, self._now.activations)
        self.peak.copies = max(self.peak.copies, self._now.copies)

    @contextmanager
    def _weighing(self, microbatch: int, shape: torch.Size) -> Iterator[None]:
        """Count each storage that autograd saves inside, once, unless it is a parameter's."""
        held = Held()
        known = {parameter.untyped_storage().data_ptr() for parameter in self.parameters}
        dtypes = {parameter.dtype for parameter in self.parameters}

        def weigh(tensor: torch.Tensor) -> torch.Tensor:
            storage = tensor.untyped_storage()
            if storage.data_ptr() not in known:
                known.add(storage.data_ptr())
                if tensor.dtype not in dtypes and self._is_cast_parameter(tensor):
                    held.copies += storage.nbytes()
                else:
                    held.activations += storage.nbytes()
            return tensor

        with saved_tensors_hooks(weigh, lambda tensor: tensor):
            yield
        self._of_shape[shape] = held
        self._hold(microbatch, held)

    def _is_cast_parameter(self, tensor: torch.Tensor) -> bool:
        return any(
            same.shape == parameter.shape and torch.equal(same, parameter.to(tensor.dtype))
            for parameter in self.parameters
            for same in ((tensor, tensor.t()) if tensor.dim() == 2 else (tensor,))
        )

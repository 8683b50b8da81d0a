"""One copy of the weights, moved for the length of one action."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch

from paci.stage.weights.policy import Policy, in_place


class Moved(Policy):
    """A policy that shows an action the weights a few steps ahead, or a few steps back.

    They are written in place, so that what a forward saves *is* the parameter, and its backward
    reads what the parameter holds by then; what it held is set aside meanwhile, to the last bit.
    """

    _aside_bytes = 0

    @contextmanager
    def moved(self, steps: Sequence[torch.Tensor], times: float) -> Iterator[None]:
        """Inside, the parameters hold weights + `times` * `steps`."""
        aside = [parameter.detach().clone() for parameter in self.parameters]
        self._aside_bytes = self.bytes_of_one_copy
        with in_place(self.parameters):
            torch._foreach_add_(self.parameters, steps, alpha=times)
        try:
            yield
        finally:
            with in_place(self.parameters):
                torch._foreach_copy_(self.parameters, aside)
            self._aside_bytes = 0

"""Policies with one copy of the weights, which is moved while an action lasts."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from paci.stage.torch_private import copy_each, sums
from paci.stage.weights.policy import Policy, in_place


class Moved(Policy):
    """A policy that shows an action the weights a few steps ahead, or a few steps back.

    The parameters are written in place, so that a forward saves the parameter itself, views of it
    included, and its backward reads what the parameter holds by then. The former values are set
    aside and come back bitwise.
    """

    _aside_bytes = 0

    @contextmanager
    def moved(self, steps: list[torch.Tensor], times: float) -> Iterator[None]:
        """Let the parameters hold weights + `times` * `steps` inside."""
        aside = [parameter.detach().clone() for parameter in self.parameters]
        self._aside_bytes = self.bytes_of_one_copy
        with in_place(self.parameters):
            copy_each(self.parameters, sums(self.masters, steps, times))
        try:
            yield
        finally:
            with in_place(self.parameters):
                copy_each(self.parameters, aside)
            self._aside_bytes = 0

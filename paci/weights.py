"""Which parameters an action sees.

`live` is PACI's answer: there is one copy, every action sees the newest, and an update changes
it in place under the micro-batches in flight.
"""

from collections.abc import Callable, Sequence

import torch


class Live:
    """One copy of the weights, updated in place.

    Autograd refuses a backward through a tensor that has changed since its forward. Here the
    change is the method, so an update leaves the version counters as they are, and the backward
    reads what the parameters hold by then.
    """

    name = "live"

    def __init__(self, parameters: Sequence[torch.Tensor]):
        self.parameters = tuple(parameters)

    def update(self, step: Callable[[], None]) -> None:
        with torch.autograd._unsafe_preserve_version_counter(self.parameters):
            step()
        torch.clear_autocast_cache()  # of casts that the caller's autocast made of the old weights


WEIGHTS = {policy.name: policy for policy in (Live,)}


def build(weights: str, parameters: Sequence[torch.Tensor]) -> Live:
    """The policy called `weights` for one stage; ValueError if there is none."""
    if weights not in WEIGHTS:
        raise ValueError(f"unknown weights {weights!r}: choose from {', '.join(WEIGHTS)}")
    return WEIGHTS[weights](parameters)

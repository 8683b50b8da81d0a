"""Policies of weights: which version an action sees. One file holds one policy; `policy.py` defines
what a policy is."""

from collections.abc import Callable

import torch
from torch import nn

from paci.stage.weights.corrected import Corrected
from paci.stage.weights.double_buffered import DoubleBuffered
from paci.stage.weights.live import Live
from paci.stage.weights.policy import Policy, Position
from paci.stage.weights.predicted import Predicted
from paci.stage.weights.stashed import Stashed

MakePolicy = Callable[[nn.Module, torch.optim.Optimizer, Position], Policy]
WEIGHTS: dict[str, type[Policy]] = {
    policy.name: policy for policy in (Live, Stashed, DoubleBuffered, Predicted, Corrected)
}


def make_policy(weights: str | MakePolicy) -> MakePolicy:
    """Return the class of the policy called `weights`; return a function that makes one as it is.

    Raises ValueError for an unknown name.
    """
    if callable(weights):
        return weights
    if weights not in WEIGHTS:
        raise ValueError(f"unknown weights {weights!r}: choose from {', '.join(WEIGHTS)}")
    return WEIGHTS[weights]


__all__ = ["WEIGHTS", "MakePolicy", "Policy", "Position", "make_policy"]

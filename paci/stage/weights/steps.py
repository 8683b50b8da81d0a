"""Predictions of what an optimizer will subtract from a parameter in its next step."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.optim import SGD, Adam, AdamW, Optimizer

PredictStep = Callable[
    [torch.Tensor, Mapping[str, Any], Mapping[str, Any], torch.Tensor | None], torch.Tensor
]


def step_predictor(optimizer: Optimizer) -> PredictStep:
    """Return (parameter, its group, its state, its last gradient) -> the predicted step: the
    group's learning rate times the average that the optimizer keeps, zero before its first step.

    Raises ValueError for an optimizer of another kind.
    """
    if isinstance(optimizer, Adam | AdamW):
        return _adam
    if isinstance(optimizer, SGD):
        return _sgd
    raise ValueError(
        f"predicted weights predict the steps of Adam, AdamW and SGD, "
        f"not of {type(optimizer).__name__}"
    )


def _sgd(
    parameter: torch.Tensor,
    group: Mapping[str, Any],
    state: Mapping[str, Any],
    gradient: torch.Tensor | None,
) -> torch.Tensor:
    """Step along the momentum; without momentum, along the last gradient."""
    average = state.get("momentum_buffer")
    if average is None:
        if gradient is None:
            return torch.zeros_like(parameter)
        average = gradient.add(parameter, alpha=group["weight_decay"])
    step: torch.Tensor = group["lr"] * average
    return step


def _adam(
    parameter: torch.Tensor,
    group: Mapping[str, Any],
    state: Mapping[str, Any],
    gradient: torch.Tensor | None,
) -> torch.Tensor:
    """Step along the corrected first moment over the root of the second, with weight decay."""
    if "exp_avg" not in state:
        return torch.zeros_like(parameter)
    (beta1, beta2), step = group["betas"], state["step"]  # a tensor: no wait for the device
    root = (state["exp_avg_sq"] / (1 - beta2**step)).sqrt_().add_(group["eps"])
    direction = (state["exp_avg"] / (1 - beta1**step)).div_(root)
    if group["decoupled_weight_decay"]:
        direction.add_(parameter, alpha=group["weight_decay"])
    predicted: torch.Tensor = group["lr"] * direction
    return predicted

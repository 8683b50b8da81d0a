"""What an optimizer will subtract in its next step, if all goes on as it does."""

from collections.abc import Callable

import torch
from torch.optim import SGD, Adam, AdamW, Optimizer

PredictStep = Callable[[torch.Tensor, dict, dict, torch.Tensor | None], torch.Tensor]


def step_predictor(optimizer: Optimizer) -> PredictStep:
    """(parameter, its group, its state, its last gradient) -> the step of the group's learning
    rate along the average that the optimizer keeps; zero before its first step.

    Raises ValueError for an optimizer of another kind.
    """
    for kinds, predict_step in (((Adam, AdamW), _adam), ((SGD,), _sgd)):
        if isinstance(optimizer, kinds):
            return predict_step
    raise ValueError(
        f"predicted weights predict_step the steps of Adam, AdamW and SGD, "
        f"not of {type(optimizer).__name__}"
    )


def _sgd(parameter, group, state, gradient):
    """Along the momentum; without any, along the last gradient."""
    average = state.get("momentum_buffer")
    if average is None:
        if gradient is None:
            return torch.zeros_like(parameter)
        average = gradient.add(parameter, alpha=group["weight_decay"])
    return group["lr"] * average


def _adam(parameter, group, state, gradient):
    """Along the corrected first moment over the root of the second, and the weight decay's way."""
    if "exp_avg" not in state:
        return torch.zeros_like(parameter)
    (beta1, beta2), step = group["betas"], state["step"]  # a tensor: no wait for the device
    root = (state["exp_avg_sq"] / (1 - beta2**step)).sqrt_().add_(group["eps"])
    direction = (state["exp_avg"] / (1 - beta1**step)).div_(root)
    if group["decoupled_weight_decay"]:
        direction.add_(parameter, alpha=group["weight_decay"])
    return group["lr"] * direction

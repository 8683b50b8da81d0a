"""Checks of the modules and optimizers that a user gives to the stages of a pipeline."""

import inspect
from collections.abc import Mapping, Sequence

import torch
from torch import nn


def check_no_shared_parameters(stages: Mapping[int, nn.Module]) -> None:
    """Raise ValueError if two stages share a parameter: both would update it."""
    owner: dict[nn.Parameter, int] = {}
    for index, module in stages.items():
        for name, parameter in module.named_parameters():
            if owner.setdefault(parameter, index) != index:
                raise ValueError(
                    f"stages {owner[parameter]} and {index} share a parameter ({name}): "
                    "the stages of a pipeline must each own theirs"
                )


def check_parameters(index: int, parameters: Sequence[nn.Parameter]) -> None:
    """Raise ValueError unless stage `index` can train its `parameters`."""
    if not parameters:
        raise ValueError(f"stage {index} has no parameters to train")
    if index == 0 and not any(parameter.requires_grad for parameter in parameters):
        raise ValueError(
            "stage 0 has no parameters to train: the first stage's must not all be frozen"
        )
    if any(parameter.is_inference() for parameter in parameters):
        raise ValueError(
            f"stage {index} was made in torch.inference_mode(), where nothing can be trained: "
            "make its module outside"
        )


def check_optimizer(optimizer: object) -> None:
    """Raise ValueError unless `optimizer` is one of PyTorch's that needs no closure."""
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise ValueError(
            f"optimizer must make a torch.optim.Optimizer from a stage's parameters, "
            f"not a {type(optimizer).__name__}"
        )
    closure = inspect.signature(optimizer.step).parameters.get("closure")
    if closure is not None and closure.default is inspect.Parameter.empty:
        raise ValueError(
            f"{type(optimizer).__name__} computes the loss again in every step, which one stage "
            "cannot: choose an optimizer whose step needs no closure"
        )

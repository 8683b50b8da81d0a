"""The learning rate of a stage's optimizer, which follows the stage's own version."""

from collections.abc import Callable, Sequence

import torch

from paci.stage.weights import Position

LearningRate = Callable[[int], float]
"""Version of a stage -> factor on its optimizer's learning rate."""


class LearningRateSchedule:
    """Scales the rate of each parameter group of `optimizer` by `lr_lambda` of the version.

    Raises ValueError if `lr_lambda` is a sequence of another length than the pipeline has stages.
    """

    def __init__(
        self,
        optimizer: torch.optim.Optimizer,
        lr_lambda: LearningRate | Sequence[LearningRate] | None,
        position: Position,
    ):
        if isinstance(lr_lambda, Sequence):
            if len(lr_lambda) != position.stages:
                raise ValueError(
                    f"lr_lambda must be one function or one for each of the {position.stages} "
                    f"stages, not {len(lr_lambda)} functions"
                )
            lr_lambda = lr_lambda[position.index]
        self._position = position
        self._optimizer = optimizer
        self._lr_lambda = lr_lambda
        self._full_rates = [group["lr"] for group in optimizer.param_groups]
        self._rates = self._full_rates

    @property
    def rate(self) -> float:
        """The learning rate of the next update, in the first parameter group."""
        return float(self._optimizer.param_groups[0]["lr"])

    def follow(self, version: int) -> None:
        """Set the rates of the update that makes `version` + 1."""
        factor = self._lr_lambda(version) if self._lr_lambda else 1.0
        self._rates = [rate * factor for rate in self._full_rates]
        for group, rate in zip(self._optimizer.param_groups, self._rates, strict=True):
            group["lr"] = rate

    def check_untouched(self) -> None:
        """Raise ValueError if other code sets the rates, which would be overwritten."""
        for group, rate in zip(self._optimizer.param_groups, self._rates, strict=True):
            if "initial_lr" in group or group["lr"] != rate:
                raise ValueError(
                    f"the learning rate of stage {self._position.index} is set by somebody else "
                    "(a scheduler of torch.optim?), but it must follow the stage's own version: "
                    "give the pipeline an lr_lambda"
                )

"""How late a stage's gradients are in asynchronous pipelines, and a step that allows for it."""

from collections.abc import Callable

from paci.schedules.theory import in_flight_bound


def mean_delay(stages: int, stage: int, accumulation: int, slack: int = 0) -> float:
    """Updates between a micro-batch's forward and the update that uses its gradient, on average,
    once PACI's pipeline is full: one in `accumulation` of the backwards in between."""
    return (in_flight_bound(stages, stage, slack) - 1) / accumulation


def rescaled(
    lr_lambda: Callable[[int], float], delay: float, anneal: int
) -> Callable[[int], float]:
    """PipeMare's learning rate rescheduling, T1 (Yang et al., MLSys 2021).

    The step is divided by delay^p; p falls from 1 to 0 over the first `anneal` updates.
    A stage whose delay is below one update steps as if there were none.

    >>> factor = rescaled(lambda version: 1.0, delay=4.0, anneal=2)
    >>> [factor(version) for version in range(3)]
    [0.25, 0.5, 1.0]
    """

    def factor(version: int) -> float:
        power = 1 - min(version / anneal, 1) if anneal else 0
        return lr_lambda(version) / max(1.0, delay) ** power

    return factor

"""The delay of a stage's gradients in an asynchronous pipeline, and PipeMare's step for it."""

from collections.abc import Callable


def delay_of_limit(limit: int, accumulation: int) -> float:
    """Return the mean updates between a forward and the update that uses its gradient, once the
    pipeline is full, at a stage that holds `limit` micro-batches under PACI.

    Between a forward and its own backward run limit - 1 others, and every `accumulation`-th ends
    in an update.
    """
    return (limit - 1) / accumulation


def rescaled(
    lr_lambda: Callable[[int], float], delay: float, anneal: int
) -> Callable[[int], float]:
    """Return `lr_lambda` with PipeMare's learning rate rescheduling, T1 (Yang et al., MLSys 2021).

    The step is divided by delay^p, where p falls linearly from 1 to 0 over the first `anneal`
    updates. A delay below one update changes nothing.

    >>> factor = rescaled(lambda version: 1.0, delay=4.0, anneal=2)
    >>> [factor(version) for version in range(3)]
    [0.25, 0.5, 1.0]
    """

    def factor(version: int) -> float:
        power = 1 - min(version / anneal, 1) if anneal else 0
        return lr_lambda(version) / max(1.0, delay) ** power

    return factor

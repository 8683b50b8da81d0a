"""Learning rates: the factor on the peak, as a function of a stage's own version.

    cosine     ╱⎺╲_       warm-up, then a cosine to `final` at the last update
    constant   ╱⎺⎺⎺       warm-up, then the peak
    wsd        ╱⎺⎺╲       warm-up, the peak and, over the last `cooldown`, a fall to `final`

Before the fall, the last two do not depend on the number of updates, so a run can be made longer.
wsd (warm-up, stable, decay) is the schedule of Hu et al. (MiniCPM, 2024), with the fall of Hägele
et al. (NeurIPS 2024). This file loads no torch.
"""

import math
from collections.abc import Callable

from omegaconf import DictConfig

from experiments.config.derived import cooldown_updates, method_of, warmup_updates
from paci.schedules.delay import rescaled

Factor = Callable[[int], float]


def learning_rates(config: DictConfig, updates: int) -> list[Factor]:
    """Return each stage's factor on the peak learning rate, as a function of its version.

    The factor is that of `optimizer.schedule` and, for the first `optimizer.anneal` of the updates,
    PipeMare's smaller steps for late gradients (T1).
    """
    settings, method = config.optimizer, method_of(config)
    factor = schedule(config, updates)
    delays = [method.mean_delay(config.stages, stage) for stage in range(config.stages)]
    return [rescaled(factor, delay, round(settings.anneal * updates)) for delay in delays]


def schedule(config: DictConfig, updates: int) -> Factor:
    """Return the factor of `optimizer.schedule`."""
    settings = config.optimizer
    rising = warmup_updates(config, updates)
    if settings.schedule == "constant":
        return constant(rising)
    if settings.schedule == "wsd":
        return wsd(updates, rising, cooldown_updates(config, updates), settings.final)
    return cosine(updates, rising, settings.final)


def constant(rising: int) -> Factor:
    """Return a factor that rises linearly to 1 over the first `rising` updates."""
    return lambda version: min(1.0, (version + 1) / rising)


def cosine(updates: int, rising: int, final: float) -> Factor:
    """Return a factor that rises as `constant` and then falls as a cosine to `final`."""

    def factor(version: int) -> float:
        if version < rising:
            return (version + 1) / rising
        progress = min(1.0, (version - rising) / max(1, updates - 1 - rising))
        return final + (1 - final) * (1 + math.cos(math.pi * progress)) / 2

    return factor


def wsd(updates: int, rising: int, falling: int, final: float) -> Factor:
    """Return a factor that rises as `constant` and falls to `final` over the last `falling` of the
    updates, as 1 - sqrt(progress)."""
    stable = constant(rising)

    def factor(version: int) -> float:
        fallen = version + 1 - (updates - falling)
        if fallen <= 0:
            return stable(version)
        progress = min(1.0, fallen / falling)
        return stable(version) * (final + (1 - final) * (1 - math.sqrt(progress)))

    return factor

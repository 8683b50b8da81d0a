"""Quantities that follow from a configuration: sizes, times, the method."""

import math
from dataclasses import fields
from typing import Any, cast

from omegaconf import DictConfig, OmegaConf

from paci import microbatches
from paci.cost import Cost, PerStage
from paci.method import Method
from paci.schedules import Schedule


def updates(config: DictConfig) -> int:
    """Return the updates that the token budget allows.

    A throughput run repeats itself: the result is that of one repetition.
    """
    if config.task == "throughput":
        return windows(config)
    return config.tokens // (config.batch * config.model.context)


def segment_ends(config: DictConfig) -> list[int]:
    """Return the updates after which the pipeline drains, to evaluate and to write a checkpoint."""
    count, parts = updates(config), config.evaluations
    return [count * part // parts for part in range(1, parts + 1)]


def warmup_updates(config: DictConfig, updates: int) -> int:
    """Return the updates of the warm-up of a run of so many `updates`."""
    warmup = config.optimizer.warmup
    return warmup if warmup > 1 else max(1, round(warmup * updates))


def stable_end(config: DictConfig) -> int | None:
    """Return the last update at which the pipeline drains before the learning rate falls, if the
    schedule is one whose runs can be made longer from there; None if there is none."""
    if config.optimizer.schedule != "wsd":
        return None
    stable = updates(config) - cooldown_updates(config, updates(config))
    return max((end for end in segment_ends(config) if end <= stable), default=None)


def cooldown_updates(config: DictConfig, updates: int) -> int:
    """Return the last updates of a run of so many `updates`, in which the rate of wsd falls."""
    return round(config.optimizer.cooldown * updates)


def microbatch_sizes(config: DictConfig) -> list[int]:
    """Return the sequences of each micro-batch of a window; ValueError if one would be empty."""
    return microbatches.sizes(config.batch, config.method.accumulation)


def microbatch_size(config: DictConfig) -> int:
    """Return the sequences of the first micro-batch of a window, which no other exceeds."""
    return microbatch_sizes(config)[0]


def layers_of(config: DictConfig) -> list[int]:
    """Return the layers of each stage that `model.partition` gives: its own list, or with
    `even-less-ends` equally many, but one less at the first and the last stage, which have the
    embedding and the head, as in Llama 3 (arXiv 2407.21783).

    Raises ValueError for a list that does not fit the model and the stages.
    """
    given, stages, layers = config.model.partition, config.stages, config.model.layers
    if given != "even-less-ends":
        if len(given) != stages or sum(given) != layers or 0 in given[1:-1]:
            raise ValueError(
                f"model.partition must give {stages} stages {layers} layers together, at least one "
                f"each between the first and the last, not {list(given)}"
            )
        return list(given)
    if stages == 1:
        return [layers]
    whole, more = divmod(layers + 2, stages)
    first = (stages - more) // 2  # of the stages with one more, which are in the middle
    counts = [whole + (first <= stage < first + more) for stage in range(stages)]
    counts[0] -= 1
    counts[-1] -= 1
    if 0 in counts[1:-1]:
        raise ValueError(
            f"model.partition=even-less-ends needs a layer for each stage between the first and "
            f"the last: {layers} layers are too few for {stages} stages"
        )
    return counts


def full_after(config: DictConfig) -> int:
    """Return the updates after which the pipeline is full: every stage has had a micro-batch."""
    return math.ceil(config.stages / config.method.accumulation)


def windows(config: DictConfig) -> int:
    """Return the updates of one throughput repetition, those that fill the pipeline included."""
    measured = math.ceil(config.throughput.microbatches / config.method.accumulation)
    return full_after(config) + measured


def repeats_exactly(config: DictConfig) -> bool:
    """Return whether two repetitions of a throughput run take the same time to the last digit: on
    the simulated clock, whose measured costs have no jitter."""
    return config.executor.name == "local"


def schedule_of(config: DictConfig) -> Schedule:
    """Return the schedule of the configured method.

    Raises ValueError if its sizes or options do not fit.
    """
    return method_of(config).schedule_of(config.stages)


def method_of(config: DictConfig) -> Method:
    """Return the configured method."""
    table = cast(dict[str, Any], OmegaConf.to_container(config.method))
    return Method.read(table, config.optimizer.name)


def ranks(config: DictConfig) -> int:
    """Return the number of processes that a run of `config` needs."""
    return 1 if config.executor.name == "local" else len(schedule_of(config).placement)


def is_measured(config: DictConfig) -> bool:
    """Return whether the simulated clock uses times measured on this machine, not given ones."""
    return config.executor.get("cost") == "measured"


def cost_of(config: DictConfig) -> Cost:
    """Return the times of a micro-batch: those configured for one sequence, times its sequences.

    The time of an update does not depend on them. Raises ValueError for anything but a table of
    times.
    """
    table, (largest, *others) = config.executor.cost, microbatch_sizes(config)
    if not isinstance(table, DictConfig):
        raise ValueError(f"executor.cost must be a table of times or measured, not {table!r}")
    times = cast(dict[str, Any], OmegaConf.to_container(table))
    unknown = set(times) - {field.name for field in fields(Cost)} | set(times) & {"sizes"}
    if unknown:
        raise ValueError(f"executor.cost has no time called {unknown.pop()!r}")
    for name in ("forward", "backward", "weight", "input", "transfer"):
        of_one = times.get(name)
        if of_one is None:
            continue
        try:
            times[name] = _times(largest, of_one)
        except (TypeError, ValueError):
            raise ValueError(f"executor.cost.{name} must be a time, not {of_one!r}") from None
    cost = Cost(**times, sizes=[1.0, *(size / largest for size in others)])
    again = config.executor.recompute == "stage" and config.executor.name == "local"
    return cost.with_recomputation() if again else cost  # an emulated stage waits for it itself


def _times(count: int, time: Any) -> PerStage:
    """Return `time`, a number or a list of one per stage, multiplied by `count`."""
    if isinstance(time, list | tuple):
        return [count * float(each) for each in time]
    return count * float(time)

"""Longer training: a run goes on to more tokens if what it has done also begins the longer run.

10 updates   ────┼────┤
20 updates   ────┼────┼────┼────┤     the same learning rates and the same drains so far
"""

import shlex
from collections.abc import Iterable
from copy import deepcopy
from pathlib import Path

from omegaconf import DictConfig

from experiments.config.derived import segment_ends, updates
from experiments.config.own import overrides_of
from experiments.optimizers.rates import learning_rates


def going_on_from(shorter: DictConfig, longer: DictConfig, taken: Iterable[int]) -> int | None:
    """Return the last of the updates `taken`, at which checkpoints are, until which runs of both
    configurations are the same; None if there is none.

    The configurations differ only in `tokens` and `evaluations`.
    """
    able = [
        update
        for update in taken
        if _same_drains(shorter, longer, update) and _same_rates(shorter, longer, update)
    ]
    return max(able, default=None)


def why_not(shorter: DictConfig, longer: DictConfig, taken: Iterable[int], run: Path) -> str:
    """Return the sentence for a run, in the folder `run`, that is not `going_on_from` anywhere: why
    it cannot go on, and what can be done instead."""
    taken = list(taken)
    if not taken:
        return f"{run} has no checkpoint to go on from: choose another folder with runs=..."
    if not any(_same_rates(shorter, longer, update) for update in taken):
        command = shlex.join(["python", "-m", "experiments.train", *_anew(shorter, longer, run)])
        return (
            f"{run} cannot go on to tokens={longer.tokens}, as its learning rates "
            f"(optimizer.schedule={shorter.optimizer.schedule}) were those of "
            f"tokens={shorter.tokens}: start a run from its weights with {command}"
        )
    spaced = deepcopy(longer)
    spaced.evaluations = shorter.evaluations * updates(longer) // updates(shorter)
    if going_on_from(shorter, spaced, taken) is not None:
        wanted = f"give evaluations={spaced.evaluations}"
    else:
        wanted = f"it can go on to a multiple of that, but not to tokens={longer.tokens}"
    return (
        f"{run} was evaluated every {shorter.tokens / shorter.evaluations:.10g} tokens, which must "
        f"stay so: {wanted}"
    )


def _same_drains(shorter: DictConfig, longer: DictConfig, update: int) -> bool:
    """Return whether the pipeline drains at the same updates up to `update`."""
    one, other = (
        [end for end in segment_ends(config) if end <= update] for config in (shorter, longer)
    )
    return one == other


def _same_rates(shorter: DictConfig, longer: DictConfig, update: int) -> bool:
    """Return whether all stages have the same learning rates up to `update`."""
    factors = (learning_rates(config, updates(config)) for config in (shorter, longer))
    return all(
        one(version) == other(version)
        for one, other in zip(*factors, strict=True)
        for version in range(update)
    )


def _anew(shorter: DictConfig, longer: DictConfig, run: Path) -> list[str]:
    """Return overrides for a run from the weights of `run`, in another order of the text, on the
    tokens by which `longer` is longer."""
    config = deepcopy(longer)
    of_an_update = config.batch * config.model.context
    config.tokens = max(longer.tokens - shorter.tokens, of_an_update)
    config.evaluations = min(longer.evaluations, updates(config))
    config.weights_from, config.experiment = str(run), None
    config.data.order_seed += 1
    config.runs = f"{longer.runs}-longer"
    return overrides_of(config)

"""The launcher of this process: torchrun or SLURM start ranks, each a process that calls the same
command. Both describe the rank in the environment of its process."""

import os

from omegaconf import DictConfig

from experiments.config.derived import ranks

NAMES = {
    "torchrun": ("RANK", "WORLD_SIZE"),
    "SLURM": ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
}
"""Variables with the rank of a process and the number of ranks, by starter."""


def started_by() -> str | None:
    """Return the name of what started this process as one rank of several; None if nothing did.

    A shell in an allocation of several tasks is no rank: its job step has a single task.
    """
    if "TORCHELASTIC_RUN_ID" in os.environ:
        return "torchrun"
    _, size = NAMES["SLURM"]
    return "SLURM" if int(os.environ.get(size, 1)) > 1 else None


def is_first() -> bool:
    """Return whether this is the only process of the run, or its rank 0."""
    starter = started_by()
    return starter is None or int(os.environ[NAMES[starter][0]]) == 0


def check_started(config: DictConfig) -> None:
    """Raise ValueError unless as many ranks were started as the run needs.

    Only for a process that `started_by` calls a rank.
    """
    starter = started_by()
    assert starter is not None
    given, needed = int(os.environ[NAMES[starter][1]]), ranks(config)
    if config.executor.name == "local":
        raise ValueError(f"{starter} starts ranks for executor=distributed, not for local")
    if given != needed:
        raise ValueError(f"{starter} must start {needed} processes for this run, not {given}")

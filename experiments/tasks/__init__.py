"""What a run does with its pipeline: training, or throughput."""

from experiments.tasks.throughput import Throughput
from experiments.tasks.training import Diverged, Training

TASKS = {"training": Training, "throughput": Throughput}
"""By the name that `task` has in a configuration."""

__all__ = ["TASKS", "Diverged", "Throughput", "Training"]

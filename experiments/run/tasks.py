"""What a run does with its pipeline: training, or throughput."""

from experiments.run.throughput import Throughput
from experiments.run.training import Diverged, Training

TASKS = {"training": Training, "throughput": Throughput}
"""By the name that `task` has in a configuration."""

__all__ = ["TASKS", "Diverged", "Throughput", "Training"]

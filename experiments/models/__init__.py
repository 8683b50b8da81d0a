"""Models as chains of stages: each stage is a module, and a rank builds only its own."""

from experiments.models.flops import count_flops
from experiments.models.gpt2 import (
    GPT2Stage,
    build_stage,
    build_stages,
    config,
    loss,
    unit_names,
)
from experiments.models.measure import measure_units
from experiments.models.pretrained import save_index, save_stage

__all__ = [
    "GPT2Stage",
    "build_stage",
    "build_stages",
    "config",
    "count_flops",
    "loss",
    "measure_units",
    "save_index",
    "save_stage",
    "unit_names",
]

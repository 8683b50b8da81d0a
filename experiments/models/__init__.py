"""Models as chains of stages: each stage is a module, a rank builds only its own."""

from experiments.models.gpt2 import (
    GPT2Stage,
    build_stage,
    build_stages,
    config,
    loss,
    unit_names,
)
from experiments.models.measure import measure_units
from experiments.models.pretrained import save_pretrained

__all__ = [
    "GPT2Stage",
    "build_stage",
    "build_stages",
    "config",
    "loss",
    "measure_units",
    "save_pretrained",
    "unit_names",
]

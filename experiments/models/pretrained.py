"""Write stages as a folder that transformers reads.

The layout is transformers' own for sharded models: a safetensors file per stage, and an index over
them. Each rank writes its own stages, so no process ever holds the whole model.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import nn
from transformers.utils import SAFE_WEIGHTS_INDEX_NAME

from experiments.models.gpt2 import GPT2Stage, config


def save_stage(stage: nn.Module, index: int, stages: int, folder: Path) -> None:
    """Write stage `index` of `stages`.

    `GPT2LMHeadModel.from_pretrained(folder)` loads the model once all stages and the index are
    written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    save_file(stage.state_dict(), folder / _shard(index, stages), metadata={"format": "pt"})


def save_index(model: Any, vocabulary: int, cut: Sequence[range], folder: Path) -> None:
    """Write the model's configuration, and the index of which stage of `cut` has which weights."""
    folder.mkdir(parents=True, exist_ok=True)
    shard_of: dict[str, str] = {}
    total_size = 0
    for index, stage in enumerate(_without_weights(model, vocabulary, cut)):
        weights = stage.state_dict()
        shard_of |= dict.fromkeys(weights, _shard(index, len(cut)))
        total_size += sum(weight.nbytes for weight in weights.values())
    contents = {"metadata": {"total_size": total_size}, "weight_map": shard_of}
    (folder / SAFE_WEIGHTS_INDEX_NAME).write_text(json.dumps(contents, indent=2) + "\n")
    config(model, vocabulary).save_pretrained(folder)


def _without_weights(model: Any, vocabulary: int, cut: Sequence[range]) -> list[GPT2Stage]:
    with torch.device("meta"):
        return [GPT2Stage(config(model, vocabulary), units) for units in cut]


def _shard(index: int, stages: int) -> str:
    return f"model-{index + 1:05}-of-{stages:05}.safetensors"

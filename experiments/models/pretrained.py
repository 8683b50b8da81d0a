"""Stages out, a folder that transformers reads in."""

import json
from collections.abc import Sequence
from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers import GPT2Config
from transformers.utils import SAFE_WEIGHTS_INDEX_NAME

from experiments.models.gpt2 import GPT2Stage, unit_names


def save_pretrained(stages: Sequence[GPT2Stage], config: GPT2Config, folder: str | Path) -> None:
    """Write all the stages so that `GPT2LMHeadModel.from_pretrained(folder)` reads them.

    One safetensors file per stage and an index over them, transformers' own sharded layout: no
    second copy of the model is made. Raises ValueError, before it writes anything, if the stages
    together do not hold each of the model's parameters once.
    """
    held = [name for stage in stages for name in stage.state_dict()]
    with torch.device("meta"):
        whole = GPT2Stage(config, range(len(unit_names(config)))).state_dict()
    if sorted(held) != sorted(whole):
        missing = sorted(whole.keys() - set(held))
        surplus = sorted(name for name in set(held) if name not in whole or held.count(name) > 1)
        raise ValueError(
            f"the stages are not one whole model: missing {missing}, foreign or twice {surplus}"
        )

    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    shard_of, total_size = {}, 0
    for index, stage in enumerate(stages):
        shard = f"model-{index + 1:05}-of-{len(stages):05}.safetensors"
        weights = stage.state_dict()
        save_file(weights, folder / shard, metadata={"format": "pt"})
        shard_of |= dict.fromkeys(weights, shard)
        total_size += sum(weight.nbytes for weight in weights.values())
    contents = {"metadata": {"total_size": total_size}, "weight_map": shard_of}
    (folder / SAFE_WEIGHTS_INDEX_NAME).write_text(json.dumps(contents, indent=2) + "\n")
    config.save_pretrained(folder)

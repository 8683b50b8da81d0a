"""Where a run's model is cut into stages."""

import json
from pathlib import Path

import torch
from filelock import FileLock
from omegaconf import DictConfig

from experiments.models import measure_units
from experiments.runfolder import replace
from paci.partition import partition


def cut_for(config: DictConfig, vocabulary: int) -> list[range] | None:
    """The units of each stage, or None for the model's own cut, which balances counted FLOPs.

    `model.partition=measured` balances measured times under the device's memory. Two
    measurements never agree exactly and the cut decides what dropout draws, so it is measured
    once for a folder of runs and kept there in cut.json.
    """
    if config.model.partition == "flops":
        return None
    microbatch = config.batch // config.method.accumulation
    key = f"{config.model.name} {config.stages} stages, {microbatch} sequences, {_device(config)}"
    file = Path(config.runs) / "cut.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(file.with_suffix(".lock")):
        kept = json.loads(file.read_text()) if file.exists() else {}
        if key not in kept:
            units = measure_units(config.model, vocabulary, microbatch, config.executor.device)
            cut = partition(units, config.stages, _memory(config), slack=config.method.slack)
            kept[key] = [[run.start, run.stop] for run in cut]
            replace(file, json.dumps(kept, indent=1))
    return [range(start, stop) for start, stop in kept[key]]


def _device(config: DictConfig) -> str:
    return torch.cuda.get_device_name() if config.executor.device == "cuda" else "cpu"


def _memory(config: DictConfig) -> int | None:
    if config.executor.device != "cuda":
        return None
    return torch.cuda.get_device_properties(0).total_memory

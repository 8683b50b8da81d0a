"""Where a run's model is cut into stages."""

import json
from pathlib import Path

import torch
from filelock import FileLock
from omegaconf import DictConfig, OmegaConf

from experiments import models
from experiments.runfolder import replace
from paci.partition import partition


def cut_for(config: DictConfig, vocabulary: int) -> list[range]:
    """The units of each stage, balanced on counted FLOPs or, with `model.partition=measured`, on
    measured times under the device's memory.

    Two measurements never agree exactly and the cut decides what dropout draws, so it is measured
    once for a folder of runs and kept there in cut.json.
    """
    if config.model.partition == "flops":
        gpt2 = models.config(config.model, vocabulary)
        return partition(models.count_flops(gpt2), config.stages)
    key = json.dumps(
        {
            "model": OmegaConf.to_container(config.model),
            "vocabulary": vocabulary,
            "stages": config.stages,
            "sequences": config.batch // config.method.accumulation,
            "slack": config.method.slack,
            "precision": config.executor.precision,
            "device": _device_name(config),
        }
    )
    file = Path(config.runs) / "cut.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(file.with_suffix(".lock")):
        kept = json.loads(file.read_text()) if file.exists() else {}
        if key not in kept:
            kept[key] = [[run.start, run.stop] for run in _measured(config, vocabulary)]
            replace(file, json.dumps(kept, indent=1))
    return [range(start, stop) for start, stop in kept[key]]


def _measured(config: DictConfig, vocabulary: int) -> list[range]:
    executor, microbatch = config.executor, config.batch // config.method.accumulation
    low = executor.precision == "bfloat16-autocast"
    with torch.autocast(executor.device, torch.bfloat16, enabled=low, cache_enabled=False):
        units = models.measure_units(config.model, vocabulary, microbatch, executor.device)
    return partition(units, config.stages, _memory(config), slack=config.method.slack)


def _device_name(config: DictConfig) -> str:
    return torch.cuda.get_device_name() if config.executor.device == "cuda" else "cpu"


def _memory(config: DictConfig) -> int | None:
    """Bytes that a stage may take: a device's own, shared if it holds all stages."""
    if config.executor.device != "cuda":
        return None
    total = torch.cuda.get_device_properties(0).total_memory
    return total // config.stages if config.executor.name == "local" else total

"""The cut of a run's model into stages."""

from concurrent.futures import ProcessPoolExecutor
from itertools import accumulate, pairwise
from multiprocessing import get_context
from pathlib import Path

import torch
from omegaconf import DictConfig, OmegaConf

from experiments import models
from experiments.config.derived import layers_of, microbatch_size, schedule_of
from experiments.run.cache import cached
from paci.partition import UnitCost, partition, peak_in_flight
from runlog import CUTS


def cut_for(config: DictConfig, vocabulary: int) -> list[range]:
    """Return the units of each stage, balanced on counted FLOPs or, with
    `model.partition=measured`, on measured times under the device's memory; or by layers, as
    `layers_of` says.

    The cut decides what dropout draws. So the runs of a folder share a measured one, in cut.json:
    one for each executor, device and limit.
    """
    if config.model.partition == "flops":
        gpt2 = models.config(config.model, vocabulary)
        return partition(models.count_flops(gpt2), config.stages)
    if config.model.partition != "measured":
        return _by_layers(layers_of(config))
    key = {
        "model": OmegaConf.to_container(config.model),
        "vocabulary": vocabulary,
        "stages": config.stages,
        "sequences": microbatch_size(config),
        "in_flight": peak_in_flight(schedule_of(config)),
        "precision": config.executor.precision,
        "device": _device_name(config),
        "executor": config.executor.name,
        "limit": _device_bytes(config),
    }
    cut = cached(Path(config.runs) / CUTS, key, lambda: _measured(config, vocabulary))
    return [range(*ends) for ends in cut]


def _by_layers(layers: list[int]) -> list[range]:
    """Return the units of stages that have so many layers, of two units each; the first stage has
    the embedding besides, the last the head."""
    stops = [1 + 2 * count for count in accumulate(layers)]
    stops[-1] += 1
    return [range(start, stop) for start, stop in pairwise([0, *stops])]


def _measured(config: DictConfig, vocabulary: int) -> list[list[int]]:
    """Return the first unit of each stage, and the one after its last."""
    if config.executor.device == "cuda":
        # Measured in this process, the context and the cached blocks would stay on the device of
        # stage 0, which holds the most micro-batches.
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as child:
            units = child.submit(_unit_costs, config, vocabulary).result()
    else:
        units = _unit_costs(config, vocabulary)
    cut = partition(
        units,
        config.stages,
        _device_bytes(config),
        in_flight=peak_in_flight(schedule_of(config)),
        shared=config.executor.name == "local",
    )
    return [[run.start, run.stop] for run in cut]


def _unit_costs(config: DictConfig, vocabulary: int) -> list[UnitCost]:
    executor = config.executor
    torch.set_num_threads(executor.threads)
    low = executor.precision == "bfloat16-autocast"
    with torch.autocast(executor.device, torch.bfloat16, enabled=low, cache_enabled=False):
        return models.measure_units(
            config.model, vocabulary, microbatch_size(config), executor.device
        )


def _device_name(config: DictConfig) -> str:
    return torch.cuda.get_device_name() if config.executor.device == "cuda" else "cpu"


def _device_bytes(config: DictConfig) -> int | None:
    """Return the bytes of the device that holds a stage or, with executor=local, all of them; None
    for a processor, whose memory is not bounded."""
    if config.executor.device != "cuda":
        return None
    return torch.cuda.get_device_properties(0).total_memory

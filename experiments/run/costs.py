"""The times on a run's simulated clock: given, or measured on this machine.

With `executor.cost=measured` they are the seconds that each stage of the run's model takes for a
micro-batch on this machine, with the run's precision and number of threads. All methods of a
comparison share one table.
"""

import statistics
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from omegaconf import DictConfig, OmegaConf

from experiments import data, models
from experiments.config.derived import cost_of, is_measured, microbatch_sizes
from experiments.optimizers.optimizer import make_optimizer
from experiments.run.cache import cached, read_cost
from experiments.run.cut import cut_for
from experiments.run.environment import processor
from experiments.run.folder import RunFolder
from experiments.run.stages import compute_of, stage_module
from experiments.run.stopwatch import now
from paci import Cost
from paci.stage.stage import Stage
from runlog import COST, COSTS, write_json

WINDOW = 4  # micro-batches of an update: all but the first add to gradients that are there
WARM_UP = WINDOW  # micro-batches; the first update makes the optimizer's state
LEAST, ENOUGH = 6 * WINDOW, 0.25
"""Micro-batches that are timed of each stage, and seconds of them: both are reached."""


def cost_for(folder: RunFolder, vocabulary: int, cut: list[range]) -> Cost:
    """Return the times of a micro-batch of the run in `folder`: given, or measured.

    Measured times are copied to cost.json in the run's folder, and a resumed run goes on with
    them. They come from costs.json in the folder of runs, and are measured now if they are not
    there.
    """
    config = folder.config
    if not is_measured(config):
        return cost_of(config)
    file = folder.path / COST
    if not file.exists():
        write_json(file, _cost_table(config, vocabulary, cut))
    return read_cost(file, config.stages)


def _cost_table(config: DictConfig, vocabulary: int, cut: list[range]) -> dict[str, Any]:
    """Return the content of cost.json: the times of the largest micro-batch and, where others have
    a sequence less, `sizes`, by what part of the time of all forwards and backwards those take."""
    tables = {
        size: table_for(config, vocabulary, cut, size) for size in {*microbatch_sizes(config)}
    }
    largest, *others = microbatch_sizes(config)
    table = tables[largest] | {"transfer": largest * config.executor.get("transfer", 0.0)}
    if len(tables) == 1:
        return table
    work = {size: sum(it["forward"]) + sum(it["backward"]) for size, it in tables.items()}
    return table | {"sizes": [1.0, *(work[size] / work[largest] for size in others)]}


def measure_all(configs: Sequence[dict]) -> None:
    """Measure the tables that `cost_for` needs for runs of `configs`. An error with one of them
    (it does not fit into memory, say) comes again in its run, which then says so."""
    for config in map(DictConfig, configs):
        try:
            vocabulary = data.load(config.data, verify=False).vocabulary
            cut = cut_for(config, vocabulary)
            for size in {*microbatch_sizes(config)}:
                table_for(config, vocabulary, cut, size)
        except Exception:
            traceback.print_exc()


def table_for(
    config: DictConfig, vocabulary: int, cut: list[range], microbatch: int
) -> dict[str, Any]:
    """Return {"microbatch": sequences, "forward": [seconds of each stage], ...} from costs.json in
    the folder of runs: the same table for every run of this model, cut, size of micro-batches,
    precision, optimizer and machine."""
    executor = config.executor
    key = {
        "model": OmegaConf.to_container(config.model),
        "vocabulary": vocabulary,
        "cut": [[units.start, units.stop] for units in cut],
        "microbatch": microbatch,
        "precision": executor.precision,
        "recompute": executor.recompute,
        "compile": executor.compile,
        "optimizer": config.optimizer.name,
        "threads": executor.threads,
        "device": torch.cuda.get_device_name() if executor.device == "cuda" else processor(),
    }

    def table() -> dict:
        return {"microbatch": microbatch} | measure(config, vocabulary, cut, microbatch)

    return cached(Path(config.runs) / COSTS, key, table)


def measure(
    config: DictConfig, vocabulary: int, cut: list[range], microbatch: int
) -> dict[str, list[float]]:
    """Return the median seconds (of `now`) of each stage for a micro-batch of `microbatch`
    sequences.

    forward, backward   with as many micro-batches in flight as 1F1B has at that stage
    input, weight       the two halves of a backward that a schedule splits; at the first stage the
                        first half does nothing and the second all
    update              of the optimizer, once a window

    The times include all that a stage does: statistics, dropout, the loss at the last stage. They
    leave out messages and, as weights are live, copies and predictions of weights. On a GPU an
    action ends when the device has finished it, so the launch of its kernels is included. Stages
    are measured one after the other, each alone in memory and on random tokens.
    """
    torch.set_num_threads(config.executor.threads)
    tokens = torch.randint(vocabulary, (microbatch, config.model.context))
    times: dict[str, list[float]] = {}
    hidden = tokens
    for index in range(config.stages):
        module = stage_module(config, vocabulary, cut, index)

        def stage(index: int = index, module: torch.nn.Module = module) -> Stage:
            return Stage(
                index,
                config.stages,
                module,
                10**6,  # further than we count: windows are ours to close
                make_optimizer(config),
                loss_fn=models.loss,
                seed=config.seed,
                compute=compute_of(config),
            )

        output = stage().evaluate(hidden, tokens)
        gradient = None if index == config.stages - 1 else torch.randn_like(output)
        split = _time(stage(), hidden, tokens, gradient, split=True)
        for name, seconds in (split | _time(stage(), hidden, tokens, gradient)).items():
            times.setdefault(name, []).append(seconds)
        hidden = output
    return times


def _time(
    stage: Stage,
    input: torch.Tensor,
    target: torch.Tensor,
    gradient: torch.Tensor | None,
    split: bool = False,
) -> dict[str, float]:
    """Return the median seconds of a stage's actions in the steady state of 1F1B."""
    seconds: dict[str, list[float]] = {}

    def timed(name: str, action: Callable, *arguments) -> None:
        start = now(stage.device)
        action(*arguments)
        seconds.setdefault(name, []).append(now(stage.device) - start)

    def send_nowhere(gradient: torch.Tensor) -> None:
        """Drop the gradient: a cost includes no message."""

    def step(microbatch: int) -> None:
        timed("forward", stage.forward, microbatch + ahead, input, target)
        if split:
            timed("input", stage.backward_input, microbatch, gradient, send_nowhere)
            timed("weight", stage.backward_weight, microbatch)
        else:
            timed("backward", stage.backward, microbatch, gradient, send_nowhere)
        if (microbatch + 1) % WINDOW == 0:
            timed("update", stage.update)

    ahead = stage.stages - stage.index - 1
    for microbatch in range(ahead):
        stage.forward(microbatch, input, target)
    for microbatch in range(WARM_UP):
        step(microbatch)
    seconds.clear()
    microbatch, start = WARM_UP, now(stage.device)
    while microbatch < WARM_UP + LEAST or now(stage.device) < start + ENOUGH:
        step(microbatch)
        microbatch += 1
    return {name: statistics.median(values) for name, values in seconds.items()}

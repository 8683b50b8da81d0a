"""Estimate the GPU-hours of an experiment: python -m experiments.gpu_hours experiment=trainings ...

A training run takes three times the forward's counted FLOPs for every token, divided by the rate
that a busy GPU sustains (--tflops) and by the utilisation of the GPUs. The utilisation is simulated
with backwards of two forwards and messages of no time; with executor=local it is 1. A throughput
run takes its longest time and two minutes to start. Evaluations are not counted.

The default rate is the one at which 8 GPUs train GPT-2 Medium on 49.8 B tokens in 87.89 hours, the
paper's time of PACI at batch 256 and a=16. The hours that methods of the paper's Table 4 took are
printed beside.
"""

import argparse
import math
from collections import defaultdict
from collections.abc import Sequence

from omegaconf import DictConfig
from tabulate import tabulate

from experiments import models
from experiments.config import compose
from experiments.config.derived import method_of, ranks, schedule_of
from experiments.data import tokenisers
from experiments.grid.runs import grid
from experiments.terminal.command_line import command, user_errors
from experiments.terminal.summary import duration
from paci import simulate

PAPER_GPUS = 8
PAPER_HOURS = {
    (128, "1f1b-flush m=4"): 227.62,
    (128, "1f1b-flush m=8"): 162.33,
    (128, "1f1b-flush m=16"): 148.64,
    (128, "paci a=4"): 111.51,
    (128, "paci a=8"): 87.99,
    (256, "1f1b-flush m=8"): 169.38,
    (256, "1f1b-flush m=16"): 124.27,
    (256, "paci a=8"): 111.91,
    (256, "paci a=16"): 87.89,
}
"""Hours of one training on all GPUs, by batch and method (arXiv 2606.07881, Table 4)."""
START = 120  # seconds before a throughput run begins to measure


@command()
def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m experiments.gpu_hours",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("overrides", nargs="+", help="those of experiments.sweep")
    parser.add_argument("--tflops", type=float, help="10^12 FLOP/s that a busy GPU sustains")
    given = parser.parse_intermixed_args()
    with user_errors():
        rate = paper_rate() if given.tflops is None else given.tflops * 1e12
        if not rate > 0:
            raise ValueError(f"--tflops must be above 0, not {given.tflops}")
        configs = grid(given.overrides)
    rows: dict[tuple[str, int, int, str], float] = defaultdict(float)
    for config in configs:
        label, hours, gpus = method_of(config).label, run_hours(config, rate), ranks(config)
        time = f"{hours:.3g} h" if hours >= 1 else duration(3600 * hours)
        rows[label, config.batch, gpus, time] += hours * gpus
    seeds = len({config.seed for config in configs})
    theirs = {
        row: paper
        for row in rows
        if paper_sized(configs) and (paper := papers_gpu_hours(row[0], row[1], seeds))
    }
    table = [
        (*row, _hours(gpu_hours), _hours(theirs[row]) if row in theirs else "–")
        for row, gpu_hours in rows.items()
    ]
    headers = [
        "method",
        "batch",
        "GPUs",
        "time of a run",
        f"GPU-hours, {seeds} seeds",
        "the paper's",
    ]
    print(tabulate(table, headers, disable_numparse=True))
    print(
        f"\n{len(configs)} run{'s' * (len(configs) != 1)}, {_hours(sum(rows.values()))} GPU-hours, "
        f"at {rate / 1e12:.1f} TFLOP/s sustained by a busy GPU"
    )
    if in_paper := sum(theirs.values()):
        print(f"The paper needed {_hours(in_paper)} GPU-hours for the runs that it trained, too")


def _hours(hours: float) -> str:
    if hours >= 10:
        return f"{hours:,.0f}"
    return f"{hours:.2g}" if hours >= 0.01 else "below 0.01"


def paper_sized(configs: Sequence[DictConfig]) -> bool:
    """Return whether these are trainings of the paper's size, which its hours may stand beside."""
    return all(config.task == "training" and config.scale == "paper" for config in configs)


def papers_gpu_hours(method: str, batch: int, seeds: int) -> float | None:
    """Return the GPU-hours of `seeds` such trainings in the paper; None if it has none."""
    hours = PAPER_HOURS.get((batch, method))
    return None if hours is None else hours * PAPER_GPUS * seeds


def run_hours(config: DictConfig, rate: float) -> float:
    """Return the hours of one run on GPUs that sustain `rate` FLOP/s."""
    if config.task == "throughput":
        return (config.throughput.most_seconds + START) / 3600
    busy = 1.0 if config.executor.name == "local" else utilisation(config)
    return config.tokens * flops_per_token(config) / (rate * ranks(config) * busy) / 3600


def flops_per_token(config: DictConfig) -> float:
    """Return the FLOPs of a forward and a backward of one token."""
    gpt2 = models.config(config.model, tokenisers.named(config.data.tokeniser).vocabulary)
    return 3 * sum(unit.time for unit in models.count_flops(gpt2))


def utilisation(config: DictConfig) -> float:
    """Return the utilisation of the ranks, simulated over 512 micro-batches."""
    rule = schedule_of(config)
    microbatches = math.ceil(512 / rule.accumulation) * rule.accumulation
    return simulate(rule, rule.stages, microbatches).utilization


def paper_rate() -> float:
    """Return the FLOP/s that a GPU sustains in the paper."""
    config = compose(["scale=paper"])
    return (
        config.tokens
        * flops_per_token(config)
        / (PAPER_HOURS[256, "paci a=16"] * 3600 * PAPER_GPUS)
    )


if __name__ == "__main__":
    main()

"""LocalPipeline against a plain training loop, and other policies of weights against live ones."""

import time
from collections.abc import Sequence
from statistics import median

import torch

import paci
from experiments import models
from experiments.config import compose
from experiments.optimizers.optimizer import make_optimizer

VOCABULARY = 257
STAGES = 8
REPEATS = 5


def measure() -> dict[str, float]:
    """Return tokens a second of LocalPipeline (8 stages, PACI, the laptop model) over those of a
    plain loop on the unsplit model: the same micro-batches, accumulation and optimizer.

    Micro-batches have 32 sequences, then 8; the laptop's own runs have 2 to 32. The smaller they
    are, the more it shows that the activations of eight micro-batches in flight leave the
    processor's cache before their backward, and what an action costs in Python.

    Processor time of other weights over that of live ones is measured at 4 sequences.
    """
    torch.set_num_threads(1)
    return {
        "local_vs_plain": _local_vs_plain(microbatch=32, windows=12),
        "local_vs_plain_8_sequences": _local_vs_plain(microbatch=8, windows=29),
        **_vs_live(("stashed", "double-buffered"), microbatch=4, windows=4),
    }


def _local_vs_plain(microbatch: int, windows: int) -> float:
    config = compose(["scale=laptop"])
    a = config.method.accumulation
    batches = _batches(windows * a, microbatch, config.model.context)
    make = make_optimizer(config)

    (whole,) = models.build_stages(config.model, VOCABULARY, 1, seed=0)
    optimizer = make(whole.parameters())

    def plain() -> None:
        for m, (input, target) in enumerate(batches):
            (models.loss(whole(input), target) / a).backward()
            if (m + 1) % a == 0:
                optimizer.step()
                optimizer.zero_grad()

    pipeline = _pipeline(config, a, measure_every=config.measure_every)
    ratios = []
    for _ in range(1 + REPEATS):
        start = time.perf_counter()
        plain()
        middle = time.perf_counter()
        pipeline.train(batches)
        ratios.append((middle - start) / (time.perf_counter() - middle))
    return median(ratios[1:])


def _vs_live(others: Sequence[str], microbatch: int, windows: int) -> dict[str, float]:
    """Return medians over rounds in which all take their turn. A window has as many micro-batches
    as the pipeline has stages."""
    config = compose(["scale=laptop"])
    batches = _batches(windows * STAGES, microbatch, config.model.context)
    pipelines = {w: _pipeline(config, STAGES, weights=w) for w in ("live", *others)}
    times = {weights: [] for weights in pipelines}
    for _ in range(1 + 2 * REPEATS):
        for weights, pipeline in pipelines.items():
            start = time.process_time()
            pipeline.train(batches)
            times[weights].append(time.process_time() - start)
    live, *medians = (median(of_rounds[1:]) for of_rounds in times.values())
    return {
        f"{weights.replace('-', '_')}_vs_live": own / live
        for weights, own in zip(others, medians, strict=True)
    }


def _pipeline(config, accumulation: int, **options) -> paci.LocalPipeline:
    return paci.LocalPipeline(
        models.build_stages(config.model, VOCABULARY, STAGES, seed=0),
        "paci",
        accumulation,
        optimizer=make_optimizer(config),
        loss_fn=models.loss,
        **options,
    )


def _batches(count: int, microbatch: int, context: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
    size = (microbatch, context)
    return [
        (torch.randint(VOCABULARY, size), torch.randint(VOCABULARY, size)) for _ in range(count)
    ]

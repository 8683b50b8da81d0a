"""What LocalPipeline costs over a plain training loop."""

import time

import torch

import paci
from experiments import models
from experiments.config import compose
from experiments.optimizer import make_optimizer

VOCABULARY = 257
REPEATS = 5


def measure() -> dict[str, float]:
    """Tokens a second of LocalPipeline (8 stages, PACI, the laptop model) over those of a plain
    loop on the unsplit model: the same micro-batches, accumulation and optimizer.

    At micro-batches of 32 sequences and of 8; the laptop's own runs have 2 to 32. The smaller they
    are, the more it shows that the activations of eight micro-batches in flight leave the
    processor's cache before their backward, and what an action costs in Python.
    """
    torch.set_num_threads(1)
    return {
        "local_vs_plain": _local_vs_plain(microbatch=32, windows=12),
        "local_vs_plain_8_sequences": _local_vs_plain(microbatch=8, windows=29),
    }


def _local_vs_plain(microbatch: int, windows: int) -> float:
    config = compose(["scale=laptop"])
    a = config.method.accumulation
    size = (microbatch, config.model.context)
    batches = [
        (torch.randint(VOCABULARY, size), torch.randint(VOCABULARY, size))
        for _ in range(windows * a)
    ]
    make = make_optimizer(config)

    (whole,) = models.build_stages(config.model, VOCABULARY, 1, seed=0)
    optimizer = make(whole.parameters())

    def plain() -> None:
        for m, (input, target) in enumerate(batches):
            (models.loss(whole(input), target) / a).backward()
            if (m + 1) % a == 0:
                optimizer.step()
                optimizer.zero_grad()

    pipeline = paci.LocalPipeline(
        models.build_stages(config.model, VOCABULARY, 8, seed=0),
        "paci",
        a,
        optimizer=make,
        loss_fn=models.loss,
        measure_every=config.measure_every,
    )
    ratios = []
    for _ in range(1 + REPEATS):
        start = time.perf_counter()
        plain()
        middle = time.perf_counter()
        pipeline.train(batches)
        ratios.append((middle - start) / (time.perf_counter() - middle))
    return sorted(ratios[1:])[REPEATS // 2]

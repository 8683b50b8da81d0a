"""LocalPipeline against a plain training loop, other policies of weights against live ones,
compiled stages against others, and the checks for numbers that are not finite."""

import time
from collections.abc import Callable, Sequence

import torch

import paci
from benchmarks.rounds import Estimate, in_rounds
from experiments import models
from experiments.config import compose
from experiments.optimizers.optimizer import make_optimizer
from paci.stage.safeguards import GradientGuard, Safeguards

VOCABULARY = 257
STAGES = 8
MOST_SECONDS = 40  # of each comparison


def measure() -> dict[str, Estimate]:
    """Return tokens per second of processor time of LocalPipeline (8 stages, PACI, the laptop
    model) over those of a plain loop on the unsplit model: the same micro-batches, accumulation and
    optimizer.

    Micro-batches have 32 sequences, then 8, then 2; the laptop's own runs have 2 to 32. The smaller
    they are, the more it shows that the activations of eight micro-batches in flight leave the
    processor's cache before their backward, and what an action costs in Python.

    Processor time of other weights over that of live ones is measured at 4 sequences.
    """
    torch.set_num_threads(1)
    return {
        **_vs_plain("local_vs_plain", microbatch=32, windows=4),
        **_vs_plain("local_vs_plain_8_sequences", microbatch=8, windows=8),
        **_vs_plain("local_vs_plain_2_sequences", microbatch=2, windows=16),
        **_vs_live(("stashed", "double-buffered"), microbatch=4, windows=4),
        **_compiled_vs_uncompiled(microbatch=8, windows=4),
        **_finite_check(microbatch=8),
    }


def _vs_plain(key: str, microbatch: int, windows: int) -> dict[str, Estimate]:
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
    sides = [_processor_time(plain), _processor_time(lambda: pipeline.train(batches))]
    return in_rounds(sides, lambda seconds: {key: seconds[0] / seconds[1]}, MOST_SECONDS)


def _vs_live(others: Sequence[str], microbatch: int, windows: int) -> dict[str, Estimate]:
    """A window has as many micro-batches as the pipeline has stages."""
    config = compose(["scale=laptop"])
    batches = _batches(windows * STAGES, microbatch, config.model.context)
    pipelines = [_pipeline(config, STAGES, weights=w) for w in ("live", *others)]
    sides = [_processor_time(lambda p=pipeline: p.train(batches)) for pipeline in pipelines]
    keys = [f"{weights.replace('-', '_')}_vs_live" for weights in others]

    def figures(seconds: Sequence[float]) -> dict[str, float]:
        live, *rest = seconds
        return {key: own / live for key, own in zip(keys, rest, strict=True)}

    return in_rounds(sides, figures, MOST_SECONDS)


def _processor_time(work: Callable[[], object]) -> Callable[[], float]:
    """Return a function that does `work` and returns the processor seconds that it took; it is
    done once now, to warm up."""
    work()

    def timed() -> float:
        start = time.process_time()
        work()
        return time.process_time() - start

    return timed


def _compiled_vs_uncompiled(microbatch: int, windows: int) -> dict[str, Estimate]:
    """Return tokens per second of processor time of two compiled stages over those of two others,
    compilation left out.

    With eight, torch.compile reaches its limit of compilations of one function, and leaves some
    stages as they are.
    """
    config = compose(["scale=laptop"])
    a = config.method.accumulation
    batches = _batches(windows * a, microbatch, config.model.context)
    plain = _pipeline(config, a, stages=2)
    compiled = _pipeline(config, a, stages=2, compute=paci.Compute(compile=True))
    sides = [_processor_time(lambda p=it: p.train(batches)) for it in (plain, compiled)]
    return in_rounds(
        sides, lambda seconds: {"compiled_vs_uncompiled": seconds[0] / seconds[1]}, MOST_SECONDS
    )


def _finite_check(microbatch: int, checks: int = 1000) -> dict[str, Estimate]:
    """Return the microseconds of one check: of a gradient of the laptop model between two stages,
    which each micro-batch brings to each stage but the last."""
    model, guard = compose(["scale=laptop"]).model, GradientGuard(0, Safeguards())
    gradient = torch.randn(microbatch, model.context, model.width)

    def check() -> None:
        for _ in range(checks):
            guard.check("gradient", gradient, 0, 0)

    return in_rounds(
        [_processor_time(check)], lambda seconds: {"finite_check_us": seconds[0] / checks * 1e6},
        MOST_SECONDS / 8,
    )  # fmt: skip


def _pipeline(config, accumulation: int, stages: int = STAGES, **options) -> paci.LocalPipeline:
    return paci.LocalPipeline(
        models.build_stages(config.model, VOCABULARY, stages, seed=0),
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

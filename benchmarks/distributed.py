"""DistributedPipeline against theory, PyTorch's own pipeline on the same modules, and a bare loop.

    round 1: ours, PyTorch's, bare;  round 2: bare, PyTorch's, ours;  ...

Each side has processes of its own in every round, as it would have anywhere else, and is warmed up
before it is timed: the first backward of a process takes most of a second, and a new connection
takes a while to let a large message through at once. Emulated stages wait instead of computing and
are compared with theory, so that their rounds are segments of one set of processes.
"""

import time
from collections.abc import Mapping, Sequence
from functools import partial

import torch

import paci
from benchmarks import bare, pytorch, stages
from benchmarks.rounds import Estimate, in_rounds
from paci.distributed.emulated import Emulation
from paci.distributed.launch import spawn
from paci.schedules.theory import bubble_efficiency
from paci.simulation.event_loop import Step
from paci.stage.memory import SavedTensors
from paci.stage.version_tracker import VersionTracker, WeightsView

EMPTY_SECONDS, REAL_SECONDS = 120, 60
PACI = 4 * stages.M  # micro-batches from an empty pipeline to the next
SEGMENTS = 4  # of PACI's emulated stages that are timed

OfRank = Mapping[str, float]


def measure() -> dict[str, Estimate]:
    return {**_emulated(), **_empty(), **_real()} | {
        "statistics_share": Estimate.of([_seconds_of_statistics() / stages.WORK for _ in range(5)])
    }


def _emulated() -> dict[str, Estimate]:
    """Return shares of the theoretical rate that emulated stages reach."""
    ours, theirs = (
        _slowest(spawn(function, stages.RANKS)) for function in (emulated, pytorch.emulated)
    )

    def of_theory(seconds: Sequence[float], together: int) -> Estimate:
        """`together` micro-batches, from one empty pipeline to the next, take `seconds` each."""
        best = stages.WORK / bubble_efficiency(stages.RANKS, together)
        return Estimate.of([best / each for each in seconds])

    return {
        "emulated_flush_vs_theory": of_theory(ours["flush"], stages.M),
        "torch_flush_vs_theory": of_theory(theirs["flush"], stages.M),
        "emulated_paci_vs_theory": of_theory(ours["paci"], PACI),
        "emulated_paci_slack2_vs_theory": of_theory(ours["paci slack 2"], PACI),
    }


def _empty() -> dict[str, Estimate]:
    """Return the times of a micro-batch in empty stages, and their ratios."""

    def figures(sides: Sequence[Sequence[OfRank]]) -> dict[str, float]:
        ours, theirs, by_hand = map(_worst, sides)
        return {
            f"{name}_{kind}": value
            for name, size in (("empty_stage", "empty"), ("empty_stage_512k", "empty 512k"))
            for kind, value in (
                ("vs_torch", ours[size] / theirs[size]),
                ("vs_bare", ours[size] / by_hand[size]),
                ("ms", ours[size] * 1000),
                ("torch_ms", theirs[size] * 1000),
                ("bare_ms", by_hand[size] * 1000),
            )
        } | {"segment_s": ours["segment"]}

    sides = [partial(spawn, side, stages.RANKS) for side in (empty, pytorch.empty, bare.empty)]
    return in_rounds(sides, figures, EMPTY_SECONDS)


def _real() -> dict[str, Estimate]:
    """Return rates and peak memory of two real stages over those of PyTorch's pipeline."""

    def figures(sides: Sequence[Sequence[OfRank]]) -> dict[str, float]:
        ours, theirs = map(_worst, sides)
        return {
            "paci_vs_torch_1f1b": theirs["seconds"] / ours["seconds"],
            "paci_vs_torch_peak_memory": ours["bytes"] / theirs["bytes"],
        }

    preload = ["experiments.models", "experiments.optimizers.optimizer"]
    sides = [partial(spawn, side, 2, preload=preload) for side in (real, pytorch.real)]
    return in_rounds(sides, figures, REAL_SECONDS)


def _worst(ranks: Sequence[OfRank]) -> dict[str, float]:
    """Return the figures of the slowest, or fullest, rank."""
    return {key: max(rank[key] for rank in ranks) for key in ranks[0]}


def _slowest(ranks: Sequence[Mapping[str, Sequence[float]]]) -> dict[str, list[float]]:
    """Return the seconds of the slowest rank in each segment."""
    return {
        key: [max(of_ranks) for of_ranks in zip(*(rank[key] for rank in ranks), strict=True)]
        for key in ranks[0]
    }


def emulated() -> dict[str, list[float]]:
    """Return the seconds of a micro-batch in each segment of emulated stages, at one of eight
    ranks."""
    torch.set_num_threads(1)
    m, emulation = stages.M, {"make_stage": Emulation(stages.COST)}
    return {
        "flush": _times("1f1b-flush", m, m, [m] * stages.EMULATED, **emulation)[0],
        "paci": _times("paci", 4, m, [PACI] * SEGMENTS, **emulation)[0],
        "paci slack 2": _times("paci", 4, m, [PACI] * SEGMENTS, **emulation, slack=2)[0],
    }


def empty() -> dict[str, float]:
    """Return the seconds of a micro-batch in empty stages, by size of its messages, and those that
    a segment takes besides, at one of eight ranks."""
    torch.set_num_threads(1)
    m, warm_up, count = stages.M, stages.EMPTY // 2 * stages.M, stages.EMPTY * stages.M
    small, besides = _times("1f1b-flush", m, warm_up, [count], size=stages.KB64)
    large, _ = _times("1f1b-flush", m, warm_up, [count], size=stages.KB512)
    return {"empty": small[0], "empty 512k": large[0], "segment": besides[0]}


def _times(
    schedule: str,
    accumulation: int,
    warm_up: int,
    counts: Sequence[int],
    size: int = stages.KB64,
    **options,
) -> tuple[list[float], list[float]]:
    """Return the times of `_trained` for segments of `counts` micro-batches of empty stages."""
    pipeline = paci.DistributedPipeline(
        stages.Empty(), schedule, accumulation, loss_fn=stages.empty_loss,
        optimizer=lambda p: torch.optim.SGD(p, 0.1), **options,
    )  # fmt: skip
    batch = torch.zeros(size), torch.zeros(size)
    pipeline.train([batch] * warm_up)
    seconds, besides = zip(*(_trained(pipeline, [batch] * n) for n in counts), strict=True)
    pipeline.close()
    return list(seconds), list(besides)


def _trained(pipeline: paci.DistributedPipeline, batches: list) -> tuple[float, float]:
    """Train one segment; return the seconds of a micro-batch from the segment's first action to its
    last, and the seconds that the segment takes besides: to agree on shapes, to gather statistics.
    """
    before = pipeline.seconds
    whole = stages.timed(lambda: pipeline.train(batches), warm_up=0, steps=1)
    training = pipeline.seconds - before
    return training / len(batches), whole - training


def real() -> dict[str, float]:
    """Return the seconds of a micro-batch in two stages of the laptop model, and this rank's peak
    bytes."""
    module, make_optimizer, loss_fn, tokens = stages.real_stage()
    m, windows = stages.REAL_M, stages.REAL_WINDOWS
    pipeline = paci.DistributedPipeline(
        module, "paci", m, optimizer=make_optimizer, loss_fn=loss_fn
    )
    pipeline.train([(tokens, tokens)] * m * 2)
    seconds, _ = _trained(pipeline, [(tokens, tokens)] * m * windows)
    return {"seconds": seconds, "bytes": stages.peak_bytes()}


def _seconds_of_statistics(rounds: int = 5000) -> float:
    """Return the seconds that a stage takes to record a micro-batch: versions, memory, timeline."""
    module, input = stages.Empty(), torch.zeros(stages.KB64)
    versions, saved, steps = VersionTracker(4), SavedTensors(tuple(module.parameters())), []
    view = WeightsView(0, saved.parameters)
    start = time.monotonic()
    for microbatch in range(rounds):
        for note in (versions.forward, versions.backward):
            note(microbatch, view)
            steps.append(Step(0, 0, "F", microbatch, time.monotonic(), time.monotonic(), 0))
        with saved.saving(microbatch, input):
            pass
        saved.release(microbatch)
    return (time.monotonic() - start) / rounds

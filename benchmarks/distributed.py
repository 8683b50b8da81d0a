"""DistributedPipeline against theory, PyTorch's own pipeline on the same modules, and a bare loop.

    round 1: ours, PyTorch's, bare, two real stages of ours, of PyTorch's;  round 2: ...

Each side has processes of its own in every round, as it would have anywhere else, and is warmed up
before it is timed: the first backward of a process takes most of a second, and a new connection
takes a while to let a large message through at once. The medians of the rounds are compared.
"""

import time
from collections.abc import Sequence
from statistics import median

import torch
from tqdm import tqdm

import paci
from benchmarks import bare, pytorch, stages
from paci.distributed.emulated import Emulation
from paci.distributed.launch import spawn
from paci.schedules.theory import bubble_efficiency
from paci.simulation.event_loop import Step
from paci.stage.memory import SavedTensors
from paci.stage.version_tracker import VersionTracker, WeightsView

ROUNDS = 3
PACI = 8 * stages.M  # micro-batches from an empty pipeline to the next


def measure() -> dict[str, float]:
    sides = (
        (empty_and_emulated, stages.RANKS),
        (pytorch.empty_and_emulated, stages.RANKS),
        (bare.empty, stages.RANKS),
        (real, 2),
        (pytorch.real, 2),
    )
    rounds = [
        [spawn(function, ranks) for function, ranks in sides]
        for _ in tqdm(range(ROUNDS), "rounds of all sides", disable=None)
    ]
    ours, theirs, by_hand, our_real, their_real = map(_medians, zip(*rounds, strict=True))

    def of_theory(seconds: float, together: int) -> float:
        """Return the share of the theoretical rate at which `together` micro-batches, from one
        empty pipeline to the next, take `seconds` each."""
        return stages.WORK / seconds / bubble_efficiency(stages.RANKS, together)

    return {
        "emulated_flush_vs_theory": of_theory(ours["flush"], stages.M),
        "torch_flush_vs_theory": of_theory(theirs["flush"], stages.M),
        "emulated_paci_vs_theory": of_theory(ours["paci"], PACI),
        "emulated_paci_slack2_vs_theory": of_theory(ours["paci slack 2"], PACI),
        "empty_stage_vs_torch": ours["empty"] / theirs["empty"],
        "empty_stage_vs_bare": ours["empty"] / by_hand["empty"],
        "empty_stage_ms": ours["empty"] * 1000,
        "torch_empty_stage_ms": theirs["empty"] * 1000,
        "bare_empty_stage_ms": by_hand["empty"] * 1000,
        "empty_stage_512k_vs_torch": ours["empty 512k"] / theirs["empty 512k"],
        "empty_stage_512k_vs_bare": ours["empty 512k"] / by_hand["empty 512k"],
        "empty_stage_512k_ms": ours["empty 512k"] * 1000,
        "torch_empty_stage_512k_ms": theirs["empty 512k"] * 1000,
        "bare_empty_stage_512k_ms": by_hand["empty 512k"] * 1000,
        "segment_s": ours["segment"],
        "paci_vs_torch_1f1b": their_real["seconds"] / our_real["seconds"],
        "paci_vs_torch_peak_memory": our_real["bytes"] / their_real["bytes"],
        "statistics_share": _seconds_of_statistics() / stages.WORK,
    }


def _medians(rounds: Sequence[list[dict[str, float]]]) -> dict[str, float]:
    """Return medians over the rounds; a round counts with its slowest (or fullest) rank."""
    worst = [{key: max(rank[key] for rank in ranks) for key in ranks[0]} for ranks in rounds]
    return {key: median(of_round[key] for of_round in worst) for key in worst[0]}


def empty_and_emulated() -> dict[str, float]:
    """Return the seconds of a micro-batch, by kind of stage, and the seconds that a segment takes
    besides, at one of eight ranks."""
    torch.set_num_threads(1)
    m, emulated = stages.M, {"make_stage": Emulation(stages.COST)}
    flush, empty = stages.EMULATED * m, stages.EMPTY * m
    times = {
        "flush": _times("1f1b-flush", m, stages.KB64, m, flush, **emulated),
        "paci": _times("paci", 4, stages.KB64, m, PACI, **emulated),
        "paci slack 2": _times("paci", 4, stages.KB64, m, PACI, **emulated, slack=2),
        "empty": _times("1f1b-flush", m, stages.KB64, empty // 2, empty),
        "empty 512k": _times("1f1b-flush", m, stages.KB512, empty // 2, empty),
    }
    return {name: each for name, (each, _) in times.items()} | {"segment": times["empty"][1]}


def _times(
    schedule: str, accumulation: int, size: int, warm_up: int, count: int, **options
) -> tuple[float, float]:
    """Return the times of `_trained` for a segment of `count` micro-batches of empty stages."""
    pipeline = paci.DistributedPipeline(
        stages.Empty(), schedule, accumulation, loss_fn=stages.empty_loss,
        optimizer=lambda p: torch.optim.SGD(p, 0.1), **options,
    )  # fmt: skip
    batch = torch.zeros(size), torch.zeros(size)
    pipeline.train([batch] * warm_up)
    times = _trained(pipeline, [batch] * count)
    pipeline.close()
    return times


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
    versions, saved, steps = VersionTracker(4), SavedTensors(module.parameters()), []
    view = WeightsView(0, saved.parameters)
    start = time.monotonic()
    for microbatch in range(rounds):
        for note in (versions.forward, versions.backward):
            note(microbatch, view)
            steps.append(Step(0, 0, "F", microbatch, time.monotonic(), time.monotonic(), 0))
        with saved.saving(microbatch, input, saved.parameters):
            pass
        saved.release(microbatch)
    return (time.monotonic() - start) / rounds

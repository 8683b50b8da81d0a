"""Agreements of the ranks before they train: the shapes of messages, and one clock."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from paci.distributed.links import Specs
from paci.distributed.rank_group import RankGroup
from paci.distributed.transport import Spec, link_errors
from paci.stage.stage import Batch, Stage


def exchange_shapes(
    ranks: RankGroup,
    stages: Sequence[Stage],
    rank_of: Sequence[int],
    batches: Sequence[Batch],
    sizes: Sequence[int] | None = None,
) -> Specs:
    """Return {stage: specs of the messages that enter it} of this rank's `stages` and the next.

    One micro-batch goes through all stages of the pipeline, in evaluation mode; if the
    micro-batches of a window have different `sizes`, one of each size. If a stage cannot take its
    input, every rank raises the same error. Stage i of the pipeline is at `rank_of[i]`.
    """
    if sizes is None:
        sizes = [0]  # one size, whichever it is
    of_size = {
        size: _exchange(ranks, stages, rank_of, batches[sizes.index(size)])
        for size in sorted(set(sizes))
    }
    return {stage: [of_size[size][stage] for size in sizes] for stage in of_size[sizes[0]]}


def _exchange(
    ranks: RankGroup, stages: Sequence[Stage], rank_of: Sequence[int], batch: Batch
) -> Mapping[int, Spec]:
    """Return {stage: spec of the message that enters it} for micro-batches like `batch`."""
    specs: dict[int, Spec | None] = {}  # None: an earlier stage could not take its input
    problem: Exception | None = None
    for stage in stages:
        if not stage.is_first and stage.index not in specs:
            specs[stage.index] = _receive(ranks, rank_of[stage.index - 1], stage.device)
        leaving = None
        try:
            input = batch[0] if stage.is_first else _example(specs[stage.index])
            if input is not None:
                leaving = Spec.of(stage.probe(input, batch[1]))
        except Exception as error:
            problem = error
        if not stage.is_last:
            specs[stage.index + 1] = leaving
            if rank_of[stage.index + 1] != ranks.rank:
                _send(ranks, rank_of[stage.index + 1], leaving)
    with ranks.raise_together():
        if problem is not None:
            raise problem
    return {stage: spec for stage, spec in specs.items() if spec is not None}


def _example(spec: Spec | None) -> torch.Tensor | None:
    return None if spec is None else spec.zeros()


def _send(ranks: RankGroup, to: int, spec: Spec | None) -> None:
    with link_errors(to):
        dist.send_object_list([spec and spec[:2]], to, group=ranks.process_group)


def _receive(ranks: RankGroup, source: int, device: torch.device) -> Spec | None:
    box: list[Any] = [None]
    with link_errors(source):
        dist.recv_object_list(box, source, group=ranks.process_group)
    if box[0] is None:
        return None
    shape, dtype = box[0]
    return Spec(shape, dtype, device)


def clock_offset(ranks: RankGroup, rounds: int = 16) -> float:
    """Return the seconds to add to this rank's `time.monotonic` to get rank 0's.

    Ranks on one machine share that clock. Otherwise rank 0 answers a few questions with its time,
    and the answer of the fastest round trip is taken to be the time at the middle of that trip.
    """
    boots = ranks.gather(Path("/proc/sys/kernel/random/boot_id").read_text())
    if len(set(boots)) == 1:
        return 0.0
    question, answer = torch.zeros(1), torch.zeros(1, dtype=torch.float64)
    group = ranks.process_group
    best = (float("inf"), 0.0)
    for other in range(1, ranks.size):
        for _ in range(rounds):
            if ranks.rank == 0:
                dist.recv(question, other, group=group)
                dist.send(answer.fill_(time.monotonic()), other, group=group)
            elif ranks.rank == other:
                start = time.monotonic()
                dist.send(question, 0, group=group)
                dist.recv(answer, 0, group=group)
                end = time.monotonic()
                best = min(best, (end - start, answer.item() - (start + end) / 2))
    return best[1]

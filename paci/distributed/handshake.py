"""What ranks settle before they train: the same settings, the shapes of messages, one clock."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch
import torch.distributed as dist

from paci.distributed.failure import RankFailed
from paci.distributed.transport import Spec, link_errors
from paci.stage.stage import Stage

Gather = Callable[[object], list]  # one value of every rank, in order of ranks, at every rank


class Refused(ValueError):
    """What ranks were given does not fit together; raised at every rank alike."""


def agree_settings(gather: Gather, **settings) -> None:
    """Raise `Refused`, at every rank, unless all ranks were given the same `settings`."""
    first, *others = gather(settings)
    for rank, other in enumerate(others, 1):
        for name in settings:
            if other[name] != first[name]:
                raise Refused(
                    f"all ranks must be given the same {name}: it is {first[name]!r} at rank 0 "
                    f"and {other[name]!r} at rank {rank}"
                )


@contextmanager
def together(gather: Gather) -> Iterator[None]:
    """What the first of the ranks to raise something raises inside, all raise afterwards: a
    ValueError as `Refused`, anything else as `RankFailed`."""
    failure = cause = None
    try:
        yield
    except ValueError as error:
        failure, cause = Refused(str(error)), error
    except Exception as error:
        failure, cause = RankFailed.of(dist.get_rank(), error), error
    for of_rank in gather(failure):
        if of_rank is not None:
            raise of_rank from cause


def agree_shapes(
    stages: Sequence[Stage],
    rank_of: Sequence[int],
    batch: tuple[torch.Tensor, torch.Tensor],
    gather: Gather,
    control: dist.ProcessGroup,
) -> dict[int, Spec]:
    """{stage: what enters it}, for what enters and leaves this rank's `stages`; `rank_of` each
    stage of the pipeline is known. One micro-batch goes through all of them, in evaluation mode; if
    one cannot take it every rank raises the same."""
    specs: dict[int, Spec | None] = {}  # None: an earlier stage could not take its input
    problem = None
    for stage in stages:
        if not stage.is_first and stage.index not in specs:
            specs[stage.index] = _receive(rank_of[stage.index - 1], control, stage.device)
        entering, leaving = specs.get(stage.index), None
        if stage.is_first or entering:
            try:
                input = batch[0] if stage.is_first else entering.zeros()
                leaving = Spec.of(stage.probe(input, batch[1]))
            except Exception as error:
                problem = error
        if not stage.is_last:
            specs[stage.index + 1] = leaving
            _send(leaving, stage, rank_of, control)
    with together(gather):
        if problem is not None:
            raise problem
    return specs


def _send(spec: Spec | None, stage: Stage, rank_of: Sequence[int], control) -> None:
    to = rank_of[stage.index + 1]
    if to != rank_of[stage.index]:
        with link_errors(to):
            dist.send_object_list([spec and spec[:2]], to, group=control)


def _receive(rank: int, control: dist.ProcessGroup, device: torch.device) -> Spec | None:
    box = [None]
    with link_errors(rank):
        dist.recv_object_list(box, rank, group=control)
    return box[0] and Spec(*box[0], device)


def clock_offset(gather: Gather, control: dist.ProcessGroup, rounds: int = 16) -> float:
    """Seconds to add to this rank's `time.monotonic` to get rank 0's.

    Ranks on one machine share that clock. Otherwise rank 0 answers with its time, which is taken
    to be that of the middle of the fastest of a few round trips.
    """
    boots = gather(Path("/proc/sys/kernel/random/boot_id").read_text())
    rank, ask, answer = dist.get_rank(), torch.zeros(1), torch.zeros(1, dtype=torch.float64)
    if len(set(boots)) == 1:
        return 0.0
    best = (float("inf"), 0.0)
    for other in range(1, len(boots)):
        for _ in range(rounds):
            if rank == 0:
                dist.recv(ask, other, group=control)
                dist.send(answer.fill_(time.monotonic()), other, group=control)
            elif rank == other:
                start = time.monotonic()
                dist.send(ask, 0, group=control)
                dist.recv(answer, 0, group=control)
                end = time.monotonic()
                best = min(best, (end - start, answer.item() - (start + end) / 2))
    return best[1]

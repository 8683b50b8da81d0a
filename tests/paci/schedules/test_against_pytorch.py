"""The orders of schedules with several stages a rank, or split backwards, are PyTorch's."""

import pytest
from torch.distributed.pipelining import (
    ScheduleDualPipeV,
    ScheduleInterleaved1F1B,
    ScheduleInterleavedZeroBubble,
    ScheduleZBVZeroBubble,
)

from paci import simulate
from paci.schedules import build
from tests.paci import pytorch

RANKS = [1, 2, 3, 4, 5, 8]
MICROBATCHES = [1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 17, 24]


def ours(schedule, stages, m, **options):
    return [list(map(str, order)) for order in build(schedule, stages, m, **options).orders]


def whole_rounds(ranks, m):
    return m % max(1, m // ranks) == 0


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("stages_per_rank", [2, 3, 4])
def test_interleaved_1f1b(ranks, stages_per_rank):
    stages, options = ranks * stages_per_rank, {"stages_per_rank": stages_per_rank}
    for m in MICROBATCHES:
        if whole_rounds(ranks, m):
            theirs = pytorch.orders(ScheduleInterleaved1F1B, ranks, stages_per_rank, m)
            assert ours("interleaved-1f1b", stages, m, **options) == theirs
        else:
            with pytest.raises(ValueError, match=r"accumulation must be a multiple of \d+, not"):
                build("interleaved-1f1b", stages, m, **options)
            with pytest.raises(ValueError, match="multiple of the number of rounds"):
                pytorch.orders(ScheduleInterleaved1F1B, ranks, stages_per_rank, m)


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("stages_per_rank", [2, 3, 4])
def test_interleaved_zb_h1(ranks, stages_per_rank):
    stages, options = ranks * stages_per_rank, {"stages_per_rank": stages_per_rank}
    for m in MICROBATCHES:
        if whole_rounds(ranks, m):
            theirs = pytorch.orders(ScheduleInterleavedZeroBubble, ranks, stages_per_rank, m)
            assert ours("interleaved-zb-h1", stages, m, **options) == theirs
        else:
            with pytest.raises(ValueError, match=r"accumulation must be a multiple of \d+, not"):
                build("interleaved-zb-h1", stages, m, **options)


@pytest.mark.parametrize("ranks", RANKS)
def test_zbv(ranks):
    for m in MICROBATCHES:
        assert ours("zbv", 2 * ranks, m) == pytorch.orders(ScheduleZBVZeroBubble, ranks, 2, m)


@pytest.mark.parametrize("ranks", RANKS)
def test_dualpipev(ranks):
    """But for the pairs of forward and backward that PyTorch may overlap: one, then the other."""
    for m in MICROBATCHES:
        if m >= 2 * ranks:
            theirs = pytorch.orders(ScheduleDualPipeV, ranks, 2, m)
            assert ours("dualpipev", 2 * ranks, m) == theirs
        else:
            with pytest.raises(ValueError, match=f"accumulation must be at least {2 * ranks}, not"):
                build("dualpipev", 2 * ranks, m)
            with pytest.raises(ValueError, match="at least as many microbatches as stages"):
                pytorch.orders(ScheduleDualPipeV, ranks, 2, m)


@pytest.mark.parametrize("ranks", RANKS)
def test_zb_h1(ranks):
    """PyTorch's interleaved zero-bubble schedule with one stage a rank. Ours has no rounds, so it
    takes any number of micro-batches."""
    for m in MICROBATCHES:
        done = simulate("zb-h1", ranks, m, m).timeline.orders()
        if whole_rounds(ranks, m):
            theirs = pytorch.orders(ScheduleInterleavedZeroBubble, ranks, 1, m)
            assert [list(map(str, order)) for order in done] == theirs

"""gpipe and 1f1b-flush do, rank by rank, what PyTorch's own schedules do."""

from unittest.mock import MagicMock

import pytest
from hypothesis import given
from hypothesis import strategies as st
from torch.distributed.pipelining import Schedule1F1B, ScheduleGPipe

from paci import simulate
from tests.paci import toys

THEIRS = {"gpipe": ScheduleGPipe, "1f1b-flush": Schedule1F1B}


def order_in_pytorch(schedule, N: int, m: int, stage: int) -> list[str]:
    """Return the actions that PyTorch's runtime asks of a stage. (The printed
    `pipeline_order` numbers the forwards of the last rank from 1, the runtime from 0.)"""
    done = []
    mock = MagicMock(num_stages=N, stage_index=stage, is_last=False, device="cpu")
    for direction in ("fwd_recv", "fwd_send", "bwd_recv", "bwd_send"):
        getattr(mock, f"get_{direction}_ops").return_value = []
    mock.forward_one_chunk.side_effect = lambda k, *_, **__: done.append(f"{stage}F{k}")
    mock.backward_one_chunk.side_effect = lambda k, **_: done.append(f"{stage}B{k}")
    THEIRS[schedule](mock, m)._step_microbatches([()] * m, [{}] * m)
    return done


@pytest.mark.parametrize("schedule", THEIRS)
@pytest.mark.parametrize("N", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("more", [-3, 0, 1, 2, 7])
def test_order_of_one_window(schedule, N, more):
    m = max(1, N + more)
    if m < N and schedule == "1f1b-flush":
        m = N + 5  # PyTorch's refuses fewer micro-batches than stages
    for stage, order in enumerate(simulate(schedule, N, m, m).timeline.orders()):
        assert list(map(str, order)) == order_in_pytorch(schedule, N, m, stage)


@given(st.sampled_from([*THEIRS]), toys.sizes(slack=False))
def test_the_order_is_the_same_in_every_window_and_at_any_cost(schedule, sizes):
    N, a = sizes["stages"], sizes["accumulation"]
    window = simulate(schedule, N, a, a).timeline.orders()
    windows = range(0, sizes["microbatches"], a)
    for once, order in zip(window, simulate(schedule, **sizes).timeline.orders(), strict=True):
        assert order == [
            action._replace(microbatch=first + action.microbatch)
            for first in windows
            for action in once
        ]


def test_1f1b_with_fewer_microbatches_than_stages():
    """The published algorithm by hand: min(m, N - i) forwards, then a backward for each."""
    orders = simulate("1f1b-flush", 4, 2, 2).timeline.orders()
    assert [" ".join(map(str, order)) for order in orders] == [
        "0F0 0F1 0B0 0B1",
        "1F0 1F1 1B0 1B1",
        "2F0 2F1 2B0 2B1",
        "3F0 3B0 3F1 3B1",
    ]

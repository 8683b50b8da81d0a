"""An order from a file is simulated as the schedule that it was recorded from."""

import pytest

from paci import Cost, FixedOrder, read_orders, simulate, write_orders

RUNS = [
    ("1f1b-flush", 4), ("paci", 4), ("interleaved-1f1b", 8), ("zb-2p", 4), ("zbv", 8),
    ("dualpipev", 8),
]  # fmt: skip


@pytest.mark.parametrize(("schedule", "stages"), RUNS)
def test_simulating_what_was_recorded(schedule, stages, tmp_path):
    sizes = {"stages": stages, "microbatches": 16, "cost": Cost(1, 2, transfer=0.25)}
    run = simulate(schedule, accumulation=8, **sizes)
    file = tmp_path / "order.csv"
    file.write_text(write_orders(run.timeline.orders()))

    again = simulate(FixedOrder(read_orders(file.read_text()), accumulation=8), **sizes)
    assert again.actions == run.actions

import pytest

from benchmarks.gpu import measured_cost
from paci import Cost, simulate

COST = Cost([1.0, 2.0], [3.0, 4.0], [1.0, 1.5], [2.0, 2.5], [0.5, 0.25])


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b-flush", "zb-h1", "paci"])
def test_a_simulation_at_measured_times_is_the_measured_run(schedule):
    measured = simulate(schedule, 2, 16, 4, cost=COST)
    cost = measured_cost(measured.timeline, 2)
    assert simulate(schedule, 2, 16, 4, cost=cost).utilization == measured.utilization

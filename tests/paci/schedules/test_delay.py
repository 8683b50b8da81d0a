import pytest

from paci.schedules.delay import delay_of_limit, rescaled
from paci.schedules.theory import in_flight_bound
from tests.paci import toys


@pytest.mark.parametrize(("N", "a", "slack"), [(4, 1, 0), (5, 4, 0), (4, 3, 2)])
def test_mean_delay_is_the_staleness_of_a_full_pipeline(N, a, slack):
    def staleness(windows):
        local = toys.pipeline(toys.stages(N), "paci", a, slack=slack)
        return [stage.staleness for stage in local.train(toys.batches(a * windows)).stages]

    for stage, (warm_up, whole) in enumerate(zip(staleness(10), staleness(110), strict=True)):
        full = whole - warm_up
        mean = sum(updates * count for updates, count in full.items()) / full.total()
        limit = in_flight_bound(N, stage, slack)
        assert mean == pytest.approx(delay_of_limit(limit, a), abs=0.05)


def test_the_step_is_divided_by_the_delay_and_less_with_every_update():
    factor = rescaled(lambda version: 0.5, delay=16.0, anneal=4)
    assert [factor(version) for version in range(6)] == [1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1 / 2]


def test_no_delay_no_change():
    for delay in (0.0, 0.75, 1.0):
        assert rescaled(lambda version: 0.5, delay, anneal=4)(0) == 0.5
    assert rescaled(lambda version: 0.5, 7.0, anneal=0)(0) == 0.5

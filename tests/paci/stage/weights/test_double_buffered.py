import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paci import Cost, FixedOrder, simulate
from paci.schedules import build, theory
from tests.paci import toys
from tests.paci.stage.weights.test_stashed import copies


@given(st.integers(1, 6), st.integers(0, 3), st.sampled_from([0.0, 0.5]))
@settings(max_examples=25)
def test_staleness_is_one_and_versions_are_two(N, more, jitter):
    a, windows = N + more, 5
    modules = toys.stages(N)
    local = toys.pipeline(
        modules, "paci", a, weights="double-buffered", cost=Cost(jitter=jitter), measure_every=1
    )
    first, second = (local.train(toys.batches(a * windows)) for _ in range(2))
    # Before the first update there is no older version.
    assert all(stage.staleness == {0: a, 1: a * (windows - 1)} for stage in first.stages)
    assert all(stage.staleness == {1: a * windows} for stage in second.stages)
    for run in (first, second):
        assert [set(drift) for drift in run.drift] == [{0}] * N
        assert all(m.relative == 0 for stage in run.stages for m in stage.movements)
        assert copies(run, modules) == [1] * N
    assert theory.parameter_units("double-buffered", theory.drift_bound(N, 0, a)) == 2


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b-flush", "zb-h1"])
def test_a_flush_waits_for_nothing_and_sees_the_version_before_all_the_same(schedule):
    local = toys.pipeline(toys.stages(3), schedule, 3, weights="double-buffered")
    assert all(stage.staleness == {0: 3, 1: 6} for stage in local.train(toys.batches(9)).stages)


def test_a_window_shorter_than_the_pipeline():
    with pytest.raises(ValueError, match=r"an accumulation of at least 4, as many .*, not 3"):
        toys.pipeline(toys.stages(4), "paci", 3, weights="double-buffered")


def test_several_stages_per_rank_need_no_more_than_their_limit():
    rule = build("paci", 4, 2, stages_per_rank=2)
    run = toys.pipeline(toys.stages(4), rule, None, weights="double-buffered").train(
        toys.batches(20)
    )
    assert all(stage.staleness == {0: 2, 1: 18} for stage in run.stages)


def test_too_much_slack():
    with pytest.raises(ValueError, match=r"an accumulation of at least 8, .* at stage 0, not 4"):
        toys.pipeline(toys.stages(4), "paci", 4, slack=4, weights="double-buffered")


def test_an_order_with_too_much_slack():
    orders = simulate("paci", 4, 24, 4, slack=4).timeline.orders()
    local = toys.pipeline(toys.stages(4), FixedOrder(orders, 4), None, weights="double-buffered")
    with pytest.raises(ValueError, match="micro-batch 8 begins at version 0 but must see version"):
        local.train(toys.batches(24))

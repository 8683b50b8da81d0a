import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.multiprocessing.reductions import StorageWeakRef

from paci import Cost
from paci.schedules import theory
from tests.paci import toys


def copies(run, modules) -> list[float]:
    """Parameter copies held beyond the live ones, per stage, at the peak."""
    sizes = [sum(p.nbytes for p in module.parameters()) for module in modules]
    return [stage.peak_held.copies / size for stage, size in zip(run.stages, sizes, strict=True)]


def versions_in_flight(run, stage) -> int:
    """The most versions besides the newest that micro-batches in flight saw in their forward."""
    seen, peak = {}, 0
    for row in run.timeline.rows:
        if row.stage == stage:
            newest = row.version
            if row.kind == "F":
                seen[row.microbatch] = newest
            else:
                del seen[row.microbatch]
                newest += (row.microbatch + 1) % run.timeline.accumulation == 0
            peak = max(peak, len({*seen.values()} - {newest}))
    return peak


@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 3))
@settings(max_examples=25)
def test_drift_is_none_and_memory_is_that_of_the_versions_in_flight(N, a, slack):
    modules, live = toys.stages(N), toys.stages(N)
    local = toys.pipeline(modules, "paci", a, slack=slack, weights="stashed", measure_every=1)
    run = local.train(toys.batches(12 * a))
    assert all(set(drift) == {0} for drift in run.drift)
    assert all(sample.relative == 0 for stage in run.stages for sample in stage.movements)
    as_late = toys.pipeline(live, "paci", a, slack=slack).train(toys.batches(12 * a))
    assert [stage.staleness for stage in run.stages] == [s.staleness for s in as_late.stages]
    assert copies(run, modules) == [versions_in_flight(run, stage) for stage in range(N)]
    for stage, extra in enumerate(copies(run, modules)):
        assert 1 + extra <= theory.parameter_units(
            "stashed", theory.drift_bound(N, stage, a, slack)
        )


@pytest.mark.parametrize(
    ("a", "units"), [(1, [8, 7, 6, 5, 4, 3, 2, 1]), (4, [3, 3, 3, 2, 2, 2, 2, 1])]
)
def test_eight_stages(a, units):
    modules = toys.stages(8)
    run = toys.pipeline(modules, "paci", a, weights="stashed").train(toys.batches(24 * a))
    assert [1 + extra for extra in copies(run, modules)] == units
    assert [
        theory.parameter_units("stashed", theory.drift_bound(8, stage, a)) for stage in range(8)
    ] == units


def test_a_version_is_released_with_its_last_user():
    """The storages themselves are gone, not only their entries in the policy."""
    modules = toys.stages(4)
    local = toys.pipeline(modules, "paci", 2, weights="stashed", cost=Cost(1, 1))
    versions, alive = {}, []
    first = local.stages[0]
    step = first.optimizer.step

    def spy():
        storage = StorageWeakRef(modules[0][0].weight.untyped_storage())
        versions[storage.cdata] = storage
        step()
        alive.append(sum(not storage.expired() for storage in versions.values()))

    first.optimizer.step = spy
    local.train(toys.batches(24))
    assert len(alive) == 12
    assert max(alive) == theory.parameter_units("stashed", theory.drift_bound(4, 0, 2)) == 3
    assert sum(not storage.expired() for storage in versions.values()) == 1
    assert first.weights.extra_bytes == 0


def test_a_version_that_nobody_needs_is_written_in_place():
    """At the last stage, where a backward follows its forward, all are."""
    modules = toys.stages(3)
    before = [module[0].weight.data_ptr() for module in modules]
    toys.pipeline(modules, accumulation=1, weights="stashed").train(toys.batches(5))
    assert modules[-1][0].weight.data_ptr() == before[-1]


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b-flush", "zb-h1"])
def test_a_drained_pipeline_needs_one_version(schedule):
    modules = toys.stages(4)
    run = toys.pipeline(modules, schedule, 4, weights="stashed").train(toys.batches(12))
    assert copies(run, modules) == [0] * 4

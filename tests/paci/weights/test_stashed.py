from itertools import chain
from operator import le

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.multiprocessing.reductions import StorageWeakRef

from paci import Cost, theory
from tests.paci import toys


def copies(run, modules) -> list[float]:
    """Parameter copies held beyond the live ones, per stage, at the peak."""
    sizes = [sum(p.nbytes for p in module.parameters()) for module in modules]
    return [held.copies / size for held, size in zip(run.peak_held, sizes, strict=True)]


@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 3))
@settings(max_examples=25)
def test_drift_is_none_and_memory_is_that_of_the_versions_in_flight(N, a, slack):
    modules = toys.stages(N)
    local = toys.pipeline(modules, "paci", a, slack=slack, weights="stashed", measure_every=1)
    run = local.train(toys.batches(a * (N + slack + 4)))
    live = toys.pipeline(toys.stages(N), "paci", a, slack=slack).train(
        toys.batches(a * (N + slack + 4))
    )
    assert all(set(drift) == {0} for drift in run.drift)
    assert all(movement.relative == 0 for movement in chain(*run.movements))
    assert run.staleness == live.staleness
    assert copies(run, modules) == [max(drift) for drift in live.drift]
    units = [theory.parameter_units("stashed", N, stage, a, slack) for stage in range(N)]
    held = [1 + extra for extra in copies(run, modules)]
    assert held == units if slack == 0 else all(map(le, held, units))  # slack may not fill


def test_a_version_is_released_with_its_last_user():
    """The storages themselves are gone, not only the books of them."""
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
    assert max(alive) == theory.parameter_units("stashed", 4, 0, 2) == 3
    assert sum(not storage.expired() for storage in versions.values()) == 1
    assert first.weights.extra_bytes == 0


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b-flush", "zb-h1"])
def test_a_drained_pipeline_needs_one_version(schedule):
    modules = toys.stages(4)
    run = toys.pipeline(modules, schedule, 4, weights="stashed").train(toys.batches(12))
    assert copies(run, modules) == [0] * 4

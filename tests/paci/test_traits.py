"""The versions of a simulated timeline, against those that real stages count."""

import pytest

from paci import Cost, simulate
from paci.schedules import build, theory
from paci.simulation.simulate import Simulation
from tests.paci import toys


def test_a_rank_of_several_stages_has_a_share_of_its_times_at_each():
    cost = Cost(1.0, 2.0, update=1.0, transfer=0.5)
    assert cost.per_stage(2) == Cost(0.5, 1.0, update=0.5, transfer=0.5)
    assert Cost([1, 2], 2.0).per_stage(2) == Cost([1, 2], 1.0)


@pytest.mark.parametrize(
    "weights", ["live", "stashed", "double-buffered", "predicted", "corrected"]
)
@pytest.mark.parametrize(("a", "slack"), [(1, 0), (2, 1), (6, 2)])
def test_versions_are_those_of_real_stages(weights, a, slack):
    """Drift, staleness and copies equal what tensors and version trackers show."""
    if weights == "double-buffered" and a < 4 + slack:
        pytest.skip("needs a window as long as the pipeline")
    rule = build("paci", 4, a, slack)
    local = toys.pipeline(toys.stages(4), rule, None, weights=weights)
    segment = local.train(toys.batches(12 * a))
    seen = Simulation(rule, simulate(rule, 4, 12 * a).actions, weights)
    assert seen.max_drift == [max(stage) for stage in segment.drift]
    assert seen.max_staleness == [max(stage.staleness) for stage in segment.stages]
    copies = max(seen.max_copies)
    if weights in ("live", "stashed", "double-buffered"):
        one = sum(p.nbytes for p in toys.stages(1)[0].parameters())
        assert copies == max(stage.peak_held.copies for stage in segment.stages) / one
        assert copies == theory.parameter_units(weights, theory.drift_bound(4, 0, a, slack)) - 1

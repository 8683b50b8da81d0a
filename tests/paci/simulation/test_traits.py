"""What is measured of a simulated timeline, against what real stages book."""

import pytest

from paci import Cost, simulate
from paci.schedules import build, theory
from paci.simulation.traits import books, shared_out
from tests.paci import toys


def test_a_rank_of_several_stages_has_a_share_of_its_times_at_each():
    cost = Cost(1.0, 2.0, update=1.0, transfer=0.5)
    assert shared_out(cost, 2) == Cost(0.5, 1.0, update=0.5, transfer=0.5)
    assert shared_out(Cost([1, 2], 2.0), 2) == Cost([1, 2], 1.0)


@pytest.mark.parametrize(
    "weights", ["live", "stashed", "double-buffered", "predicted", "corrected"]
)
@pytest.mark.parametrize(("a", "slack"), [(1, 0), (2, 1), (6, 2)])
def test_the_books_are_those_of_real_stages(weights, a, slack):
    """What a simulated timeline says of the versions is what tensors and ledgers say."""
    if weights == "double-buffered" and a < 4 + slack:
        pytest.skip("needs a window as long as the pipeline")
    rule = build("paci", 4, a, slack)
    local = toys.pipeline(toys.stages(4), rule, None, weights=weights)
    segment = local.train(toys.batches(12 * a))
    drift, staleness, copies = books(simulate(rule, 4, 12 * a).actions, rule, weights)
    assert drift == max(max(stage) for stage in segment.drift)
    assert staleness == max(max(stage) for stage in segment.staleness)
    if weights in ("live", "stashed", "double-buffered"):
        one = sum(p.nbytes for p in toys.stages(1)[0].parameters())
        assert copies == max(held.copies for held in segment.peak_held) / one
        assert copies == theory.parameter_units(weights, 4, 0, a, slack) - 1

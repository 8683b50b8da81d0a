import pytest
import torch

from paci.stage.version_tracker import Movement, VersionTracker, WeightsView


def live(ledger, *weights):
    return WeightsView(ledger.version, weights)


def test_drift_and_staleness_of_a_hand_made_sequence():
    """Window 0 is micro-batches 0 and 1, window 1 is 2 and 3; their updates make versions 1, 2.

    version   0  0  0  0  0  1  1  1  1
              F0 F1 F2 B0 B1 F3 B2 B3
    """
    ledger = VersionTracker(accumulation=2)
    for m in (0, 1, 2):
        ledger.forward(m, live(ledger))
    ledger.backward(0, live(ledger))
    ledger.backward(1, live(ledger))
    ledger.version = 1
    ledger.forward(3, live(ledger))
    ledger.backward(2, live(ledger))
    ledger.backward(3, live(ledger))
    assert ledger.drift == {0: 3, 1: 1}  # 2 saw 0, then 1
    assert ledger.staleness == {0: 3, 1: 1}
    assert ledger.peak_in_flight == 3


def test_staleness_goes_on_until_the_update():
    """A backward that runs early (split schedules): the update of window 2 comes two later."""
    ledger = VersionTracker(accumulation=2)
    ledger.forward(5, live(ledger))
    ledger.version = 1
    ledger.backward(5, live(ledger))
    assert (ledger.drift, ledger.staleness) == ({1: 1}, {2: 1})


def test_clear_starts_new_books_but_not_a_new_version():
    ledger = VersionTracker(accumulation=1)
    ledger.forward(0, live(ledger))
    ledger.backward(0, live(ledger))
    ledger.version = 1
    ledger.clear()
    assert (ledger.drift, ledger.staleness, ledger.peak_in_flight) == ({}, {}, 0)
    assert ledger.version == 1


def test_movement_is_relative_to_all_weights_of_the_stage():
    one, two = torch.tensor([3.0, 0.0]), torch.tensor([[4.0]])  # norm 5
    ledger = VersionTracker(accumulation=1, measure_every=2)
    for m in (0, 1):
        ledger.forward(m, live(ledger, one, two))
    one[1], two[0, 0] = 1.5, 6.0  # moved by (0, 1.5, 2): norm 2.5
    ledger.version = 3
    for m in (0, 1):
        ledger.backward(m, live(ledger, one, two))
    assert ledger.movements == [Movement(update=3, microbatch=0, drift=3, relative=0.5)]


@pytest.mark.parametrize(("every", "measured"), [(0, []), (1, [0, 3, 6, 9]), (2, [0, 6])])
def test_the_first_microbatch_of_every_so_many_windows(every, measured):
    ledger = VersionTracker(accumulation=3, measure_every=every)
    for m in range(12):
        ledger.forward(m, live(ledger, torch.ones(1)))
        ledger.backward(m, live(ledger, torch.ones(1)))
    assert [movement.microbatch for movement in ledger.movements] == measured


def test_weights_of_another_version_than_the_newest():
    ledger, old, new = (
        VersionTracker(accumulation=1, measure_every=1),
        torch.ones(4),
        torch.zeros(4),
    )
    ledger.version = 3
    ledger.forward(3, WeightsView(2, [old]))
    ledger.version = 4
    ledger.backward(3, WeightsView(2, [old]))
    ledger.forward(4, WeightsView(3, [old]))
    ledger.backward(4, WeightsView(4, [new]))
    assert (ledger.drift, ledger.staleness) == ({0: 1, 1: 1}, {1: 2})
    assert ledger.movements == [Movement(4, 3, 0, 0.0), Movement(4, 4, 1, 1.0)]


def test_a_split_backward_is_in_flight_until_its_second_half():
    ledger = VersionTracker(accumulation=4)
    ledger.forward(0, live(ledger))
    ledger.backward_input(0, live(ledger))
    ledger.forward(1, live(ledger))
    assert (ledger.drift, ledger.peak_in_flight) == ({0: 1}, 2)
    ledger.backward_weight(0)
    ledger.forward(2, live(ledger))
    assert ledger.peak_in_flight == 2

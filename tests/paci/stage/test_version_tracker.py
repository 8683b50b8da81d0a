import pytest
import torch

from paci.stage.version_tracker import Movement, VersionTracker, WeightsView


def live(tracker, *weights):
    return WeightsView(tracker.version, weights)


def test_drift_and_staleness_of_a_hand_made_sequence():
    """Window 0 is micro-batches 0 and 1, window 1 is 2 and 3; their updates make versions 1, 2.

    version   0  0  0  0  0  1  1  1  1
              F0 F1 F2 B0 B1 F3 B2 B3
    """
    tracker = VersionTracker(accumulation=2)
    for m in (0, 1, 2):
        tracker.forward(m, live(tracker))
    tracker.backward(0, live(tracker))
    tracker.backward(1, live(tracker))
    tracker.version = 1
    tracker.forward(3, live(tracker))
    tracker.backward(2, live(tracker))
    tracker.backward(3, live(tracker))
    assert tracker.drift == {0: 3, 1: 1}  # 2 saw 0, then 1
    assert tracker.staleness == {0: 3, 1: 1}
    assert tracker.peak_in_flight == 3


def test_staleness_goes_on_until_the_update():
    """A backward that runs early (split schedules): the update of window 2 comes two later."""
    tracker = VersionTracker(accumulation=2)
    tracker.forward(5, live(tracker))
    tracker.version = 1
    tracker.backward(5, live(tracker))
    assert (tracker.drift, tracker.staleness) == ({1: 1}, {2: 1})


def test_clear_starts_new_histograms_and_keeps_the_version():
    tracker = VersionTracker(accumulation=1)
    tracker.forward(0, live(tracker))
    tracker.backward(0, live(tracker))
    tracker.version = 1
    tracker.clear()
    assert (tracker.drift, tracker.staleness, tracker.peak_in_flight) == ({}, {}, 0)
    assert tracker.version == 1


def test_movement_is_relative_to_all_weights_of_the_stage():
    one, two = torch.tensor([3.0, 0.0]), torch.tensor([[4.0]])  # norm 5
    tracker = VersionTracker(accumulation=1, measure_every=2)
    for m in (0, 1):
        tracker.forward(m, live(tracker, one, two))
    one[1], two[0, 0] = 1.5, 6.0  # moved by (0, 1.5, 2): norm 2.5
    tracker.version = 3
    for m in (0, 1):
        tracker.backward(m, live(tracker, one, two))
    assert tracker.movements == [Movement(update=3, microbatch=0, drift=3, relative=0.5)]


@pytest.mark.parametrize(("every", "measured"), [(0, []), (1, [0, 3, 6, 9]), (2, [0, 6])])
def test_movement_is_sampled_in_the_first_microbatch_of_every_nth_window(every, measured):
    tracker = VersionTracker(accumulation=3, measure_every=every)
    for m in range(12):
        tracker.forward(m, live(tracker, torch.ones(1)))
        tracker.backward(m, live(tracker, torch.ones(1)))
    assert [movement.microbatch for movement in tracker.movements] == measured


def test_drift_and_staleness_count_from_the_version_that_the_policy_shows():
    tracker = VersionTracker(accumulation=1, measure_every=1)
    old, new = torch.ones(4), torch.zeros(4)
    tracker.version = 3
    tracker.forward(3, WeightsView(2, [old]))
    tracker.version = 4
    tracker.backward(3, WeightsView(2, [old]))
    tracker.forward(4, WeightsView(3, [old]))
    tracker.backward(4, WeightsView(4, [new]))
    assert (tracker.drift, tracker.staleness) == ({0: 1, 1: 1}, {1: 2})
    assert tracker.movements == [Movement(4, 3, 0, 0.0), Movement(4, 4, 1, 1.0)]


def test_a_split_backward_is_in_flight_until_its_second_half():
    tracker = VersionTracker(accumulation=4)
    tracker.forward(0, live(tracker))
    tracker.backward_input(0, live(tracker))
    tracker.forward(1, live(tracker))
    assert (tracker.drift, tracker.peak_in_flight) == ({0: 1}, 2)
    tracker.backward_weight(0)
    tracker.forward(2, live(tracker))
    assert tracker.peak_in_flight == 2

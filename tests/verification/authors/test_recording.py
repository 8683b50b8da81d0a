"""Events become orders that paci can replay, and refuse to where they cannot."""

import pytest

import paci


def test_orders_are_the_forwards_and_backwards(recorded):
    recording = recorded("F0 F1 refuse2 B0 update0 F2 B1 update1 B2 update2", "F0 B0 send0 update0")
    assert paci.write_orders(recording.orders()) == "0F0,0F1,0B0,0F2,0B1,0B2\n1F0,1B0\n"


@pytest.mark.parametrize(
    "line",
    [
        "F0 B0 F1 update0",  # the update comes after the next forward
        "F0 B0 update0 send0",  # the gradient is sent after the update
        "F0 send0 B0",
    ],
)
def test_what_belongs_to_no_backward_is_refused(recorded, line):
    with pytest.raises(ValueError, match="is not of a backward"):
        recorded(line).orders()


def test_two_parts_are_one_training(recorded):
    first, second = recorded("F0 B0 update0"), recorded("F1 B1 update1")
    for part, loss in ((first, 2.0), (second, 1.0)):
        part.results.update(losses=[loss], evaluations=[], weights=[{}], optimizers=[])
    both = first.then(second)
    assert both.results["losses"] == [2.0, 1.0]
    assert paci.write_orders(both.orders()) == "0F0,0B0,0F1,0B1\n"


def test_drift_and_in_flight_are_counted_from_events(recorded):
    recording = recorded("F0 F1 B0 update0 F2 B1 update1 B2 update2")
    recording.results.update(losses=[], evaluations=[], weights=[], optimizers=[])
    outcome = recording.outcome()
    assert outcome.drift == [{0: 1, 1: 2}]
    assert outcome.in_flight == [2]
    assert outcome.rates == [[0.1, 0.1, 0.1]]

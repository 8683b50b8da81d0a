import math
from itertools import count

import pytest
from scipy.stats import ttest_1samp

from benchmarks import rounds
from benchmarks.goals import verdict
from benchmarks.machine import Machine
from benchmarks.rounds import Estimate, in_rounds


def test_the_interval_is_that_of_a_t_test_on_logarithms():
    values = [0.9, 1.0, 1.2, 0.95]
    logs = [math.log(value) for value in values]
    expected = ttest_1samp(logs, 0.0).confidence_interval(0.95)
    estimate = Estimate.of(values)
    assert estimate.value == pytest.approx(math.prod(values) ** (1 / 4))
    assert (estimate.low, estimate.high) == pytest.approx(
        (math.exp(expected.low), math.exp(expected.high))
    )
    assert estimate.rounds == 4


def test_the_interval_of_a_ratio_turned_over_is_turned_over():
    values = [0.9, 1.0, 1.2, 0.95]
    one, other = Estimate.of(values), Estimate.of([1 / value for value in values])
    assert (other.value, other.low, other.high) == pytest.approx(
        (1 / one.value, 1 / one.high, 1 / one.low)
    )


def test_one_round_says_nothing():
    assert Estimate.of([2.0]).low == 0.0
    assert Estimate.of([2.0]).width > 1e300


def test_every_other_round_runs_in_reverse_order():
    order = []
    sides = [lambda name=name: order.append(name) or name for name in "ABC"]
    seen = []
    in_rounds(sides, lambda results: seen.append(results) or {"one": 1.0}, most_seconds=1)
    assert "".join(order) == "ABCCBAABC"
    assert seen == [["A", "B", "C"]] * 3


def test_a_side_that_slows_down_steadily_is_not_favoured():
    clock = count(100)
    sides = [lambda: float(next(clock))] * 2

    def ratio(results):
        return {"ratio": results[0] / results[1]}

    estimate = in_rounds(sides, ratio, most_seconds=1, narrow=0.002)["ratio"]
    assert estimate.low < 1 < estimate.high


def test_rounds_go_on_until_all_intervals_are_narrow(monkeypatch):
    monkeypatch.setattr(rounds.time, "monotonic", lambda: 0.0)
    values = iter([1.0, 1.5, 0.7, *[1.0] * 100000])
    estimates = in_rounds(
        [lambda: next(values)], lambda s: {"a": s[0], "b": 1.0}, most_seconds=1, narrow=0.1
    )
    assert estimates["a"].width <= 0.1
    taken = [1.0, 1.5, 0.7, *[1.0] * (estimates["a"].rounds - 4)]
    assert Estimate.of(taken).width > 0.1


def test_rounds_end_in_time(monkeypatch):
    clock = count(0)
    monkeypatch.setattr(rounds.time, "monotonic", lambda: 10.0 * next(clock))
    values = iter([1.0, 2.0] * 10)
    # The clock is read once at the start, and at the end of every round from the third on.
    estimate = in_rounds([lambda: next(values)], lambda s: {"a": s[0]}, most_seconds=35)["a"]
    assert estimate.rounds == 5


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(0.95, 0.97, "reached"), (0.94, 0.96, "undecided"), (0.90, 0.94, "missed")],
)
def test_a_goal_from_below_is_on_the_lower_end(low, high, expected):
    estimate = Estimate((low + high) / 2, low, high, 5)
    assert verdict("local_vs_plain", estimate) == f"goal >= 0.95: {expected}"


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(1.0, 1.03, "reached"), (1.02, 1.04, "undecided"), (1.04, 1.05, "missed")],
)
def test_a_goal_from_above_is_on_the_upper_end(low, high, expected):
    estimate = Estimate((low + high) / 2, low, high, 5)
    assert verdict("stashed_vs_live", estimate) == f"goal <= 1.03: {expected}"


def test_a_disturbed_machine_is_said_to_be_one():
    assert Machine(2, load=3.0, busy=0.01, stolen=0.001).disturbance == ""
    disturbed = Machine(2, load=3.0, busy=0.5, stolen=0.04).disturbance
    assert disturbed == (
        "other processes took 50% of the processors at rest and the host took 4.0% of their time"
    )

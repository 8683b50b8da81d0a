import itertools
import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paci import Cost, simulate
from paci.cost import Durations

FORWARD = "F"


@pytest.mark.parametrize(
    ("name", "value", "wanted"),
    [
        ("forward", 0, "above 0"),
        ("forward", -1.0, "above 0"),
        ("backward", math.inf, "above 0"),
        ("backward", [1.0, math.nan], "above 0"),
        ("backward", None, "above 0"),
        ("forward", "1", "above 0"),
        ("forward", True, "above 0"),
        ("weight", 0, "above 0"),
        ("input", 0, "above 0"),
        ("update", -1e-9, "at least 0"),
        ("transfer", [0.0, -1.0], "at least 0"),
        ("jitter", 1.0, "at least 0 and below 1"),
        ("jitter", -0.1, "at least 0"),
        ("jitter", [0.1, 0.1], "at least 0 and below 1"),
        ("forward", 1e308, "from 1e-100 to 1e\\+100"),
        ("backward", [1.0, 1e-315], "from 1e-100 to 1e\\+100"),
        ("transfer", 10**400, "from 1e-100 to 1e\\+100"),
    ],
)
def test_no_time_but_a_time(name, value, wanted):
    with pytest.raises(ValueError, match=f"cost.{name} must be .*{wanted}, not "):
        Cost(**{name: value})


@pytest.mark.parametrize("unit", [1e-100, 1e99])
def test_any_unit_of_time(unit):
    one = simulate("paci", 4, 64, 4, cost=Cost(1, 2, jitter=0.1))
    other = simulate("paci", 4, 64, 4, cost=Cost(unit, 2 * unit, jitter=0.1))
    assert other.timeline.orders() == one.timeline.orders()
    assert other.utilization == pytest.approx(one.utilization)


@pytest.mark.parametrize("name", ["forward", "backward", "weight", "input", "update", "transfer"])
def test_one_number_or_one_for_each_stage(name):
    cost = Cost(**{name: (0.5, 0.5)})
    simulate("paci", 2, 4, cost=cost)
    with pytest.raises(ValueError, match=f"cost.{name} must be .* each of the 3 stages, not 2"):
        simulate("paci", 3, 4, cost=cost)


def test_the_weight_gradient_is_a_part_of_the_backward():
    halves = Durations(Cost(backward=(3, 5)), 2, 1).of
    assert (halves["I"], halves["W"]) == ([[1.5], [2.5]], [[1.5], [2.5]])
    parts = Durations(Cost(backward=3, weight=1), 2, 1).of
    assert (parts["I"], parts["W"], parts["B"]) == ([[2], [2]], [[1], [1]], [[3], [3]])
    with pytest.raises(ValueError, match=r"a part of cost.backward: 2.0 is not below 2.0 at stage"):
        Durations(Cost(weight=2), 1, 1)
    given = Durations(Cost(backward=3, weight=4, input=(0.5, 2)), 2, 1).of
    assert (given["I"], given["W"], given["B"]) == ([[0.5], [2]], [[4], [4]], [[3], [3]])


@given(st.lists(st.floats(1e-3, 1e3), min_size=3, max_size=3))
def test_sums_of_times_are_exact(times):
    """So things that happen together on paper do so on the clock."""
    of = Durations(Cost(forward=times, backward=1e-3), 3, 1).of[FORWARD]
    rounded = [time for (time,) in of]
    assert rounded == pytest.approx(times, rel=0, abs=max(times) * 2**-34)
    exact = sum(map(Fraction, rounded * 100))
    assert all(sum(order * 100) == exact for order in itertools.permutations(rounded))


@given(st.integers(0, 9), st.integers(0, 5), st.integers(1, 20))
def test_jitter_is_a_function_of_seed_stage_kind_and_microbatch(seed, first, count):
    cost = Cost(forward=2.0, backward=2.0, jitter=0.1)
    few, many = Durations(cost, 2, count, seed, first).of, Durations(cost, 3, 30, seed).of
    for kind in "FBIW":
        for stage in range(2):
            assert few[kind][stage] == many[kind][stage][first : first + count]
    drawn = [tuple(times) for kind in "FB" for times in many[kind]]
    assert len(set(drawn)) == 6
    assert many[FORWARD] != Durations(cost, 3, 30, seed + 1).of[FORWARD]


def test_jitter_stays_within_its_range_and_fills_it():
    times = Durations(Cost(forward=10, jitter=0.2), 1, 10_000).of[FORWARD][0]
    assert 8 <= min(times) < 8.01
    assert 11.99 < max(times) <= 12
    assert sum(times) / 10_000 == pytest.approx(10, rel=0.01)


def test_uneven_microbatches_take_times_in_proportion():
    """At any place of training: sizes go round with the windows; updates stay as they are."""
    cost = Cost(1, 2, update=0.5, transfer=0.25, sizes=(3, 2, 2))
    d = Durations(cost, 1, 5, first=1)
    assert d.of["F"] == [[2, 2, 3, 2, 2]]
    assert d.of["B"] == [[4, 4, 6, 4, 4]]
    assert d.of["W"] == [[2, 2, 3, 2, 2]]
    assert d.transfer == [[0.5, 0.5, 0.75, 0.5, 0.5]]
    assert d.update == [0.5]
    jittered = Durations(Cost(1, 2, jitter=0.1, sizes=(3, 2, 2)), 1, 5, first=1).of["F"][0]
    even = Durations(Cost(1, 2, jitter=0.1), 1, 5, first=1).of["F"][0]
    assert jittered == pytest.approx(
        [2 * even[0], 2 * even[1], 3 * even[2], 2 * even[3], 2 * even[4]]
    )


def test_a_window_of_uneven_microbatches_is_as_long_as_its_work():
    run = simulate("gpipe", 1, 6, 3, cost=Cost(1, 2, sizes=(3, 2, 2)))
    assert run.makespan == 2 * 7 * 3


@pytest.mark.parametrize("sizes", [(), [0], [1, -1], 2, "12"])
def test_sizes_are_positive(sizes):
    with pytest.raises(ValueError, match=r"cost.sizes must be"):
        Cost(sizes=sizes)

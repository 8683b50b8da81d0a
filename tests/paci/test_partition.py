from fractions import Fraction
from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paci import Cost, simulate
from paci.partition import UnitCost, partition, peak_in_flight, stage_bytes
from paci.schedules import SCHEDULES, build
from tests.paci import toys

unit_costs = st.builds(
    UnitCost,
    time=st.sampled_from([0.1, 0.2, 0.3, 0.7, 1.0, 3.0]),
    parameter_bytes=st.integers(0, 5),
    activation_bytes=st.integers(0, 5),
)


@st.composite
def models(draw):
    units = draw(st.lists(unit_costs, min_size=1, max_size=8))
    return units, draw(st.integers(1, len(units)))


def cuts(units, stages):
    """Every cut, earliest first."""
    for inner in combinations(range(1, len(units)), stages - 1):
        yield [range(*ends) for ends in pairwise((0, *inner, len(units)))]


def stage_times(units, cut):
    return [sum(Fraction(units[k].time) for k in run) for run in cut]


def peak_bytes(units, cut, copies, in_flight, combine=max):
    def stage_bytes(stage, run):
        return sum(
            copies * units[k].parameter_bytes + in_flight[stage] * units[k].activation_bytes
            for k in run
        )

    return combine(stage_bytes(stage, run) for stage, run in enumerate(cut))


@given(models())
def test_equals_brute_force(model):
    units, stages = model

    def quality(cut):
        times = stage_times(units, cut)
        return max(times), sum(time**2 for time in times)

    assert partition(units, stages) == min(cuts(units, stages), key=quality)


@given(models(), st.integers(0, 200), st.integers(1, 4), st.integers(0, 3))
def test_equals_brute_force_under_a_memory_limit(model, limit, copies, slack):
    units, stages = model
    in_flight = [stages - i + (slack if i < stages - 1 else 0) for i in range(stages)]
    peaks = [peak_bytes(units, cut, copies, in_flight) for cut in cuts(units, stages)]

    def quality(cut):
        times = stage_times(units, cut)
        return max(times), sum(time**2 for time in times)

    least = max(limit, min(peaks))  # the smallest overshoot comes before any time
    fitting = [cut for cut, peak in zip(cuts(units, stages), peaks, strict=True) if peak <= least]
    cut = partition(units, stages, limit, copies=copies, in_flight=in_flight)
    assert cut == min(fitting, key=quality)
    found = stage_bytes(units, cut, copies=copies, in_flight=in_flight)
    assert max(found) == peak_bytes(units, cut, copies, in_flight)
    assert len(found) == stages


def test_the_least_overshoot_comes_before_even_stages():
    """No cut fits into 1 byte: the later cut is evener, the earlier exceeds the limit by less."""
    units = [UnitCost(1.0, activation_bytes=10)] * 4
    assert partition(units, 2, limit=1) == [range(0, 1), range(1, 4)]
    assert stage_bytes(units, partition(units, 2, limit=1)) == [20, 30]


@given(models(), st.integers(0, 80), st.integers(0, 2))
def test_stages_of_one_device_equal_brute_force_under_the_sum(model, limit, slack):
    """Enough memory, or the least there is, comes first, then the slowest stage."""
    units, stages = model
    in_flight = [stages - i + (slack if i < stages - 1 else 0) for i in range(stages)]
    bytes_of = {
        tuple(cut): peak_bytes(units, cut, 4, in_flight, sum) for cut in cuts(units, stages)
    }
    allowed = max(limit, min(bytes_of.values()))
    cut = partition(units, stages, limit, in_flight=in_flight, shared=True)
    assert bytes_of[tuple(cut)] <= allowed
    fitting = [it for it, total in bytes_of.items() if total <= allowed]
    assert max(stage_times(units, cut)) == min(max(stage_times(units, it)) for it in fitting)


@pytest.mark.parametrize("name", SCHEDULES)
@given(st.data())
def test_the_peak_in_flight_is_that_of_the_schedule_at_any_times(name, data):
    """Exactly at equal times, where the bound of an asynchronous rule is reached too."""
    each = SCHEDULES[name].stages_per_rank
    a = 1 if name == "async-1f1b" else data.draw(st.sampled_from([4, 8, 12]))
    stages = each * data.draw(st.integers(1, 4))
    try:
        schedule = build(name, stages, a)
    except ValueError:
        return  # the rule wants more micro-batches for so many stages
    peaks = peak_in_flight(schedule)
    assert simulate(schedule, stages, 4 * a if a > 1 else 4 * stages).peak_in_flight == peaks
    times = st.lists(toys.eighths, min_size=stages, max_size=stages)
    cost = Cost(forward=data.draw(times), backward=data.draw(times))
    held = simulate(schedule, stages, 4 * a, cost=cost).peak_in_flight
    assert all(own <= peak for own, peak in zip(held, peaks, strict=True))


def test_gpipe_holds_a_window_and_1f1b_what_fills_the_pipeline():
    assert peak_in_flight(build("gpipe", 4, 16)) == [16] * 4
    assert peak_in_flight(build("1f1b-flush", 4, 16)) == [4, 3, 2, 1]
    assert peak_in_flight(build("1f1b-flush", 4, 2)) == [2, 2, 2, 1]
    assert peak_in_flight(build("paci", 4, 2, slack=3)) == [7, 6, 5, 1]


def test_even_units_give_even_stages():
    assert partition([UnitCost(0.1)] * 6, 3) == [range(0, 2), range(2, 4), range(4, 6)]


def test_takes_the_most_even_of_the_optimal_cuts():
    units = [UnitCost(time) for time in (5, 1, 1, 1, 1)]
    assert partition(units, 3) == [range(0, 1), range(1, 3), range(3, 5)]


def test_memory_moves_units_to_the_later_stages():
    units = [UnitCost(1.0, activation_bytes=10)] * 4
    assert partition(units, 2) == [range(0, 2), range(2, 4)]
    assert partition(units, 2, limit=30) == [range(0, 1), range(1, 4)]


def test_more_stages_than_units():
    with pytest.raises(ValueError, match="cannot cut 2 units into 3 non-empty stages"):
        partition([UnitCost(1.0)] * 2, 3)


@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan"), float("inf")])
def test_a_time_is_positive_and_finite(bad):
    with pytest.raises(ValueError, match="unit 1 takes"):
        partition([UnitCost(1.0), UnitCost(bad)], 1)


def test_a_model_of_the_paper_s_size_is_cut_evenly():
    # 24 layers are 48 equal halves: six to each of eight stages.
    assert partition([UnitCost(1.0)] * 48, 8) == [range(k, k + 6) for k in range(0, 48, 6)]

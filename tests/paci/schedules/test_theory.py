import pytest
from hypothesis import given
from hypothesis import strategies as st

from paci import Cost, simulate
from paci.schedules import theory


def test_the_papers_examples():
    """Eight stages: 4 micro-batches an update drift by at most 2 updates, 8 by at most 1."""
    assert theory.drift_bound(8, 0, 4) == 2
    assert [theory.drift_bound(8, stage, 8) for stage in range(8)] == [1] * 7 + [0]
    assert [theory.drift_bound(8, stage, 1) for stage in range(8)] == [7, 6, 5, 4, 3, 2, 1, 0]
    assert theory.bubble_efficiency(8, 8) == 8 / 15


def test_slack_loosens_both_bounds_but_not_at_the_last_stage():
    assert [theory.in_flight_bound(4, stage, slack=3) for stage in range(4)] == [7, 6, 5, 1]
    assert [theory.drift_bound(4, stage, 2, slack=3) for stage in range(4)] == [3, 3, 2, 0]


@given(
    st.sampled_from(["gpipe", "1f1b-flush", "paci", "async-1f1b"]),
    st.integers(1, 8), st.integers(1, 8), st.integers(0, 1),
)  # fmt: skip
def test_memory_is_what_the_clock_measures(schedule, N, a, slack):
    a = 1 if schedule == "async-1f1b" else a
    slack = slack if "flush" not in schedule and schedule != "gpipe" else 0
    run = simulate(schedule, N, 20 * a, a, slack)
    units = [theory.activation_units(schedule, N, stage, a, slack) for stage in range(N)]
    assert run.peak_in_flight == units


@pytest.mark.parametrize("limits", [{"stages_per_rank": 2}, {"in_flight": 3}, {"slack": 1}])
def test_memory_under_other_limits_is_what_the_clock_measures(limits):
    run = simulate("paci", 6, 40, 2, cost=Cost(forward=1.0, backward=1.0), **limits)
    v = limits.get("stages_per_rank", 1)
    own = [run.peak_in_flight[rank * v : (rank + 1) * v] for rank in range(6 // v)]
    units = [theory.activation_units("paci", 6, rank, 2, **limits) for rank in range(6 // v)]
    assert all(sum(held) <= most for held, most in zip(own, units, strict=True))
    assert sum(own[0]) == units[0]
    bounds = [run.schedule.drift_bound(stage) for stage in range(6)]
    assert all(drift <= most for drift, most in zip(run.max_drift, bounds, strict=True))
    assert run.max_drift[0] == bounds[0]


def test_live_weights_are_the_only_copy():
    assert theory.parameter_units("live", drift=7) == 1


def test_published_bubbles():
    """Idle over ideal time of 8 ranks and 32 micro-batches: (N-1)/m, (N-1)/(v m), a third, none."""
    rate = theory.bubble_rate
    assert rate("1f1b-flush", 8, 32) == rate("gpipe", 8, 32) == 7 / 32
    assert rate("interleaved-1f1b", 8, 32, stages_per_rank=4) == 7 / (4 * 32)
    assert rate("zb-h1", 8, 32) == pytest.approx(7 / 32 / 3)
    assert rate("zb-2p", 8, 32) == rate("zbv", 8, 32, 2) == rate("paci", 8, 4) == 0
    assert 1 / (1 + rate("1f1b-flush", 8, 32)) == theory.bubble_efficiency(8, 32)


def test_published_memory():
    """Against the N micro-batches of 1F1B's first rank, stages of v to a rank counted as 1/v."""
    units = theory.activation_units
    assert units("zb-h1", 8, 7, 32) == units("1f1b-flush", 8, 0, 32) == 8
    assert units("zb-h2", 8, 7, 32) == 2 * 8 - 1
    assert units("zb-2p", 8, 7, 32) == 2 * 8
    assert units("zbv", 16, 7, 32, stages_per_rank=2) / 2 == 8
    assert units("dualpipev", 16, 7, 32, stages_per_rank=2) / 2 == 8 + 1 / 2
    assert units("interleaved-1f1b", 32, 0, 32, stages_per_rank=4) / 4 == 8 * (1 + 7 / (8 * 4))


@pytest.mark.parametrize(
    "ask",
    [
        lambda: theory.activation_units("nonesuch", 4, 0, 4),
        lambda: theory.parameter_units("", drift=0),
        lambda: theory.bubble_rate("nonesuch", 4, 4),
    ],
)
def test_no_closed_form(ask):
    with pytest.raises(ValueError, match=r"no closed form for the .* of"):
        ask()

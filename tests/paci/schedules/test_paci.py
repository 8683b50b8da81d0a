from math import ceil

from hypothesis import given
from hypothesis import strategies as st

from paci import Cost, simulate
from paci.schedules.theory import drift_bound, in_flight_bound
from tests.paci import toys


@given(toys.sizes())
def test_bounds_hold_whatever_the_times(sizes):
    N, a, slack = sizes["stages"], sizes["accumulation"], sizes["slack"]
    run = simulate("paci", **sizes)
    for stage in range(N):
        limit = N - stage + (slack if stage < N - 1 else 0)
        assert run.peak_in_flight[stage] <= limit == in_flight_bound(N, stage, slack)
        assert run.max_drift[stage] <= ceil((limit - 1) / a) == drift_bound(N, stage, a, slack)


@given(st.integers(1, 10), st.integers(1, 9), toys.eighths, toys.eighths)
def test_without_slack_equal_stages_attain_both_bounds(N, a, forward, backward):
    """At every stage, within 1 + ⌈(N-1)/a⌉ windows, the fewest that can drift so far."""
    windows = 1 + ceil((N - 1) / a)
    run = simulate("paci", N, windows * a, a, cost=Cost(forward, backward))
    assert run.max_drift == [ceil((N - 1 - stage) / a) for stage in range(N)]
    run = simulate("paci", N, N * a, a, cost=Cost(forward, backward))
    assert run.peak_in_flight == [N - stage for stage in range(N)]


@given(st.integers(1, 8), st.integers(1, 6), st.integers(0, 12), toys.eighths, toys.eighths)
def test_equal_stages_use_only_so_much_slack(N, a, slack, forward, backward):
    """A stage gets ahead only while the pipe fills, by ⌈backward/forward⌉ for every stage after
    it; from then on one backward comes back for each forward."""
    run = simulate("paci", N, 150 * a, a, slack, Cost(forward, backward))
    ahead = [min(slack, (N - 1 - i) * ceil(backward / forward)) for i in range(N)]
    assert run.peak_in_flight == [N - i + ahead[i] for i in range(N)]
    assert run.max_drift == [ceil((N - 1 - i + ahead[i]) / a) for i in range(N)]


def test_latency_uses_the_slack_that_equal_stages_leave():
    """So that the bound with slack is attained too, at every stage."""
    run = simulate("paci", 4, 400, 1, slack=5, cost=Cost(1, 1, transfer=4))
    assert run.max_drift == [8, 7, 6, 0]


@given(toys.sizes())
def test_async_1f1b_is_paci_with_one_microbatch_an_update(sizes):
    sizes["accumulation"] = 1
    assert simulate("async-1f1b", **sizes).actions == simulate("paci", **sizes).actions

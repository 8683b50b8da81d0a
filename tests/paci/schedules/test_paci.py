from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paci import Cost, simulate
from paci.schedules import build
from paci.schedules.theory import drift_bound, drift_of_limit, in_flight_bound
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


@st.composite
def several(draw):
    """Runs of ranks with several stages each."""
    v = draw(st.integers(1, 4))
    sizes = draw(toys.sizes(stages=3))
    N = v * sizes["stages"]
    times = {
        name: draw(toys.eighths | st.lists(toys.eighths, min_size=N, max_size=N))
        for name in ("forward", "backward", "transfer")
    }
    cost = Cost(**times, jitter=sizes["cost"].jitter)
    return sizes | {"stages": N, "stages_per_rank": v, "cost": cost}


def each_microbatch_once(run, stages, microbatches):
    for stage in range(stages):
        for kind in "FB":
            done = [s.microbatch for s in run.actions if (s.stage, s.kind) == (stage, kind)]
            assert done == list(range(microbatches))


@given(several())
def test_bounds_with_several_stages_per_rank(sizes):
    N, v, a = sizes["stages"], sizes["stages_per_rank"], sizes["accumulation"]
    ranks, slack = N // v, sizes["slack"]
    run = simulate("paci", **sizes)
    each_microbatch_once(run, N, sizes["microbatches"])
    for stage in range(N):
        rank = stage // v
        limit = ranks - rank + (slack if rank < ranks - 1 else 0)
        assert run.peak_in_flight[stage] <= limit == in_flight_bound(N, stage, slack, v)
        assert run.max_drift[stage] <= ceil((limit - 1) / a) == drift_of_limit(limit, a)


@given(
    st.integers(1, 5), st.integers(1, 4), st.integers(1, 6), toys.eighths, toys.eighths,
    st.sampled_from(["paci", "1f1b-flush"]),
)  # fmt: skip
def test_a_rank_of_equal_stages_is_one_stage_cut_finer(ranks, v, a, forward, backward, schedule):
    """Same makespan, and the bounds are attained at every stage of a rank."""
    m = a * (1 + ceil((ranks - 1) / a)) * ranks
    whole = simulate(schedule, ranks, m, a, cost=Cost(v * forward, v * backward))
    finer = simulate(schedule, ranks * v, m, a, cost=Cost(forward, backward), stages_per_rank=v)
    assert finer.makespan == whole.makespan
    assert finer.max_drift == [drift for drift in whole.max_drift for _ in range(v)]
    assert finer.peak_in_flight == [count for count in whole.peak_in_flight for _ in range(v)]


@given(several(), st.data())
def test_other_limits_never_deadlock_and_bound_the_drift(sizes, data):
    N, a = sizes["stages"], sizes["accumulation"]
    limit = data.draw(st.integers(1, 9) | st.lists(st.integers(1, 9), min_size=N, max_size=N))
    limits = limit if isinstance(limit, list) else [limit] * N
    run = simulate("paci", **sizes | {"slack": 0, "in_flight": limit})
    each_microbatch_once(run, N, sizes["microbatches"])
    for stage in range(N):
        assert run.peak_in_flight[stage] <= limits[stage]
        assert run.max_drift[stage] <= ceil((limits[stage] - 1) / a)
        assert in_flight_bound(N, stage, in_flight=limit) == limits[stage]


@given(toys.sizes())
def test_the_default_limits_may_be_given(sizes):
    N = sizes["stages"]
    sizes["slack"] = 0
    given = simulate("paci", **sizes, in_flight=[N - stage for stage in range(N)])
    assert given.actions == simulate("paci", **sizes).actions


def test_a_limit_below_what_fills_the_pipeline_costs_utilisation():
    """One in flight is no pipeline: of four equal stages one works at a time."""
    assert simulate("paci", 4, 64, in_flight=1, cost=Cost(1, 1)).utilization == 1 / 4
    assert simulate("paci", 4, 64, in_flight=2, cost=Cost(1, 1)).utilization < 0.6
    assert simulate("paci", 4, 64, in_flight=1).max_drift == [0] * 4


@pytest.mark.parametrize("limit", [0, True, 1.5, [2, 2], [2, 0, 1], "3"])
def test_limits_are_whole_numbers(limit):
    with pytest.raises(ValueError, match=r"in_flight must be .* each of the 3 stages, not"):
        simulate("paci", 3, in_flight=limit)


def test_limits_and_slack_exclude_each_other():
    with pytest.raises(ValueError, match="give one of the two, not in_flight=2 and slack=1"):
        simulate("paci", 3, slack=1, in_flight=2)
    with pytest.raises(ValueError, match="paci puts 2 stages on each rank"):
        simulate("paci", 3, stages_per_rank=2)


@pytest.mark.parametrize("options", [{"stages_per_rank": 2}, {"in_flight": [4, 2, 3, 1]}])
def test_real_stages_drift_as_simulated(options):
    rule = build("paci", 4, 2, **options)
    segment = toys.pipeline(toys.stages(4), rule, None).train(toys.batches(24))
    run = simulate(rule, 4, 24)
    assert [max(stage) for stage in segment.drift] == run.max_drift
    assert [stage.peak_in_flight for stage in segment.stages] == run.peak_in_flight

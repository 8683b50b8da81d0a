"""The published figures of zero bubble, and the greedy order under measured times."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paci import Cost, simulate
from paci.schedules import build
from paci.schedules.greedy import _Planner
from tests.paci import toys


def idle_of_a_window(schedule, stages, m, cost, **options) -> float:
    """Return the bubble rate of a rank with one stage, where windows follow one another."""
    rule = build(schedule, stages, m, **options)
    two, three = (simulate(rule, stages, k * m, cost=cost).makespan for k in (2, 3))
    return three - two - m * (cost.forward + cost.backward)


def test_the_published_bubbles_and_memory():
    """At equal times: a third of 1F1B's bubble at 1x its memory, none at 2x, none at 1x."""
    N, m, cost = 8, 32, Cost(1, 2)
    idle = {
        name: idle_of_a_window(name, stages, m, cost)
        for name, stages in [
            ("1f1b-flush", N), ("zb-h1", N), ("zb-1p", N), ("zb-h2", N), ("zb-2p", N),
            ("zbv", 2 * N),
        ]
    }  # fmt: skip
    idle["zbv"] -= m * 3  # two stages a rank
    assert idle["zb-h1"] == idle["zb-1p"] == idle["1f1b-flush"] / 3 == N - 1
    assert idle["zb-h2"] == idle["zb-2p"] == idle["zbv"] == 0

    def memory(name, stages=N):
        return max(simulate(name, stages, m, m, cost=cost).peak_activations)

    assert memory("zb-h1") == memory("zb-1p") == memory("1f1b-flush") == N
    assert memory("zb-h2") == 2 * N - 1
    assert memory("zb-2p") == 2 * N
    assert memory("zbv", 2 * N) / 2 == N


@given(st.integers(2, 8), st.integers(0, 9), toys.eighths, toys.eighths, toys.eighths)
def test_the_published_bubbles_at_unequal_times(N, more, forward, input_gradient, weight_gradient):
    """(N-1)(T_F + T_B - T_W) and (N-1)(T_F + T_B - 2 T_W), where W is the shortest: it is made to
    fit into the gaps of the others."""
    weight_gradient = min(forward, input_gradient, weight_gradient)
    cost = Cost(forward, input_gradient + weight_gradient, weight_gradient)
    both = forward + input_gradient
    m = 2 * N + more
    assert idle_of_a_window("zb-h1", N, m, cost) == (N - 1) * (both - weight_gradient)
    assert idle_of_a_window("zb-h2", N, m, cost) == (N - 1) * (both - 2 * weight_gradient)


times = st.sampled_from([0.5, 0.75, 1.0, 1.25, 1.5])


@st.composite
def measured(draw):
    N = draw(st.integers(1, 6))
    weight = draw(times)
    cost = Cost(
        draw(times), draw(times) + weight, weight, transfer=draw(st.sampled_from([0, 0.25]))
    )
    return {"stages": N, "m": draw(st.integers(1, 16)), "cost": cost}


@given(measured())
def test_the_greedy_order_is_at_least_as_good_as_the_handcrafted_one(run):
    for greedy, handcrafted in (("zb-1p", "zb-h1"), ("zb-2p", "zb-h2")):
        planned = idle_of_a_window(greedy, **run, measured=run["cost"])
        assert planned <= idle_of_a_window(handcrafted, **run)


def test_the_greedy_order_uses_what_it_knows():
    """Qi et al.'s 6.2B model: times in ms. A smaller bubble than what is made for equal
    times."""
    cost = Cost(29.7, 29.4 + 19.9, 19.9, transfer=0.5)
    handcrafted = idle_of_a_window("zb-h2", 8, 24, cost)
    blind = idle_of_a_window("zb-2p", 8, 24, cost)
    planned = idle_of_a_window("zb-2p", 8, 24, cost, measured=cost)
    assert planned < 0.9 * handcrafted
    assert planned < blind


@given(measured(), st.integers(0, 12), st.sampled_from([0.0, 0.4, 1.0]))
def test_the_greedy_order_stays_below_its_limit(run, more, held):
    N, limit = run["stages"], run["stages"] + more
    rule = build("zb-2p", N, run["m"], limit=limit, measured=run["cost"], held=held)
    for order in rule.orders:
        whole, kept = 0, 0
        for action in order:
            if action.kind == "F":
                whole += 1
            elif action.kind == "I":
                whole, kept = whole - 1, kept + 1
            else:
                kept -= 1
            assert whole + held * kept <= limit + 1e-9


def test_memory_that_the_weight_gradients_do_not_need_buys_back_the_bubble():
    cost = Cost(18.5, 18.1 + 9.3, 9.3, transfer=0.6)
    idle = [idle_of_a_window("zb-2p", 8, 24, cost, measured=cost, held=held) for held in (1.0, 0.4)]
    assert idle[1] < idle[0] / 2


@settings(max_examples=10)
@given(measured())
def test_costs_may_be_given_as_a_mapping(run):
    cost = run["cost"]
    fields = {name: getattr(cost, name) for name in ("forward", "backward", "weight", "transfer")}
    mapped, given = (
        build("zb-2p", run["stages"], run["m"], measured=m).orders for m in (fields, cost)
    )
    assert mapped == given


BAD = [
    ("zb-2p", {"limit": 3}, r"limit of at least one micro-batch a stage \(4\), not 3"),
    ("zb-2p", {"limit": 4.5}, "limit must be a whole number of at least 1, not 4.5"),
    ("zb-2p", {"held": 2}, "held must be a share from 0 to 1, not 2"),
    ("zb-1p", {"measured": 1.0}, "measured must be a paci.Cost, or a mapping of its fields, not 1"),
    ("zb-1p", {"measured": {"speed": 1}}, "measured must be a paci.Cost, or a mapping of its"),
    ("zb-1p", {"measured": {"forward": -1}}, "cost.forward must be a time above 0, not -1"),
    ("zb-h1", {"limit": 8}, "zb-h1 has no option 'limit': it has no options"),
    ("zbv", {"slack": 1}, "zbv has no option 'slack': it has no options"),
    ("interleaved-1f1b", {"stages_per_rank": 3}, "3 stages on each rank: stages must be a"),
    ("interleaved-1f1b", {"stages_per_rank": 1}, "at least 2 stages_per_rank, not 1 .* 1f1b-flush"),
    ("interleaved-1f1b", {"stages_per_rank": 0}, "stages_per_rank must be a whole number of at"),
    ("interleaved-1f1b", {"accumulation": 5}, "accumulation must be a multiple of 2, not 5"),
    ("zbv", {"stages": 5}, "zbv puts 2 stages on each rank: stages must be a multiple of 2, not 5"),
    ("dualpipev", {"stages": 3}, "stages must be a multiple of 2, not 3"),
    ("dualpipev", {"accumulation": 3}, "accumulation must be at least 4, not 3"),
    ("dualpipev", {"stages": 0}, "stages must be a whole number of at least 1, not 0"),
    ("zb-2p", {"accumulation": 0}, "accumulation must be a whole number of at least 1, not 0"),
]  # fmt: skip


@pytest.mark.parametrize(("schedule", "wrong", "message"), BAD)
def test_impossible_options_are_refused(schedule, wrong, message):
    with pytest.raises(ValueError, match=message):
        build(schedule, **{"stages": 4, "accumulation": 4, **wrong})


@pytest.mark.parametrize("schedule", ["zb-1p", "zb-2p"])
def test_planning_takes_a_bounded_number_of_plans(schedule, monkeypatch):
    """However long the window is: at most five depths, each with three patiences."""
    plans = []
    plan = _Planner.plan
    monkeypatch.setattr(_Planner, "plan", lambda *given: plans.append(given) or plan(*given))
    for m in (8, 64):
        plans.clear()
        build(schedule, 8, m)
        assert 0 < len(plans) <= 5 * 3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paci import Cost, simulate
from paci.actions import read_orders, write_orders
from paci.schedules import FixedOrder
from tests.paci import toys


@given(toys.sizes(stages=6), st.sampled_from(["paci", "gpipe", "1f1b-flush"]))
def test_a_recording_is_done_again_at_any_cost(sizes, schedule):
    sizes["slack"] = sizes["slack"] if schedule == "paci" else 0
    run = simulate(schedule, **sizes)
    orders = read_orders(write_orders(run.timeline.orders()))
    again = FixedOrder(orders, sizes["accumulation"])
    other = simulate(again, sizes["stages"], sizes["microbatches"], cost=Cost(1, 3, transfer=2))
    assert other.timeline.orders() == orders
    same = simulate(again, sizes["stages"], sizes["microbatches"], cost=sizes["cost"],
                    seed=sizes["seed"])  # fmt: skip
    assert same.actions == run.actions


def test_the_first_few_of_a_recording():
    orders = simulate("paci", 3, 8, 2).timeline.orders()
    few = FixedOrder(orders, 2).truncated(4)
    assert simulate(few, 3, 4).timeline.orders() == few.orders
    assert all(action.microbatch < 4 for order in few.orders for action in order)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0F0,0B0\n0F1\n", "every stage at one rank"),
        ("1F0,1B0\n", "every stage at one rank"),
        ("0F1,0B1\n", "0F1 is out of turn: next is micro-batch 0"),
    ],
)
def test_what_is_no_order_is_refused(text, message):
    with pytest.raises(ValueError, match=message):
        FixedOrder(read_orders(text), 1)

import pytest
from hypothesis import given
from hypothesis import strategies as st
from torch.distributed.pipelining.schedules import _Action

from paci.actions import KINDS, Action, read_orders, write_orders

actions = st.builds(Action, st.integers(0, 10**4), st.sampled_from(KINDS), st.integers(0, 10**6))


@given(actions)
def test_text_parses_back_here_and_in_pytorch(action):
    assert Action.parse(str(action)) == action
    theirs = _Action.from_str(str(action))
    assert str(theirs) == str(action)
    assert (theirs.stage_index, theirs.microbatch_index) == (action.stage, action.microbatch)


def test_notation():
    assert str(Action(stage=12, kind="W", microbatch=3)) == "12W3"


@pytest.mark.parametrize(
    "text", ["", "F0", "2F", "2X0", "2f0", "-1F0", "2F0.5", "2F0,2B0", "2 F 0"]
)
def test_anything_else_is_refused(text):
    with pytest.raises(ValueError, match=r"not an action: write stage, kind .* like 2F0"):
        Action.parse(text)


@given(st.lists(st.lists(actions, min_size=1), min_size=1))
def test_orders_round_trip(orders):
    assert read_orders(write_orders(orders)) == orders


def test_orders_skip_empty_fields():
    assert read_orders("0F0, ,0B0\n\n,1F0,,1B0\n") == [
        [Action(0, "F", 0), Action(0, "B", 0)],
        [Action(1, "F", 0), Action(1, "B", 0)],
    ]


def test_orders_from_a_grid():
    """Blanks between, dots for steps of waiting, the rank in front."""
    grid = """
        rank 0  0F0  0F1   .    .   0B0  0B1
        rank 1   .   1F0  1B0  1F1  1B1
    """
    assert read_orders(grid) == read_orders("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n")


def test_a_word_in_an_order_is_refused():
    with pytest.raises(ValueError, match="'rank' is not an action"):
        read_orders("rank zero 0F0")

import pytest
import torch

from tests.paci import toys
from tests.paci.stage.weights.test_policy import stage


def test_weights_are_moved_and_then_what_they_were_to_the_last_bit():
    """Even after a step so long that going back by it would not lead there."""
    one = stage("predicted")
    before = toys.weights([one.module])
    steps = [torch.full_like(parameter, 1e6) for parameter in one.weights.parameters]
    with one.weights.moved(steps, -2):
        moved = toys.weights([one.module])
        assert one.weights.extra_bytes == one.weights.bytes_of_one_copy
    assert toys.same(moved, [[w - 2e6 for w in before[0]]])
    assert toys.same(toys.weights([one.module]), before)
    assert one.weights.extra_bytes == 0


def test_an_error_inside_leaves_nothing_moved():
    one = stage("predicted")
    before = toys.weights([one.module])
    with pytest.raises(KeyError), one.weights.moved(list(one.weights.parameters), 1):
        raise KeyError
    assert toys.same(toys.weights([one.module]), before)

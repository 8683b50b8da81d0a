import pytest

from experiments.config import compose
from experiments.config.derived import cost_of, microbatch_sizes


def test_a_micro_batch_takes_as_long_as_its_sequences():
    cost = ["executor.cost.forward=[1,2,3,4]", "executor.cost.update=5"]
    config = compose(["scale=smoke", "batch=12", "method.accumulation=4", *cost])
    made = cost_of(config)
    assert (made.forward, made.update) == ([3.0, 6.0, 9.0, 12.0], 5)
    assert made.backward == 3 * config.executor.cost.backward
    with pytest.raises(ValueError, match=r"cost\.forward must be a time, not 'long'"):
        compose(["scale=smoke", "executor.cost.forward=long"])


def test_micro_batches_of_two_sizes_take_two_times():
    config = compose(["scale=smoke", "batch=6", "method.accumulation=4"])
    assert microbatch_sizes(config) == [2, 2, 1, 1]
    made = cost_of(config)
    assert (made.forward, made.backward) == (2.0, 4.0)
    assert list(made.sizes) == [1.0, 1.0, 0.5, 0.5]

import pytest

from experiments.config import compose
from experiments.config.own import overrides_of, own


@pytest.mark.parametrize(
    "overrides",
    [
        [],
        ["scale=smoke", "tokens=2560", "seed=3"],
        ["method=nesterov-async", "optimizer.betas=[0.8,0.9]", "executor=measured"],
        ["method=zb-2p", "+method.options.limit=9", "executor=emulated", "runs='a b'"],
        [
            "data=files",
            "data.files=['my text/*.txt',it]",
            "model=smoke",
            "validation_sequences=null",
        ],
        ["scale=paper", "executor=distributed", "optimizer.eps=1e-9", "data.path=null"],
        ["method=pipemare", "named=[optimizer.lr]", "optimizer.schedule=wsd", "optimizer.warmup=3"],
    ],
)
def test_a_command_line_gives_the_run_again(overrides):
    config = compose(overrides)
    again = compose(overrides_of(config))
    assert own(again) == own(config)
    assert again.runs == config.runs


def test_a_command_line_is_short():
    config = compose(["scale=smoke", "method=gpipe", "optimizer.lr=0.1", "runs=mine"])
    assert overrides_of(config) == ["scale=smoke", "method=gpipe", "optimizer.lr=0.1", "runs=mine"]

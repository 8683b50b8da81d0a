import pytest

from experiments.config import compose
from experiments.config.naming import run_name


def name(*overrides):
    return run_name(compose(["scale=smoke", *overrides]))


def test_the_name_of_a_run_says_what_is_usually_varied():
    assert name("method.accumulation=8", "method.slack=2", "seed=3") == "paci-a8-slack2-b8-s3"
    options = ["+method.options.limit=16", "+method.options.measured={forward:1,backward:3}"]
    assert name("method=zb-2p", *options) == "zb-2p-a8-limit=16-measured-b8-s0"


@pytest.mark.parametrize(
    ("key", "value", "part"),
    [
        ("optimizer.lr", "3e-3", "lr0.003"),
        ("tokens", "2560", "tokens2560"),
        ("optimizer.decay", "matrices-but-embeddings", "decay-matrices-but-embeddings"),
        ("optimizer.betas", "[0.8,0.9]", "betas0.8-0.9"),
        ("validation_sequences", "null", "validation_sequences-None"),
        ("model", "smoke", "model-smoke"),
        ("data", "kjv", "data-kjv"),
        ("executor.cost", "measured", "cost-measured"),
    ],
)
def test_it_says_what_is_asked_for(key, value, part):
    assert name(f"{key}={value}", f"named=[{key}]") == f"paci-a4-b8-{part}-s0"


def test_a_group_of_settings_without_a_name_is_given():
    assert name("named=[executor.cost]") == "paci-a4-b8-cost-given-s0"


def test_keys_are_as_short_as_their_ends_differ():
    assert name("named=[model.name,optimizer.name,optimizer.lr]") == (
        "paci-a4-b8-model.name-smoke-optimizer.name-adamw-lr0.001-s0"
    )


def test_a_path_is_made_a_part_of_a_file_name():
    files = ["data=files", "named=[data.files]"]
    assert name(*files, "data.files=['my text/*.txt',../b]") == (
        "paci-a4-b8-files-my-text-.txt-..-b-s0"
    )
    long = [name(*files, f"data.files=[{'long/' * 20}{last}]") for last in "ab"]
    assert len(set(long)) == 2
    assert all(len(it) < 70 for it in long)


def test_a_key_that_there_is_not_is_refused():
    with pytest.raises(ValueError, match=r"named must list keys .*, which has no 'optimizer.rate'"):
        compose(["named=[optimizer.rate]"])

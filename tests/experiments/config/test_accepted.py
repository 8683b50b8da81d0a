import pytest

from experiments.config import compose
from experiments.config.accepted import check_each


@pytest.mark.parametrize(
    ("override", "sentence"),
    [
        ("tokens=1e6", "tokens must be a whole number of at least 1, not 1000000.0"),
        (
            "method.accumulation=0",
            "method.accumulation must be a whole number of at least 1, not 0",
        ),
        ("batch=3", r"batch must be at least method.accumulation \(4\), a sequence .*, not 3"),
        ("stages=11", "stages must be at most 10, the units into which .* 4 layers .* not 11"),
        ("model.heads=3", r"model.width must be a multiple of model.heads \(3\), not 32"),
        ("model.dropout=2", "model.dropout must be a number from 0 to 1, not 2"),
        ("method.weights=foo", "method.weights must be live.*, not 'foo'"),
        ("method.schedule=foo", "unknown schedule 'foo': choose from gpipe, .*paci"),
        ("executor.device=tpu", "executor.device must be cpu or cuda, not 'tpu'"),
        ("optimizer.lr=-1", "optimizer.lr must be a number above 0, not -1"),
        ("validation_sequences=all", "validation_sequences must be null or a whole number"),
        ("cluster.parallel=-1", "cluster.parallel must be null or a whole number of at least 1"),
        ("seeds=3", r"seeds must be a list of whole numbers of at least 0, like \[1,2\], not 3"),
        (
            "seeds=[]",
            r"seeds must be a list of whole numbers of at least 0, like \[1,2\], not \[\]",
        ),
        ("counts=4", "counts must be a list of whole numbers of at least 1, .*not 4"),
        ("task=sleep", "task must be training or throughput, not 'sleep'"),
        ("executor.cost=guessed", "executor.cost must be a table of times or measured, not 'gues"),
        ("executor.transfer=1", "executor.transfer stands beside measured costs: set executor.co"),
        ("data.tokeniser=3", "data.tokeniser must be bytes or gpt2, not 3"),
        ("data.source=3", "data.source must be kjv or files or openwebtext, not 3"),
        ("data.shuffle_seed=x", "data.shuffle_seed must be a whole number of at least 0, not 'x'"),
        ("executor.transfer=far", "executor.transfer must be a number of at least 0, not 'far'"),
        ("runs=null", "runs must be the path of a folder, not None"),
        ("tokens=300", "make 1 updates of 8 sequences of 32 tokens, too few for evaluations=2"),
    ],
)
def test_values_that_cannot_be_are_refused_in_a_sentence(override, sentence):
    with pytest.raises(ValueError, match=sentence) as error:
        compose(["scale=smoke", override])
    assert "\n" not in str(error.value)


def test_a_key_that_a_file_of_a_group_lacks_is_named():
    config = compose(["scale=smoke"])
    del config.method.slack
    missing = "method.slack is missing: give it a whole number of at least 0"
    with pytest.raises(ValueError, match=missing):
        check_each(config)

import pytest
import torch

from experiments.config import compose
from experiments.run.pipelines import build_pipeline
from experiments.run.run import Run
from experiments.run.weights import load_weights
from tests.experiments.smoke import weights


@pytest.mark.parametrize("stages", [2, 4])
def test_weights_go_into_any_number_of_stages(trained, settings, stages):
    run = Run(compose([*settings, f"weights_from={trained}", f"stages={stages}"]))
    run.check()
    pipeline = build_pipeline(run)
    load_weights(pipeline.stages, run.config)
    there = weights(trained)
    own = {name: t for stage in pipeline.stages for name, t in stage.module.state_dict().items()}
    assert own.keys() == there.keys()
    assert all(torch.equal(own[name], there[name]) for name in own)


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        (["model.width=64"], "has a model of model.width=32, which does not fit model.width=64"),
        (["data.tokeniser=gpt2"], "has a model of data.tokeniser=bytes, which does not fit"),
        (["weights_from=nowhere"], "weights_from=nowhere has no checkpoint: name the folder of"),
        (["weights_from=3"], "weights_from must be null or the path of a folder, not 3"),
    ],
)
def test_weights_that_do_not_fit_are_refused(trained, settings, overrides, sentence, monkeypatch):
    from experiments.run.weights import check_source

    with pytest.raises(ValueError, match=sentence):
        check_source(compose([*settings, f"weights_from={trained}", *overrides]))

import pytest

from experiments import CONF
from experiments.config import compose
from experiments.config.derived import updates

SCALES = sorted(path.stem for path in (CONF / "scale").glob("*.yaml"))
METHODS = sorted(path.stem for path in (CONF / "method").glob("*.yaml"))


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("method", METHODS)
def test_every_method_composes_at_every_scale(scale, method):
    config = compose([f"scale={scale}", f"method={method}"])
    assert (config.scale, config.method.name) == (scale, method)
    assert updates(config) >= config.evaluations


@pytest.mark.parametrize(("batch", "expected"), [(256, 190_000), (128, 380_000)])
def test_the_papers_set_up(batch, expected):
    config = compose(["scale=paper", f"batch={batch}"])
    assert updates(config) == expected
    assert expected * batch == 190_000 * 256  # 49.8 B tokens, whatever the batch
    assert expected / config.evaluations * batch == 5_000 * 256
    assert (config.stages, config.executor.precision) == (8, "bfloat16-autocast")

    model, data, optimizer = config.model, config.data, config.optimizer
    assert (model.layers, model.width, model.heads, model.context) == (24, 1024, 16, 1024)
    assert (model.dropout, model.initialisation, model.residual_initialisation) == (0.1, 0.02, None)
    assert model.partition == "measured"
    assert (data.source, data.tokeniser) == ("openwebtext", "gpt2")
    assert (data.validation, data.shuffle_seed) == (0.02, 1234)
    assert (optimizer.lr, optimizer.reference_batch) == (3e-4, 256)
    assert (list(optimizer.betas), optimizer.eps, optimizer.weight_decay) == (
        [0.9, 0.95],
        1e-8,
        0.1,
    )
    assert (optimizer.warmup, optimizer.final) == (0.01, 0.1)


@pytest.mark.parametrize(
    ("override", "sentence"),
    [
        (
            "method=nope",
            "there is no method 'nope': choose from 1f1b-flush, .*paci",
        ),
        ("scale=huge", "there is no scale 'huge': choose from laptop, .*smoke"),
        ("bacth=8", r"there is no setting 'bacth' in the configuration: did you mean batch\?"),
        ("method.accumulatoin=8", "'method.accumulatoin' .*: did you mean method.accumulation?"),
        ("mehtod=paci", "'mehtod' in the configuration: did you mean method?"),
        ("nonsense=8", "there is no setting 'nonsense' in the configuration$"),
        ("method.options={limit:9}", r"method.options has no such keys: add each as \+method.opti"),
        ("tokens=[1,", r"'tokens=\[1,' cannot be read: write key=value"),
        ("seed", "'seed' cannot be read: write key=value"),
        ("batch=8,16", "Ambiguous value for argument 'batch=8,16'"),
    ],
)
def test_what_cannot_be_composed_is_refused_in_a_sentence(override, sentence):
    with pytest.raises(ValueError, match=sentence) as error:
        compose(["scale=smoke", override])
    assert "\n" not in str(error.value)

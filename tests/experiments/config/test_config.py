import pytest

from experiments.config import CONF, compose
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
        ("tokens=1e6", "tokens must be a whole number of at least 1, not 1000000.0"),
        (
            "method.accumulation=0",
            "method.accumulation must be a whole number of at least 1, not 0",
        ),
        ("batch=6", r"batch must be a multiple of method.accumulation \(4\), not 6"),
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
        ("accumulations=4", "accumulations must be a list of whole numbers of at least 1, .*not 4"),
        ("task=sleep", "task must be training or throughput, not 'sleep'"),
        ("executor.cost=guessed", "executor.cost must be a table of times or measured, not 'gues"),
        ("executor.transfer=1", "executor.transfer stands beside measured costs: set executor.co"),
        ("executor.transfer=far", "executor.transfer must be a number of at least 0, not 'far'"),
        ("runs=null", "runs must be the path of a folder, not None"),
        ("tokens=300", "make 1 updates of 8 sequences of 32 tokens, too few for evaluations=2"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(override, sentence):
    with pytest.raises(ValueError, match=sentence) as error:
        compose(["scale=smoke", override])
    assert "\n" not in str(error.value)

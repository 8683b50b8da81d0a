import pytest

from experiments import CONF
from experiments.config import compose
from experiments.config.derived import updates
from tests.experiments.smoke import ROOT

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
    ],
)
def test_what_cannot_be_composed_is_refused_in_a_sentence(override, sentence):
    with pytest.raises(ValueError, match=sentence) as error:
        compose(["scale=smoke", override])
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("override", "sentence"),
    [
        ("runs=a=b", """'runs=a=b' cannot be read: .* as "runs='a=b'"$"""),
        ("runs=données", """'runs=données' cannot be read: .* as "runs='données'"$"""),
        ("runs=it's", "cannot be read: write a list as"),
        ("seed", "'seed' cannot be read: write KEY=VALUE"),
        ("tokens=[1,", r"'tokens=\[1,' cannot be read: write a list as KEY=\[1,2\]"),
        ("batch=8,16", "'batch=8,16' gives several values .* as batch="),
        ("runs=a,b", """'runs=a,b' gives several values .* as "runs='a,b'"$"""),
        ("seed=range(3)", "gives several values for one setting"),
        ("~timeline", "'~timeline' would remove a setting: set it instead, as timeline=VALUE"),
        ("~method", "'~method' would remove a setting"),
        ("--run", "'--run' cannot be read: the options are --help, --cfg job, --info and -m;"),
        ("=3", "'=3' cannot be read: write KEY=VALUE"),
        ("seed==3", "'seed==3' cannot be read"),
        ("ключ=3", "'ключ=3' cannot be read"),
        ("+nope=3", r"'\+nope=3' adds a setting that nothing reads"),
        ("method=3", "method must be one of 1f1b-flush, .*, not 3; a single setting of it"),
        ("method=[paci]", r"method must be one of .* not \['paci'\]"),
        ("method@other=paci", "moves a group"),
        ("hydra.run.dir=x", "there is no setting 'hydra.run.dir'"),
        ("throughput=3", "throughput is a group of settings, each set as throughput.KEY=.*, not 3"),
        ("method.options=3", "method.options is a group of settings"),
        ("executor.cost=[1,2]", "executor.cost is a group of settings: set each as"),
        ("seed=9223372036854775808", r"seed must be below 2\^63, not 9223372036854775808"),
        ("seeds=[9223372036854775808]", r"seeds must be below 2\^63"),
        ("tokens=99999999999999999999", r"tokens must be below 2\^63"),
        ("executor.cost={}", "'executor.cost={}' sets nothing: .* as executor.cost.KEY=VALUE"),
        (
            "method=paci,gpipe",
            r"choose one, or list them in the grid of .* \"grid=\[{method:\[paci,gpipe\]}\]",
        ),
        ("data.folder=3", "data.folder must be the path of a folder, not 3"),
        ("runs=Makefile", "runs must be the path of a folder, not 'Makefile': Makefile is a file"),
        ("runs=Makefile/x", "not 'Makefile/x': Makefile is a file"),
    ],
)
def test_a_command_line_that_cannot_be_followed_is_refused_in_a_sentence(
    override, sentence, monkeypatch
):
    monkeypatch.chdir(ROOT)
    with pytest.raises(ValueError, match=sentence) as error:
        compose(["scale=smoke", override])
    assert "\n" not in str(error.value)
    assert "--multirun to" not in str(error.value)


@pytest.mark.parametrize("name", ["a=b", "a,b", "données", "a b"])
def test_what_the_refusal_advises_is_accepted(name):
    assert compose(["scale=smoke", f"runs='{name}'"]).runs == name

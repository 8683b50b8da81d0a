"""A run that is made longer is the run of that length, bit by bit, or is refused."""

import json
import shlex
import shutil

import pytest
import torch
from omegaconf import OmegaConf

import runlog
from experiments import replay
from experiments import train as command
from experiments.config import compose
from experiments.run.folder import RunFolder
from experiments.run.run import Run
from tests.experiments.smoke import assert_same_run, call, lines, stamps, train, weights

LONGER = ["tokens=5120", "evaluations=4"]
CONSTANT = ["optimizer.schedule=constant", "optimizer.warmup=3"]
WSD = ["optimizer.schedule=wsd", "optimizer.warmup=3", "optimizer.cooldown=0.5"]


@pytest.fixture(scope="module")
def constant(tmp_path_factory, corpus):
    """The folder of a finished run at a constant rate, to look at and leave as it is."""
    return run_at_a_constant_rate(tmp_path_factory.mktemp("constant"), corpus, "tokens=2560")


@pytest.fixture(scope="module")
def once(tmp_path_factory, corpus):
    """The folder of a run that was twice as long from the start."""
    return run_at_a_constant_rate(tmp_path_factory.mktemp("once"), corpus, *LONGER)


def run_at_a_constant_rate(runs, corpus, *overrides):
    settings = ["scale=smoke", f"runs={runs}", f"data.folder={corpus}", *CONSTANT]
    return train([*settings, *overrides]).path


def updates_of(folder):
    """The updates of all lines of metrics.jsonl, and those of the evaluations."""
    metrics = lines(folder / "metrics.jsonl")
    evaluations = [line["update"] for line in metrics if "perplexity" in line]
    return [line["update"] for line in metrics if "loss" in line], evaluations


def test_a_constant_rate_goes_on_as_if_it_had_been_longer_from_the_start(settings, once):
    folder = train([*settings, *CONSTANT]).path
    assert updates_of(folder) == ([*range(1, 11)], [0, 5, 10])
    longer = train([*settings, *CONSTANT, *LONGER])
    assert longer.path == folder
    assert_same_run(folder, once)
    assert updates_of(folder) == ([*range(1, 21)], [0, 5, 10, 15, 20])
    assert sorted(stamps(folder / "orders")) == sorted(
        folder / "orders" / f"{update:09d}.csv" for update in (5, 10, 15, 20)
    )
    assert OmegaConf.load(folder / "config.yaml") == OmegaConf.load(once / "config.yaml")
    status = longer.status()
    assert (status["state"], status["update"], status["updates"]) == ("completed", 20, 20)
    assert [start["from_update"] for start in longer.starts.read()] == [0, 10]
    assert status["wall_seconds"] > longer.starts.read()[0]["wall_seconds"]
    written = stamps(folder)
    train([*settings, *CONSTANT, *LONGER])  # it is completed
    assert stamps(folder) == written


def test_wsd_goes_on_from_before_its_fall(settings, tmp_path):
    """The rate falls from update 5 of 10, or 10 of 20; the checkpoint of update 5 is kept."""
    once = train([*settings, *WSD, *LONGER, f"runs={tmp_path / 'once'}"]).path
    folder = train([*settings, *WSD]).path
    assert [path.name for path in (folder / runlog.STABLE).iterdir()] == ["000000020"]
    fallen, metrics = weights(folder), (folder / "metrics.jsonl").read_text()
    train([*settings, *WSD, *LONGER])
    assert_same_run(folder, once)
    kept = folder / runlog.DECAYED / "000000010"
    assert (kept / "metrics.jsonl").read_text() == metrics
    there = weights(kept)
    assert all(torch.equal(there[key], fallen[key]) for key in fallen)


def test_an_interrupted_run_is_made_longer_too(settings, once, monkeypatch):
    def interrupt(folder, file, new):
        log(folder, file, new)
        if getattr(new[0], "update", None) == 8:
            raise KeyboardInterrupt

    log = RunFolder.log
    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, "log", interrupt)
        assert train([*settings, *CONSTANT]).status()["state"] == "preempted"
    assert_same_run(train([*settings, *CONSTANT, *LONGER]).path, once)


def refused(settings, capsys):
    """The sentence with which the command refuses."""
    capsys.readouterr()
    assert call(command, settings) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    return said


def test_cosine_is_refused_with_a_command_that_starts_from_the_weights(
    trained, settings, tmp_path, capsys
):
    source = Run(compose(settings)).folder
    shutil.copytree(trained, source.path)
    written = stamps(source.path)
    said = refused([*settings, *LONGER], capsys)
    assert f"{source.path} cannot go on to tokens=5120" in said
    assert "(optimizer.schedule=cosine) were those of tokens=2560" in said
    assert stamps(source.path) == written

    *python, module = shlex.split(said.partition("with ")[2])[:3]
    assert (python, module) == (["python", "-m"], "experiments.train")
    overrides = shlex.split(said.partition("with ")[2])[3:]
    assert call(command, overrides) == 0
    new = Run(compose(overrides)).folder
    assert new.path == tmp_path / "runs-longer" / source.path.name
    assert new.status()["update"] == 10
    first, *_ = lines(new.path / "metrics.jsonl")
    *_, last = lines(source.path / "metrics.jsonl")
    assert first["validation_loss"] == last["validation_loss"]
    begun = json.loads((new.path / "identity.json").read_text())["weights"]
    assert begun["checkpoint"] == str(source.path / "checkpoints" / "000000040")
    assert len(begun["sha256"]) == 64
    assert call(replay, [str(new.path)]) == 0


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        (
            ["tokens=5120"],
            "was evaluated every 1280 tokens, which must stay so: give evaluations=4",
        ),
        (["tokens=3072", "evaluations=4"], "not to tokens=3072"),
        (["tokens=2048"], "(tokens is 2560 there, 2048 here)"),
        ([*LONGER, "seed=1", "named=[]"], None),
        ([*LONGER, "measure_every=3"], "(measure_every is 4 there, 3 here, and 2 more)"),
        (["evaluations=1"], "(evaluations is 2 there, 1 here)"),
    ],
)
def test_what_else_changes_is_refused(settings, overrides, sentence, constant, capsys):
    """Nothing but tokens grows, and evaluations with them. Another seed is another folder."""
    settings = [*settings, f"runs={constant.parent}", *CONSTANT, *overrides]
    if sentence is None:
        return Run(compose(settings)).check()
    written = stamps(constant)
    assert sentence in refused(settings, capsys)
    assert stamps(constant) == written


def test_a_run_that_began_with_other_code_is_not_made_longer(
    constant, settings, capsys, monkeypatch
):
    monkeypatch.setattr("experiments.run.identity.packages", lambda: {"torch": "1.0"})
    settings = [*settings, f"runs={constant.parent}", *CONSTANT]
    assert call(command, settings) == 0  # nothing is computed
    capsys.readouterr()
    assert "cannot go on, as it began with something" in refused([*settings, *LONGER], capsys)


def test_a_dry_run_says_so(constant, settings, capsys):
    settings = [*settings, f"runs={constant.parent}", *CONSTANT, *LONGER, "dry_run=true"]
    written = stamps(constant)
    assert call(command, settings) == 0
    assert capsys.readouterr().out == f"{constant}: completed with tokens=2560: would be run\n"
    assert stamps(constant) == written

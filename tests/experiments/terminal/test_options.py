import shlex
import subprocess
import sys

import pytest
import yaml
from hydra._internal.core_plugins.basic_sweeper import BasicSweeper

from experiments import CONF, extrapolate, methods, prepare, replay, sweep, train
from experiments.config import compose, parse
from experiments.config.own import own
from experiments.grid.multirun import sweep_command
from experiments.grid.runs import grid
from experiments.terminal.options import INFO
from tests.experiments.smoke import ROOT, call


def said_by(command, arguments, capsys) -> str:
    assert call(command, arguments) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("command", [train, sweep, prepare, methods])
def test_help_lists_every_setting_and_option(command, capsys):
    said = said_by(command, ["--help"], capsys)
    assert said.startswith(command.__doc__.strip())
    for group in (
        path for path in CONF.iterdir() if path.is_dir() and path.name != "extrapolation"
    ):
        listed = said.partition(f"\n  {group.name:<12}")[2].partition("=")[0]
        assert set(listed.replace(",", "").split()[:-1]) == {it.stem for it in group.glob("*.yaml")}
    assert "\n  stages: ???           # N, the pieces" in said
    assert "# CPU threads per run" in said
    assert "tokens: 600000" in said  # of the scale
    assert "defaults:" not in said
    assert "extrapolation" not in said  # which has a command of its own


def test_help_shows_the_settings_of_the_groups_that_are_chosen(capsys):
    said = said_by(train, ["cluster=slurm", "--help"], capsys)
    assert "requeues: 100" in said
    assert "submitit's local executor" not in said
    assert "nadamw.yaml" not in said_by(train, ["method=paci", "--help"], capsys)
    assert "name: nadamw" in said_by(train, ["method=nesterov-async", "--help"], capsys)


def test_a_mistake_keeps_nobody_from_the_help(capsys):
    assert "Settings, as KEY=VALUE" in said_by(train, ["method=nope", "--help"], capsys)


def test_simulations_have_settings_of_their_own(capsys):
    said = said_by(extrapolate, ["--help"], capsys)
    assert "processes: null" in said
    assert "scale       laptop, paper, smoke" in said
    assert "optimizer" not in said


def test_no_default_is_always_replaced_by_the_scale():
    """What every scale sets is not offered as a default."""

    def settings(mapping, prefix=""):
        for key, value in mapping.items():
            if isinstance(value, dict):
                yield from settings(value, f"{prefix}{key}.")
            else:
                yield f"{prefix}{key}", value

    scales = [yaml.safe_load(file.read_text()) for file in (CONF / "scale").glob("*.yaml")]
    scales = [it for it in scales if "tokens" in it]  # the others inherit from one of these
    of_every_scale = set.intersection(*(set(dict(settings(scale))) for scale in scales))
    defaults = dict(settings(yaml.safe_load((CONF / "config.yaml").read_text())))
    groups = defaults.pop("defaults")
    for group in ("optimizer", "executor", "method", "cluster", "data", "model"):
        for file in (CONF / group).glob("*.yaml"):
            defaults |= dict(settings(yaml.safe_load(file.read_text()), f"{group}."))
    assert {"model": "???"} in groups
    assert {"data": "???"} in groups
    offered = {key: defaults[key] for key in of_every_scale & defaults.keys()}
    assert {"tokens", "batch", "stages", "optimizer.lr", "throughput.error"} <= offered.keys()
    assert set(offered.values()) == {"???"}


@pytest.mark.parametrize("command", [train, sweep, prepare, methods])
def test_cfg_prints_what_is_composed(command, capsys):
    given = ["scale=smoke", "method.accumulation=2"]
    printed = yaml.safe_load(said_by(command, [*given, "--cfg", "job"], capsys))
    assert printed["runs"] == "runs/${scale}"
    resolved = yaml.safe_load(said_by(command, [*given, "--cfg", "job", "--resolve"], capsys))
    assert resolved == compose(given)


def test_cfg_of_simulations_is_theirs(capsys):
    printed = yaml.safe_load(said_by(extrapolate, ["--cfg", "job", "seed=3"], capsys))
    assert printed["seed"] == 3
    assert "method" not in printed


@pytest.mark.parametrize("what", INFO)
def test_info_is_hydras(what, capsys):
    said = said_by(train, ["scale=smoke", "--info", what], capsys)
    parts = {
        "config": "scale: smoke",
        "defaults": "| model/smoke ",
        "defaults-tree": "    model: smoke\n",
        "plugins": "BasicSweeper",
        "searchpath": f"file://{CONF}",
    }
    for name, part in parts.items():
        if what in (name, "all"):
            assert part in said, name


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--cfg", "all"], "argument -c/--cfg: invalid choice: 'all'"),
        (["--info", "method=paci"], "argument -i/--info: invalid choice: 'method=paci'"),
        (["--run"], "'--run' cannot be read: the options are --help, --cfg job, --info and -m"),
        (["--cfg", "job", "method=nope"], "there is no method 'nope'"),
        (["--info", "config", "method=nope"], "there is no method 'nope'"),
        (["grid=[{method:gpipe}]"], "one run has no grid: give it to experiments.sweep"),
    ],
)
def test_mistakes_are_one_sentence(arguments, sentence, capsys):
    assert call(train, arguments) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith(f"error: {sentence}")


def runs_of_hydra(overrides) -> list[dict]:
    """The configurations of Hydra's own --multirun."""
    ((*jobs,),) = BasicSweeper.split_arguments(parse(overrides), max_batch_size=None)
    return [own(compose(job)) for job in jobs]


@pytest.mark.parametrize(
    "overrides",
    [
        ["scale=smoke", "method=paci,gpipe", "optimizer.lr=1e-3,3e-3", "seed=0,1"],
        ["scale=smoke,laptop", "tokens=80000", "batch=8,16"],
        ["scale=smoke", "method.slack=range(0,3)", "seed=5", "runs=somewhere"],
        ["scale=smoke", "model.partition=[1,1,1,1],flops", "measure_every=0"],
    ],
)
def test_multirun_is_answered_with_the_same_grid(overrides, capsys):
    command = sweep_command(overrides)
    assert call(train, ["-m", *overrides]) == 2
    assert capsys.readouterr().err.endswith(f"has its own command: {command}\n")
    start, ours = shlex.split(command)[:3], shlex.split(command)[3:]
    assert start == ["python", "-m", "experiments.sweep"]
    ours = [own(config) for config in grid(ours)]
    theirs = runs_of_hydra(overrides)
    for config in (*ours, *theirs):
        config.named = []  # a sweep adds what tells its runs apart
    assert sorted(map(str, ours)) == sorted(map(str, theirs))
    assert len(ours) > 1


def test_multirun_lists_values(capsys):
    assert call(train, ["-m", "method=glob(*)"]) == 2
    assert "'method=glob(*)' does not list values: write method=1,2" in capsys.readouterr().err


def test_help_does_not_wait_for_torch(capsys):
    """Of the command that needs torch for anything else."""
    code = f"""
import runpy, sys
sys.argv = ["...", "--help"]
try:
    runpy.run_module("{replay.__name__}", run_name="__main__")
except SystemExit:
    assert "torch" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)

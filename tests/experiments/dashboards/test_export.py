"""Every dashboard holds what a run folder holds, however often it is exported."""

import json
import shutil
import sys

import pytest

from experiments import export
from experiments.dashboards.steps import steps
from tests.experiments.dashboards import readers
from tests.experiments.smoke import call, lines


@pytest.fixture(params=["tensorboard", "wandb", "mlflow"])
def to(request, monkeypatch):
    """The name of a dashboard; nothing that it writes goes anywhere else."""
    pytest.importorskip(
        request.param, reason=f"{request.param} is not installed: it is an extra of the package"
    )
    for name in ("WANDB_MODE", "WANDB_PROJECT", "MLFLOW_TRACKING_URI", "MLFLOW_EXPERIMENT_NAME"):
        monkeypatch.delenv(name, raising=False)
    return request.param


@pytest.fixture
def run(trained, tmp_path):
    """A copy of a finished run."""
    return shutil.copytree(trained, tmp_path / "runs" / "q1" / "run")


def held(to, runs, name="q1/run"):
    return getattr(readers, to)(runs / ".dashboards" / to, name)


def expected(run):
    series = {}
    for step in steps(run, at_work=False):
        for name, value in step.values.items():
            series.setdefault(name, []).append((step.number, pytest.approx(value, rel=1e-6)))
    return series


def cut(run, update):
    """Let the run be at work, with this update the last in its logs."""
    for name in ("metrics.jsonl", "stages.jsonl"):
        kept = [line for line in lines(run / name) if line["update"] <= update]
        (run / name).write_text("".join(json.dumps(line) + "\n" for line in kept))
    status = json.loads((run / "status.json").read_text())
    (run / "status.json").write_text(json.dumps(status | {"state": "running", "update": update}))


def test_a_repeated_export_sends_nothing_twice(to, trained, run, capsys):
    runs = run.parents[1]
    cut(run, update=6)
    assert call(export, [str(runs), "--to", to]) == 0
    assert held(to, runs)["training/loss"][-1][0] == 5  # of 6 an evaluation may follow
    shutil.copytree(trained, run, dirs_exist_ok=True)
    assert call(export, ["--to", to, str(runs)]) == 0
    assert call(export, [str(runs), "--to", to]) == 0
    assert held(to, runs) == expected(run)
    said = capsys.readouterr().out
    assert "5 steps of 1 run sent" in said
    assert "nothing new" in said


def test_a_run_that_was_done_anew_is_another_run(to, run):
    runs = run.parents[1]
    call(export, [str(runs), "--to", to])
    rows = [
        line | {"loss": 1.0} if "loss" in line else line for line in lines(run / "metrics.jsonl")
    ]
    (run / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    before = held(to, runs)
    call(export, [str(runs), "--to", to])
    assert held(to, runs) == before
    assert held(to, runs, "q1/run-2") == expected(run)


def test_following_ends_with_the_runs(run, trained, monkeypatch, capsys):
    """Update 6 is held back while the run is at work, and sent with the rest when it has ended."""
    pytest.importorskip("tensorboard", reason="tensorboard is not installed")
    runs = run.parents[1]
    cut(run, update=6)
    waits = []

    def wait(seconds):
        waits.append(seconds)
        if len(waits) == 2:
            shutil.copytree(trained, run, dirs_exist_ok=True)

    monkeypatch.setattr(export.time, "sleep", wait)
    assert call(export, [str(runs), "--to", "tensorboard", "--follow"]) == 0
    assert len(waits) == 2
    assert held("tensorboard", runs) == expected(run)
    assert capsys.readouterr().out.count("steps of 1 run sent") == 2


def test_mistakes_are_told_before_any_work(tmp_path, capsys, monkeypatch):
    assert call(export, [str(tmp_path / "none"), "--to", "wandb"]) == 2
    assert "there is no folder" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "wandb", None)  # as if it were not installed
    assert call(export, [str(tmp_path), "--to", "wandb"]) == 2
    assert "pip install 'paci-harness[wandb]'" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []

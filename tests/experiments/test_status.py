"""The table of runs without SLURM; tests/slurm has the table with it."""

import json
import os

import pytest

from experiments import status
from experiments.config import compose
from experiments.run.folder import RunFolder
from experiments.slurm.jobs import Queued
from tests.experiments.smoke import call


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "")
    folder = RunFolder(tmp_path / "q1" / "run", compose(["scale=smoke"]))
    folder.plan()
    return folder


def row(folder):
    (row,) = status.look(folder.path.parents[1])
    assert row.run == "q1/run"
    return row


def test_from_plan_to_result(folder):
    assert row(folder).state == "not started"
    with folder.claimed():
        folder.report("running", 3, 10)
        assert row(folder)[1:3] == ("running", "3/10")
    assert (row(folder).state, row(folder).why) == ("died", "its process is gone")
    folder.report("preempted", 3, 10, "interrupted")
    assert (row(folder).state, row(folder).why) == ("preempted", "interrupted")
    folder.report("diverged", 3, 10, "the loss of update 3 is nan")
    assert (row(folder).state, row(folder).why) == ("diverged", "the loss of update 3 is nan")
    folder.report("completed", 10, 10)
    assert row(folder)[1:3] == ("completed", "10/10")


def test_the_time_left_is_at_the_pace_of_this_start(folder):
    """Five of ten updates done before it, two in the ten minutes since."""
    with folder.claimed():
        (folder.path / "environment.json").write_text(json.dumps([{"from_update": 5}]))
        folder.report("running", 7, 10)
        os.utime(folder.path / "environment.json", (0, 1000))
        os.utime(folder.path / "status.json", (0, 1600))
        assert row(folder).left == "15 min"


def test_the_last_loss_and_the_tokens_of_a_second_are_shown(folder):
    environment = [{"from_update": 0, "ended": "2026-01-01T00:00:10+00:00", "wall_seconds": 10.0}]
    folder.plan()
    (folder.path / "environment.json").write_text(json.dumps(environment))
    folder.log("metrics.jsonl", [{"update": n, "loss": 5 - n, "tokens": 9000 * n} for n in (1, 2)])
    folder.report("completed", 2, 2)
    assert (row(folder).loss, row(folder).rate) == ("3.000", "1,800")
    assert "loss    tokens/s\n" in status.table([row(folder)])


def test_a_measurement_shows_its_mean(folder):
    folder.log("throughput.jsonl", [{"tokens": 100, "seconds": s} for s in (1.0, 2.0)])
    folder.report("completed", 2, 2)
    assert (row(folder).loss, row(folder).rate) == ("", "75")


def test_no_runs_are_said_to_be_missing(tmp_path, capsys):
    assert call(status, [str(tmp_path / "none")]) == 2
    assert "there is no folder" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("known", "place", "held", "said"),
    [
        ({}, ("PENDING", "Priority"), False, ("pending", "Priority")),
        ({}, ("RUNNING", "None"), False, ("starting", "")),
        (
            {"state": "preempted", "update": 7},
            ("PENDING", "BeginTime"),
            False,
            ("pending", "BeginTime; goes on from update 7"),
        ),
        (
            {"state": "preempted", "update": 7},
            ("RUNNING", "None"),
            False,
            ("pending", "between two starts of its job, goes on from update 7"),
        ),
        (
            {"state": "preempted", "update": 7},
            ("RUNNING", "None"),
            True,
            ("starting", "goes on from update 7"),
        ),
        ({"state": "running", "update": 7}, ("RUNNING", "None"), True, ("running", "")),
    ],
)
def test_a_run_that_left_its_node_waits_in_the_queue(known, place, held, said):
    assert status._in_queue(known, Queued(*place, left=""), held) == said


def test_watching_shows_losses_and_ends_with_the_runs(folder, monkeypatch, capsys):
    waits = []

    def wait(seconds):
        waits.append(seconds)
        folder.log("metrics.jsonl", [{"update": 2, "loss": 2.5, "tokens": 200}])
        folder.report("completed", 2, 2)

    folder.log("metrics.jsonl", [{"update": 1, "loss": 3.0, "tokens": 100}])
    monkeypatch.setattr(status.time, "sleep", wait)
    with folder.claimed():
        folder.report("running", 1, 2)
        assert call(status, [str(folder.path.parents[1]), "--watch"]) == 0
    tables = capsys.readouterr().out.split("1 run: ")[1:]
    assert [table.split("\n")[0] for table in tables] == ["1 running", "1 completed"]
    assert ["3.000" in tables[0], "2.500" in tables[1]] == [True, True]
    assert len(waits) == 1

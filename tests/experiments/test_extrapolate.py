"""Simulations beyond the paper: the grid, the lines, and going on."""

import json
import os
import signal
import subprocess
import sys
import time
from fractions import Fraction

import pytest

from experiments import CONF, extrapolate
from experiments.config import select
from experiments.extrapolate import check, done, simulated
from experiments.grid.points import Point, points
from paci import Cost, simulate

GRID = "grid=[{schedule:paci,stages:[4,8],accumulation:0.5,slack:[0,0.25],microbatches:4}]"


def configured(*overrides):
    config = select(list(overrides), CONF / "extrapolation")
    check(config)
    return config


def run(monkeypatch, *overrides):
    monkeypatch.setattr("sys.argv", ["...", "processes=1", *overrides])
    extrapolate.main()


def test_a_list_is_an_axis_and_shares_are_of_the_stages():
    found = points(configured(GRID))
    assert [(it.stages, it.accumulation, it.slack, it.microbatches) for it in found] == [
        (4, 2, 0, 16), (4, 2, 1, 16), (8, 4, 0, 32), (8, 4, 2, 32),
    ]  # fmt: skip


@pytest.mark.parametrize("scale", ["smoke", "laptop", "paper"])
def test_every_scale_spans_the_axes(scale):
    found = points(configured(f"scale={scale}"))
    for axis in ("slack", "transfer", "jitter"):
        assert len({getattr(it, axis) for it in found if it.schedule == "paci"}) >= 3
    assert {"paci", "1f1b-flush"} <= {it.schedule for it in found}
    assert all(it.microbatches % (2 * it.accumulation) == 0 for it in found)
    deepest = max(it.stages for it in found)
    assert deepest == (32 if scale == "smoke" else 1024)


@pytest.mark.parametrize("slack", [0, 3])
def test_a_point_says_what_the_simulation_does(slack):
    point = Point("paci", 8, 4, slack, 0.25, 0.1, 64, seed=3)
    cost = Cost(1, 2, transfer=0.25, jitter=0.1)
    run = simulate("paci", 8, 64, 4, slack, cost=cost, seed=3)
    found = simulated(point)
    assert found["max_drift"] == max(run.max_drift) <= found["drift_bound"]
    assert found["peak_in_flight"] == max(run.peak_in_flight) == 8 + slack
    ends = [step.end for step in run.actions if step.stage == 7 and step.kind == "B"]
    assert found["utilization"] == 32 * 3 / (ends[63] - ends[31])


def test_without_jitter_and_messages_a_flush_is_its_bubble_efficiency():
    found = simulated(Point("1f1b-flush", 8, 16, 0, 0.0, 0.0, 64, seed=0))
    assert Fraction(found["utilization"]).limit_denominator(100) == Fraction(16, 16 + 7)
    assert simulated(Point("paci", 8, 4, 0, 0.0, 0.0, 64, seed=0))["utilization"] == 1


def test_points_that_are_there_are_skipped_and_half_a_line_is_mended(tmp_path, monkeypatch, capsys):
    file = tmp_path / "simulations.jsonl"
    run(monkeypatch, GRID, f"runs={tmp_path}")
    lines = file.read_text().splitlines(keepends=True)
    assert len(lines) == 4
    assert "4 points" in capsys.readouterr().out
    file.write_text("".join(lines[:3]) + lines[3][:40])
    assert len(done(file)) == 3
    run(monkeypatch, GRID, f"runs={tmp_path}")
    assert "4 points" in (said := capsys.readouterr().out)
    assert "3 of them from before" in said
    assert sorted(file.read_text().splitlines()) == sorted("".join(lines).splitlines())


def test_an_interrupted_command_keeps_what_is_done(tmp_path):
    """Ctrl-C in the middle of a long point; all processes end, whole lines stay."""
    grid = "grid=[{schedule:paci,stages:[4,512],accumulation:0.5,microbatches:16}]"
    command = [sys.executable, "-m", "experiments.extrapolate", grid, f"runs={tmp_path}"]
    process = subprocess.Popen(
        [*command, "processes=2"], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    file = tmp_path / "simulations.jsonl"
    while not file.exists() and process.poll() is None:
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "what was simulated is kept" in said
    (line,) = file.read_text().splitlines()
    assert json.loads(line)["stages"] == 4


@pytest.mark.parametrize(
    ("override", "sentence"),
    [
        ("scale=large", "there is no scale 'large': choose from laptop, paper, smoke"),
        ("processes=0", "processes must be a whole number of at least 1, not 0"),
        ("grid=[{stages:8}]", "an entry of the grid has no "),
        (GRID.replace("slack", "slak"), "an entry of the grid has a key 'slak'"),
        (GRID.replace("[4,8]", "0.5"), "stages must be a whole number of at least 1, not 0.5"),
        (GRID.replace("paci", "pac"), "unknown schedule 'pac'"),
        (
            GRID.replace("paci", "zbv").replace("slack:[0,0.25],", ""),
            "zbv has several stages per rank",
        ),
        (GRID.replace("slack:[0,0.25]", "jitter:1.5"), "cost.jitter must be at least 0 and below"),
    ],
)
def test_mistakes_are_one_sentence_before_any_work(
    override, sentence, monkeypatch, capsys, tmp_path
):
    with pytest.raises(SystemExit, match="2"):
        run(monkeypatch, override, f"runs={tmp_path / 'new'}")
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"error: {sentence}")
    assert err.count("\n") == 1
    assert not (tmp_path / "new").exists()

"""CONTRIBUTING.md is true: what follows its text passes the tests that look at every experiment,
method, schedule and figure. It is tried in a copy of the project."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.test_commands import copy_of_project

pytestmark = pytest.mark.stress

EXPERIMENT = """\
# @package _global_
# What slack buys.
experiment: slack
runs: runs/${scale}/slack
grid:
  - method: paci
    method.slack: [0, 2]
"""

SCHEDULE = '''\
"""Flush of a single lane: one micro-batch is in the pipeline at a time.

Three stages, m = 2, a backward as long as a forward (digits are micro-batches, backwards primed):

    stage 0   0  .  .  .  .  0' 1  .  .  .  .  1'
    stage 1   .  0  .  .  0' .  .  1  .  .  1' .
    stage 2   .  .  0  0' .  .  .  .  1  1' .  .
"""

from paci.actions import BACKWARD, FORWARD
from paci.schedules.rule import Choice, Schedule, StageView, if_ready


class SingleLane(Schedule):
    """A backward if there is one, else a forward while nothing is in flight."""

    name = "single-lane"

    def in_flight_limit(self, stage: int) -> int:
        return 1

    def next(self, stages: tuple[StageView, ...]) -> Choice:
        (stage,) = stages
        if stage.in_flight:
            return if_ready(stage, BACKWARD)
        return if_ready(stage, FORWARD)
'''

METHOD = """\
# A single lane, as slow as a pipeline can be.
name: single-lane
schedule: single-lane
accumulation: 4   # micro-batches of a window
slack: 0          # only paci and async-1f1b have slack
weights: live     # the parameters that an action sees
options: {}
"""

LINE = 'single-lane,N-1,0,0,0,1/N,"An example"\n'

FIGURE = '''\
"""The mean loss of every training run."""

import sys

import pandas as pd
from matplotlib.figure import Figure

from analysis import Frames, cells
from paper_figures import style
from paper_figures.command import main

NEEDS = "training"


def table(frames: Frames) -> pd.DataFrame:
    return pd.DataFrame(
        {"variant": cell.variant.label, "seeds": cell.seeds, "loss": cell.losses.mean(axis=None)}
        for cell in cells(frames)
    )


def draw(frames: Frames) -> Figure:
    made = table(frames)
    fig, (ax,) = style.panels(1)
    ax.bar(made["variant"], made["loss"])
    ax.set_ylabel("mean loss")
    style.caption(fig, f"Mean over {made['seeds'].sum()} runs and all updates.")
    return fig


if __name__ == "__main__":
    sys.exit(main(["mean_loss"]))
'''


class Project:
    """A copy of the project, which a contribution changes."""

    def __init__(self, folder: Path):
        copy_of_project(folder)
        self.folder = folder

    def write(self, file: str, text: str) -> None:
        (self.folder / file).write_text(text)

    def replace(self, file: str, old: str, new: str) -> None:
        text = (self.folder / file).read_text()
        assert text.count(old) == 1, (file, old)
        self.write(file, text.replace(old, new))

    def python(self, *arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=self.folder,
            env=os.environ | {"PYTHONPATH": str(self.folder)},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        return done.stdout

    def check(self, *tests: str) -> None:
        self.python("-m", "ruff", "check", "--quiet", ".")
        self.python("-m", "ruff", "format", "--check", "--quiet", ".")
        selection = ("-m", "not slurm and not docs and not stress")
        self.python("-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *selection, *tests)


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path)


def test_a_new_experiment(project):
    project.write("conf/experiment/slack.yaml", EXPERIMENT)
    project.check("tests/experiments/grid/test_runs.py", "-k", "slack or layout")
    sweep = ("-m", "experiments.sweep", "experiment=slack", "scale=smoke", "dry_run=true")
    assert "paci-a4-slack2-" in project.python(*sweep)


def test_a_new_setting(project):
    accepted, skips = "experiments/config/accepted.py", '    "most_skips": whole(1),\n'
    line = "most_skips: 10        # updates that a stage leaves out in a row before the run stops\n"
    new = "patience: 0           # evaluations without a better loss after which a run stops\n"
    project.replace("conf/config.yaml", line, line + new)
    project.replace(accepted, skips, skips + '    "patience": whole(0),\n')
    later = '    "most_skips": 10,\n'
    project.replace("runlog/__init__.py", later, later + '    "patience": 0,\n')
    project.python("docs/settings.py")  # as make reference does
    project.check(
        "tests/docs/test_settings.py", "tests/experiments/config", "tests/experiments/terminal"
    )


def test_a_new_schedule_and_its_method(project):
    project.write("paci/schedules/single_lane.py", SCHEDULE)
    schedules = "paci/schedules/__init__.py"
    project.replace(
        schedules,
        "from paci.schedules.rule import",
        "from paci.schedules.single_lane import SingleLane\nfrom paci.schedules.rule import",
    )
    project.replace(schedules, "        GPipe,\n", "        GPipe,\n        SingleLane,\n")
    project.python("-m", "ruff", "check", "--fix", "--quiet", schedules)
    pictures = "tests/paci/schedules/test_pictures.py"
    case = '    "single-lane": ("single-lane", 4, 8, 4, 0, Cost(1, 2)),\n'
    project.replace(pictures, "CASES = {\n", f"CASES = {{\n{case}")
    drawn = '        ("gpipe", "gpipe", 3, 4, 4, 1),\n'
    project.replace(
        pictures, drawn, drawn + '        ("single_lane", "single-lane", 3, 2, 2, 1),\n'
    )
    project.python("-m", "tests.paci.schedules.test_pictures", "single-lane")
    comparison = "tests/paci/distributed/comparison.py"
    first = '        ("gpipe", 4, 0),\n'
    project.replace(comparison, first, first + '        ("single-lane", 4, 0),\n')

    project.write("conf/method/single-lane.yaml", METHOD)
    lines = project.folder / "paper_figures" / "reference" / "methods.csv"
    lines.write_text(lines.read_text() + LINE)
    project.check(
        "tests/paci/schedules/test_rule.py",
        "tests/paci/schedules/test_pictures.py",
        "tests/paci/schedules/test_every_flush.py",
        "tests/paci/simulation/test_simulate.py",
        "tests/paci/test_methods.py",
        "tests/experiments/test_methods.py",
        "tests/paper_figures/test_table_1_methods.py",
        "tests/test_layout.py",
    )


def test_a_new_figure(project):
    project.write("paper_figures/mean_loss.py", FIGURE)
    project.check("tests/paper_figures/test_scripts.py", "tests/test_layout.py")

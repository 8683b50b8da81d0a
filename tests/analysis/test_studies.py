"""Studies beside the paper's plan of runs."""

import pytest

from analysis import CannotAnswer, cells, planned, read_runs
from analysis.studies import study

FALLING = [4.0 - k / 10 for k in range(20)]
CLIPPED = {"name": "adamw", "lr": 0.001, "clip": "stage"}


@pytest.fixture
def runs(write_run):
    """Two seeds of the plan; of a study one run that repeats one of these, and one clipped run."""
    for seed in (0, 1):
        write_run(
            f"trainings/s{seed}", experiment="trainings", method="paci", seed=seed, losses=FALLING
        )
    write_run("clipping/s0", experiment="clipping", method="paci", seed=0, losses=FALLING)
    write_run(
        "clipping/clipped-s0", experiment="clipping", method="paci", seed=0, optimizer=CLIPPED,
        losses=[5.0] * 5 + [3.0] * 5 + [4.5] * 5 + [2.0] * 5, activation_bytes=2**20,
    )  # fmt: skip
    return write_run.root


def test_the_plan_is_not_split_by_what_a_study_varies(runs):
    frames = read_runs(runs)
    (cell,) = planned(frames)
    assert cell.seeds == 2
    assert cell.setting.other == ""
    assert {it.setting.other for it in cells(frames)} == {"clip none", "clip stage"}


def test_without_the_plan_all_runs_are_shown(write_run):
    write_run("mine", experiment=None, method="paci")
    assert len(planned(read_runs(write_run.root))) == 1


def test_a_study_has_the_plans_runs_of_its_settings(runs):
    """They are the same runs but for their seeds, and no run is counted twice."""
    unclipped, clipped = study(read_runs(runs), "clipping")
    assert (unclipped.seeds, clipped.seeds) == (2, 1)
    with pytest.raises(CannotAnswer, match=r"experiments\.sweep experiment=precision"):
        study(read_runs(runs), "precision")

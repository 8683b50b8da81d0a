"""The schedule diagrams say what the simulation does."""

import re

from paci import simulate
from paper_figures import figure_2_schedule as schedules


def drifts(ax):
    """The largest Δ that is written at each stage."""
    largest = [0] * schedules.STAGES
    for text in ax.texts:
        if found := re.search(r"Δ(\d)", text.get_text()):
            stage = round(text.get_position()[1])
            largest[stage] = max(largest[stage], int(found[1]))
    return largest


def test_drift_and_progress_are_written():
    flush, every_backward, paci = schedules.draw().axes
    assert drifts(flush) == [0, 0, 0, 0]
    assert drifts(every_backward) == [3, 2, 1, 0]
    assert drifts(paci) == [1, 1, 1, 0]
    assert flush.get_title("left") == "1f1b-flush, m = 4: 8 micro-batches done"
    assert paci.get_title("left") == "paci, a = 4: 11 micro-batches done"


def test_every_action_that_fits_is_drawn():
    for ax, (name, a) in zip(
        schedules.draw().axes, [("1f1b-flush", 4), ("paci", 1), ("paci", 4)], strict=True
    ):
        run = simulate(name, schedules.STAGES, 16, a, cost=schedules.COST)
        shown = [step for step in run.actions if step.end <= schedules.SHOWN]
        assert len(ax.patches) == len(shown)
        assert max(step.end for step in run.actions) > schedules.SHOWN

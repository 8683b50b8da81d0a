"""The extrapolation's tables and figure, which need no runs."""

import pytest

from analysis.extrapolation.zero_bubble import PUBLISHED, SCHEDULES
from paper_figures import table_2_extrapolation as extrapolation
from paper_figures import zero_bubble
from paper_figures.published import published


def test_bubble_rates_side_by_side():
    made = zero_bubble.table()
    theirs = published("zero_bubble")
    for schedule in PUBLISHED:
        column = theirs[theirs.variant == schedule].bubble_rate
        assert sorted(made[schedule]) == sorted(column)
    assert "1F1B 0.0000" in zero_bubble.note(made)


def test_throughput_and_memory_of_every_schedule():
    made = extrapolation.table()
    assert list(made["schedule"]) == list(SCHEDULES) * 12
    largest = made[(made["N"] == 32) & (made["m"] == 96)].set_index("schedule")
    assert largest.loc["PACI", "memory (GB)"] == largest.loc["1F1B", "memory (GB)"] == 43
    assert largest.loc["ZB-2p", "published (samples/GPU/s)"] == 0.99
    papers = made.set_index("schedule")["paper's Table 2 (samples/GPU/s)"]
    assert papers["PACI"].notna().all()
    assert papers.drop("PACI").isna().all()


def test_paci_is_drawn_at_the_memory_of_1f1b():
    fig = extrapolation.draw()
    assert len(fig.axes) == 8
    for ax in fig.axes:
        marks = [line for line in ax.lines if line.get_marker() == "*"]
        discs = [line for line in ax.lines if line.get_marker() == "o"]
        assert len(marks) == len(discs) == 3
        (memory,) = {x for line in [*marks, *discs] for x in line.get_xdata()}
        assert memory == pytest.approx(min(x for line in ax.lines for x in line.get_xdata()))

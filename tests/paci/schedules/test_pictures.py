"""Schedules as text: recorded ones in ../golden, and the pictures in the docstrings of the rules.

A golden file is the order of every rank, then the same on the clock. To accept a change, write
`picture(...)` of the case into its file, and look at it.
"""

import importlib
from pathlib import Path

import pytest

from paci import Cost, simulate
from paci.actions import read_orders, write_orders

GOLDEN = Path(__file__).parents[1] / "golden"

CASES = {
    "gpipe": ("gpipe", 4, 8, 4, 0, Cost(1, 2)),
    "1f1b-flush": ("1f1b-flush", 4, 12, 6, 0, Cost(1, 2)),
    "paci": ("paci", 4, 12, 2, 0, Cost(1, 2)),
    "paci-slack-latency": ("paci", 4, 12, 2, 2, Cost(1, 2, transfer=1)),
    "async-1f1b-uneven": ("async-1f1b", 3, 8, 1, 0, Cost([1, 2, 1], [2, 3, 2], update=1)),
}


def picture(*arguments) -> str:
    timeline = simulate(*arguments).timeline
    return f"{write_orders(timeline.orders())}\n{timeline.ascii()}\n"


@pytest.mark.parametrize("case", CASES)
def test_golden(case):
    golden = (GOLDEN / f"{case}.txt").read_text()
    assert picture(*CASES[case]) == golden
    orders, _ = golden.split("\n\n")
    assert read_orders(orders) == simulate(*CASES[case]).timeline.orders()


@pytest.mark.parametrize(
    ("module", "schedule", "accumulation", "microbatches"),
    [("gpipe", "gpipe", 4, 4), ("one_f_one_b", "1f1b-flush", 4, 4), ("paci", "paci", 2, 8)],
)
def test_docstrings_draw_what_happens(module, schedule, accumulation, microbatches):
    doc = importlib.import_module(f"paci.schedules.{module}").__doc__
    drawn = [line.strip() for line in doc.splitlines() if line.startswith("    stage ")]
    real = simulate(schedule, 3, microbatches, accumulation, cost=Cost(1, 1)).timeline.ascii()
    if "|" not in doc:
        real = real.replace("|", " ")
    for one, other in zip(drawn, real.splitlines(), strict=True):
        beginning = one.removeprefix("stage").rstrip(" .").replace("   ", "  ", 1)
        assert other.removeprefix("rank").startswith(beginning)

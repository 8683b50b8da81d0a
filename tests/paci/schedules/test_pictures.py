"""Schedules as text: recorded ones in ../golden, and the pictures in the docstrings of the rules.

A golden file is the order of every rank, then the same on the clock. A new case, or a change to
accept, is recorded by this command; then look at the file.

    python -m tests.paci.schedules.test_pictures CASE
"""

import importlib
import sys
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
    "interleaved-1f1b": ("interleaved-1f1b", 8, 16, 8, 0, Cost(1, 2)),
    "zb-h1": ("zb-h1", 4, 16, 8, 0, Cost(1, 2)),
    "zb-h2": ("zb-h2", 4, 16, 8, 0, Cost(1, 2)),
    "zb-1p": ("zb-1p", 4, 16, 8, 0, Cost(1, 2)),
    "zb-2p": ("zb-2p", 4, 16, 8, 0, Cost(1, 2)),
    "zbv": ("zbv", 8, 16, 8, 0, Cost(1, 2)),
    "interleaved-zb-h1": ("interleaved-zb-h1", 8, 16, 8, 0, Cost(1, 2)),
    "dualpipev": ("dualpipev", 8, 16, 8, 0, Cost(1, 2)),
}


def picture(*arguments) -> str:
    timeline = simulate(*arguments).timeline
    return f"{write_orders(timeline.orders())}\n{timeline.ascii()}\n"


@pytest.mark.parametrize("case", CASES)
def test_golden(case):
    file = GOLDEN / f"{case}.txt"
    drawn = picture(*CASES[case])
    how = f"record this with: python -m tests.paci.schedules.test_pictures {case}\n{drawn}"
    assert file.exists(), how
    golden = file.read_text()
    assert drawn == golden, how
    orders, _ = golden.split("\n\n")
    assert read_orders(orders) == simulate(*CASES[case]).timeline.orders()


@pytest.mark.parametrize(
    ("module", "schedule", "stages", "accumulation", "microbatches", "backward"),
    [
        ("gpipe", "gpipe", 3, 4, 4, 1),
        ("one_f_one_b", "1f1b-flush", 3, 4, 4, 1),
        ("paci", "paci", 3, 2, 8, 1),
        ("interleaved", "interleaved-1f1b", 4, 4, 4, 1),
        ("zb_h1", "zb-h1", 3, 5, 5, 2),
        ("zb_h2", "zb-h2", 3, 5, 5, 2),
        ("zb_2p", "zb-2p", 3, 6, 6, 2),
        ("zbv", "zbv", 4, 3, 3, 2),
        ("interleaved_zb_h1", "interleaved-zb-h1", 4, 4, 4, 2),
        ("dualpipev", "dualpipev", 4, 4, 4, 2),
    ],
)
def test_docstrings_draw_what_happens(
    module, schedule, stages, accumulation, microbatches, backward
):
    doc = importlib.import_module(f"paci.schedules.{module}").__doc__
    lines = [line for line in doc.splitlines() if line.startswith(("    stage ", "    rank "))]
    drawn = [line.strip() for line in lines]
    run = simulate(schedule, stages, microbatches, accumulation, cost=Cost(1, backward))
    real = run.timeline.ascii()
    if "|" not in doc:
        real = real.replace("|", " ")
    for one, other in zip(drawn, real.splitlines(), strict=True):
        beginning = one.removeprefix("stage").removeprefix("rank").rstrip(" .")
        assert other.removeprefix("rank").startswith(beginning.replace("   ", "  ", 1))


if __name__ == "__main__":
    for case in sys.argv[1:]:
        (GOLDEN / f"{case}.txt").write_text(picture(*CASES[case]))

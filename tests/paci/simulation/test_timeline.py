import json

import pytest

from paci import Cost, simulate
from paci.actions import Action
from paci.simulation.event_loop import Step
from paci.simulation.timeline import Timeline

# One rank with a split backward, one without; the second starts late, and updates with B1.
ROWS = [
    Step(0, 0, "F", 0, 1.0, 2.0, 0),
    Step(1, 1, "F", 0, 2.0, 4.0, 0),
    Step(0, 0, "I", 0, 3.0, 4.0, 0),
    Step(0, 0, "W", 0, 4.0, 5.0, 0),
    Step(1, 1, "B", 1, 4.0, 9.0, 3),
]


@pytest.fixture
def timeline():
    return Timeline(ROWS, ranks=2, accumulation=2)


def test_numbers(timeline):
    assert timeline.makespan == 8
    assert timeline.busy == [3, 7]
    assert timeline.utilization == 7 / 8


def test_orders(timeline):
    first, second = timeline.orders()
    assert first == [Action(0, "F", 0), Action(0, "I", 0), Action(0, "W", 0)]
    assert list(map(str, second)) == ["1F0", "1B1"]


def test_updates(timeline):
    """Only with the whole backward, or the weights' half of it, of a window's last micro-batch."""
    assert [row for row in ROWS if timeline.updates(row)] == [ROWS[-1]]
    last = [Step(0, 0, kind, 3, 9.0, 10.0, 1) for kind in "FIWB"]
    assert [row.kind for row in last if timeline.updates(row)] == ["W", "B"]


def test_picture(timeline):
    assert timeline.ascii().splitlines() == [
        "rank 0  0  .  0i 0w",
        "rank 1  .  0---- 1'------------|",
    ]


def test_picture_of_ranks_with_several_stages():
    rows = [
        Step(0, 0, "F", 10, 0, 1, 0),
        Step(0, 1, "F", 10, 1, 2, 0),
        Step(0, 1, "B", 10, 2, 4, 0),
    ]
    assert Timeline(rows, ranks=1, accumulation=2).ascii() == "rank 0  0F10 1F10 1B10-----"


def test_trace_for_perfetto(tmp_path, timeline):
    path = tmp_path / "trace.json"
    timeline.perfetto(path, seconds_per_unit=0.5)
    names, *_ = [e for e in json.loads(path.read_text())["traceEvents"] if e["ph"] == "M"]
    assert names["args"]["name"] == "rank 0"
    *_, last = json.loads(path.read_text())["traceEvents"]
    assert (last["name"], last["tid"], last["ts"], last["dur"]) == ("1B1", 1, 2e6, 2.5e6)
    assert last["args"] == {"stage": 1, "microbatch": 1, "version": 3}


def test_busy_counts_updates():
    run = simulate("1f1b-flush", 2, 2, 2, cost=Cost(1, 2, update=0.5))
    assert run.timeline.busy == [6.5, 6.5]
    assert run.makespan == 9.5

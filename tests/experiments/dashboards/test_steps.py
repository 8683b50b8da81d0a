"""The numbers of a run folder, by update."""

import json

import pytest

from experiments.dashboards.sent import Sent, digest
from experiments.dashboards.steps import Step, steps

UPDATE = {"update": 1, "tokens": 100, "loss": 2.0, "lr": 0.1, "seconds": 4.0, "clock": "wall"}
STAGE = {
    "update": 1,
    "stage": 3,
    "drift": {"0": 1, "2": 3},
    "staleness": {"1": 4},
    "peak_in_flight": 4,
    "activation_bytes": 10,
    "version_bytes": 0,
    "busy_seconds": 3.0,
    "idle_seconds": 1.0,
    "clock": "wall",
}


def write(run, name, *lines):
    (run / name).write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_what_belongs_to_an_update_is_one_step(tmp_path):
    evaluation = {"update": 1, "tokens": 100, "validation_loss": 1.0, "perplexity": 2.7}
    write(tmp_path, "metrics.jsonl", UPDATE, evaluation)
    write(tmp_path, "stages.jsonl", STAGE)
    assert steps(tmp_path, at_work=False) == [
        Step(
            1,
            {
                "training/loss": 2.0,
                "training/learning_rate": 0.1,
                "training/tokens": 100,
                "time/seconds_wall": 4.0,
                "throughput/tokens_per_second_wall": 25.0,
                "validation/loss": 1.0,
                "validation/perplexity": 2.7,
                "stage_03/drift_max": 2,
                "stage_03/drift_mean": 1.5,
                "stage_03/staleness_max": 1,
                "stage_03/peak_in_flight": 4,
                "stage_03/activation_bytes": 10,
                "stage_03/version_bytes": 0,
                "stage_03/busy_share": 0.75,
            },
        )
    ]


@pytest.mark.parametrize(
    ("clock", "time", "name"),
    [
        ("simulated", {"seconds": None, "units": 4.0}, "units_simulated"),
        ("simulated, measured costs", {"seconds": 4.0}, "seconds_simulated_measured_costs"),
    ],
)
def test_times_are_named_after_their_clock(tmp_path, clock, time, name):
    write(tmp_path, "metrics.jsonl", UPDATE | {"clock": clock} | time)
    (step,) = steps(tmp_path, at_work=False)
    assert step.values[f"time/{name}"] == 4.0
    assert [key for key in step.values if key.startswith(("time/", "throughput/"))] == [
        f"time/{name}",
        f"throughput/tokens_per_{name.replace('s_', '_', 1)}",
    ]


def test_a_rate_is_that_between_two_updates(tmp_path):
    later = UPDATE | {"update": 2, "tokens": 300, "seconds": 5.0}
    at_the_same_time = later | {"update": 3, "tokens": 400}
    write(tmp_path, "metrics.jsonl", UPDATE, later, at_the_same_time)
    rates = [
        step.values.get("throughput/tokens_per_second_wall")
        for step in steps(tmp_path, at_work=False)
    ]
    assert rates == [25.0, 200.0, None]


def test_the_last_step_of_a_run_at_work_may_be_incomplete(tmp_path):
    write(tmp_path, "metrics.jsonl", UPDATE, UPDATE | {"update": 2})
    assert [step.number for step in steps(tmp_path, at_work=True)] == [1]
    assert [step.number for step in steps(tmp_path, at_work=False)] == [1, 2]


def test_a_run_that_no_longer_begins_as_it_was_sent_does_not_fit(tmp_path):
    before = [Step(1, {"loss": 2.0}), Step(2, {"loss": 1.0})]
    Sent(0, 2, digest(before), "running").write(tmp_path / "sent.json")
    sent = Sent.read(tmp_path / "sent.json")
    assert sent.fits(before)
    assert sent.fits([*before, Step(3, {"loss": 0.5})])
    assert not sent.fits(before[:1])
    assert not sent.fits([before[0], Step(2, {"loss": 1.5})])
    assert Sent.read(tmp_path / "none").fits(before)

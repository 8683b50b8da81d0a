import json
import math
import signal
import statistics
import time

import pytest
import torch

from experiments.config import compose
from experiments.run.folder import RunFolder
from experiments.run.run import Run
from experiments.run.throughput import relative_standard_error, steady
from experiments.terminal.summary import end
from experiments.terminal.summary import rate as text
from paci import Cost, simulate
from tests.experiments.smoke import lines, start, timeless, train

MEASURED = 16  # micro-batches of a repetition that count
TOKENS = 2 * 32  # of a micro-batch


def measure(config, vocabulary, cut, microbatch):
    """A sequence takes 1 forward and 2 backward at every stage."""
    times = {"forward": 1.0, "backward": 2.0, "weight": 1.0, "update": 0.0}
    scaled = {name: [time * microbatch] * config.stages for name, time in times.items()}
    return {"microbatch": microbatch} | scaled


@pytest.fixture
def settings(settings, monkeypatch):
    monkeypatch.setattr("experiments.run.costs.measure", measure)
    return [
        "task=throughput",
        "executor=measured",
        *settings,
        "measure_every=0",
        f"throughput.microbatches={MEASURED}",
        "throughput.most_seconds=60",
    ]


def rates(folder):
    return [line["tokens"] / line["seconds"] for line in lines(folder / "throughput.jsonl")]


@pytest.mark.parametrize("method", ["1f1b-flush", "paci"])
def test_on_the_simulated_clock_once_is_enough_and_theory_exact(settings, method):
    """Four stages, m = a = 4, forward and backward of a sequence take 1 and 2."""
    folder = train([*settings, f"method={method}", "method.accumulation=4"]).path
    (line,) = lines(folder / "throughput.jsonl")
    microbatches = 4 + (4 - 1 if method == "1f1b-flush" else 0)  # of time, in a window
    assert line == {
        "repetition": 1,
        "tokens": MEASURED * TOKENS,
        "seconds": 4 * microbatches * 2 * 3.0,
        "updates": 4,
        "clock": "simulated, measured costs",
    }
    names = {path.name for path in folder.iterdir() if path.name != ".lock"}
    assert names == {
        *("config.yaml", "cost.json", "environment.json", "identity.json"),
        *("status.json", "throughput.jsonl", "stages.jsonl"),
    }
    status = json.loads((folder / "status.json").read_text())
    assert timeless(status) == {"state": "completed", "why": None, "update": 5, "updates": 5}


def test_tokens_per_unit_of_given_costs_are_refused(settings):
    with pytest.raises(ValueError, match="executor=local counts units of given costs: choose exec"):
        compose([*settings, "executor=local"])


def test_the_records_tell_what_memory_is_for(settings):
    folder = train(settings).path
    stages = lines(folder / "stages.jsonl")
    assert [(line["stage"], line["rank"]) for line in stages] == [(i, i) for i in range(4)]
    for line in stages:
        assert line["gradient_bytes"] == line["parameter_bytes"] > 0
        moments = line["optimizer_bytes"] - 2 * line["parameter_bytes"]  # and counts of steps
        assert 0 < moments < 200
        assert line["activation_bytes"] > 0
        assert line["version_bytes"] == 0
        assert "allocated_bytes" not in line  # nobody's but CUDA's


@pytest.mark.parametrize(("schedule", "a"), [("paci", 1), ("paci", 4), ("zb-2p", 8)])
def test_steady_is_between_updates_of_the_last_stage(schedule, a):
    """Assert 3 units of time a micro-batch, which leaves the last stage never idle."""
    made = simulate(schedule, 4, 32, a, cost=Cost(1, 2, 1))
    full = math.ceil(4 / a)
    updates, seconds = steady(made.timeline, 4, full)
    assert updates == 32 // a - full
    assert seconds == 3.0 * a * updates


@pytest.fixture
def jitter(monkeypatch):
    """No two repetitions take the same time, as on the wall clock."""
    monkeypatch.setattr("experiments.run.run.cost_for", lambda *_: Cost(2.0, 4.0, jitter=0.9))
    monkeypatch.setattr("experiments.run.throughput.repeats_exactly", lambda config: False)


@pytest.mark.usefixtures("jitter")
def test_it_repeats_until_the_mean_is_known(settings):
    folder = train([*settings, "throughput.error=0.02"]).path
    known = rates(folder)
    error = statistics.stdev(known) / math.sqrt(len(known)) / statistics.mean(known)
    assert error <= 0.02
    assert len(known) == 3 or relative_standard_error(known[:-1]) > 0.02
    status = RunFolder(folder, None).status()
    assert status["why"] is None
    assert status["update"] == status["updates"] == 1 + 5 * len(known)  # and a warm-up
    assert {line["update"] for line in lines(folder / "stages.jsonl")} == {
        1 + 5 * k for k in range(1, len(known) + 1)
    }


@pytest.mark.usefixtures("jitter")
def test_or_until_time_is_up(settings):
    bound = ["throughput.error=1e-9", "throughput.most_seconds=1e-3"]
    folder = train([*settings, *bound])
    (rate,) = rates(folder.path)
    why = "time was up after 1 repetition(s)"
    assert (folder.status()["state"], folder.status()["why"]) == ("completed", why)
    said = f"completed: {why}  tokens/s {text(rate)}  in "
    assert end(folder, folder.status()).startswith(said)


def test_an_interrupted_run_starts_again_and_a_finished_one_is_left_alone(settings):
    folder = Run(compose(settings)).folder
    folder.path.mkdir(parents=True)
    folder.log("throughput.jsonl", [{"repetition": 1, "tokens": 7, "seconds": 1.0}])
    folder.log("stages.jsonl", [{"update": 5, "stage": 0}])
    folder.report("running", 5, 15)
    train(settings)
    assert len(rates(folder.path)) == 1
    assert rates(folder.path) != [7]
    assert len(lines(folder.path / "stages.jsonl")) == 4
    (folder.path / "throughput.jsonl").write_text("mine\n")
    train(settings)
    assert (folder.path / "throughput.jsonl").read_text() == "mine\n"


def test_out_of_memory_is_a_result(settings, monkeypatch):
    def exhaust(*_):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB.\nDetails")

    monkeypatch.setattr(RunFolder, "log", exhaust)
    status = train(settings).status()
    assert status["state"] == "out-of-memory"
    assert status["why"] == "OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB."


EMULATED = [
    *("executor=emulated", "stages=2", "batch=8", "method=1f1b-flush", "method.accumulation=4"),
    *("executor.cost.forward=0.002", "executor.cost.backward=0.004"),
]


def test_ranks_agree_on_when_it_is_enough(settings):
    """No faster than theory: what else is at the machine makes it slower."""
    folder = train([*settings, *EMULATED, "throughput.error=0.5"])
    assert folder.status()["state"] == "completed"
    assert {line["clock"] for line in lines(folder.path / "throughput.jsonl")} == {"emulated"}
    assert len(rates(folder.path)) >= 3
    assert max(rates(folder.path)) < 1.1 * TOKENS / (2 * 0.006) * 4 / (4 + 2 - 1)
    stages = lines(folder.path / "stages.jsonl")
    assert [line["stage"] for line in stages] == [0, 1] * len(rates(folder.path))


@pytest.mark.stress
def test_terminated_all_ranks_end(settings, tmp_path):
    process = start("train", [*settings, *EMULATED, "throughput.error=1e-9"])
    folder = tmp_path / "runs" / "1f1b-flush-a4-b8-s0"
    deadline = time.monotonic() + 60
    while not (folder / "throughput.jsonl").exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 1, err
    assert out.strip() == f"{folder}: preempted: interrupted: goes on from update 0"

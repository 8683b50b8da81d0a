"""Runs whose ranks are processes, on gloo; few of them, for they are slow to start."""

import json
import os
import re
import shutil
import subprocess
import sys
from contextlib import redirect_stdout
from functools import partial
from io import StringIO
from itertools import pairwise
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file
from transformers import GPT2LMHeadModel

from experiments import replay, timeline
from experiments import train as command
from experiments.config import compose
from experiments.run.run import Run
from experiments.run.timelines import load_timeline
from paci.distributed.launch import spawn
from paci.schedules import theory
from tests.experiments import fleet
from tests.experiments.smoke import (
    ROOT,
    assert_same_results,
    call,
    lines,
    losses,
    timeless,
    train,
    weights,
)
from tests.paci import toys

NAME = "paci-a4-b8-s0"
DISTRIBUTED = ["executor=distributed", "stages=2"]


@pytest.fixture(scope="module")
def base(corpus):
    return ["scale=smoke", "tokens=2560", f"data.folder={corpus}"]


@pytest.fixture(scope="module")
def dynamic(tmp_path_factory, base):
    """The folder of a run whose order arrival decided; of the command."""
    runs = tmp_path_factory.mktemp("dynamic")
    with redirect_stdout(StringIO()) as said:
        assert call(command, [*base, *DISTRIBUTED, f"runs={runs}"]) == 0
    assert said.getvalue().startswith(f"{runs / NAME}: completed  loss ")
    return runs / NAME


@pytest.fixture(scope="module")
def local(tmp_path_factory, base):
    """Trains in this process with these overrides, once; gives the folder."""
    done = {}

    def once(*overrides):
        if overrides not in done:
            runs = tmp_path_factory.mktemp("local")
            done[overrides] = train([*base, "stages=2", f"runs={runs}", *overrides]).path
        return done[overrides]

    return once


def status(folder):
    return json.loads((folder / "status.json").read_text())


def assert_same(folder, other):
    """Assert equal weights, losses and drift; clocks may differ."""
    assert_same_results(folder, other)
    drifts = [[line["drift"] for line in lines(run / "stages.jsonl")] for run in (folder, other)]
    assert drifts[0] == drifts[1]


# What a run leaves


def test_the_records_are_on_the_wall_clock(dynamic):
    expected = {"state": "completed", "why": None, "update": 10, "updates": 10}
    assert timeless(status(dynamic)) == expected
    metrics = lines(dynamic / "metrics.jsonl")
    assert len(losses(dynamic)) == 10
    assert {line["clock"] for line in metrics} == {"wall"}
    seconds = [line["seconds"] for line in metrics if "loss" in line]
    assert seconds == sorted(seconds)
    assert [line["update"] for line in metrics if "perplexity" in line] == [0, 5, 10]
    assert len(json.loads((dynamic / "environment.json").read_text())) == 1


def test_every_stage_says_what_it_waited_for(dynamic):
    stages = lines(dynamic / "stages.jsonl")
    assert [(s["update"], s["stage"]) for s in stages] == [(u, i) for u in (5, 10) for i in (0, 1)]
    for line in stages:
        assert sum(line["drift"].values()) == 20
        assert max(map(int, line["drift"])) <= theory.drift_bound(2, line["stage"], 4)
        assert line["version_bytes"] == 0
        assert set(line["waiting_seconds"]) <= {"input", "gradient", "backpressure"}
        assert all(waited >= 0 for waited in line["waiting_seconds"].values())
        assert line["busy_seconds"] > 0


def test_transformers_reads_the_model(dynamic):
    model = GPT2LMHeadModel.from_pretrained(dynamic / "model")
    assert toys.same(
        model.state_dict()["transformer.ln_f.weight"],
        weights(dynamic)["transformer.ln_f.weight"],
    )


# Emulated, and a timeline


@pytest.fixture(scope="module")
def emulated(tmp_path_factory, base):
    """The folder of a run whose stages wait, 2 ms and 4 ms a micro-batch of two sequences."""
    cost = ["executor=emulated", "executor.cost.forward=0.001", "executor.cost.backward=0.002"]
    runs = tmp_path_factory.mktemp("emulated")
    return train([*base, "stages=2", *cost, "timeline=true", f"runs={runs}"]).path


def test_emulated_stages_are_busy_as_long_as_told(emulated):
    assert status(emulated)["state"] == "completed"
    assert {line["clock"] for line in lines(emulated / "metrics.jsonl")} == {"emulated"}
    assert losses(emulated) == [0.0] * 10  # nothing was computed
    for line in lines(emulated / "stages.jsonl"):
        assert line["busy_seconds"] > 0.95 * 20 * 0.006
        assert max(map(int, line["drift"])) <= theory.drift_bound(2, line["stage"], 4)


def test_where_the_time_went(emulated, capsys):
    assert call(timeline, [str(emulated)]) == 0
    head, _, *ranks = capsys.readouterr().out.split("\n\n")[0].splitlines()
    assert [word for word in head.split() if word not in ("waits", "for")] == [
        *("rank", "busy", "(s)", "idle", "(s)", "bubble", "(idle/busy)"),
        *(word for cause in timeline.WAITING for word in (cause, "(s)")),
    ]
    for rank, row in enumerate(ranks):
        number, busy, idle, bubble, *waits = row.replace("%", "").split()
        assert int(number) == rank
        assert float(busy) > 0.95 * 40 * 0.006
        assert float(bubble) == pytest.approx(100 * float(idle) / float(busy), abs=0.5)
        assert sum(map(float, waits)) > 0
    trace = json.loads((emulated / "trace.json").read_text())["traceEvents"]
    assert sum(event["ph"] == "X" for event in trace) == 2 * 2 * 40


def test_the_timeline_is_on_one_clock(emulated):
    whole = load_timeline(emulated)
    assert whole.ranks == 2
    for rank in range(2):
        rows = sorted((row for row in whole.rows if row.rank == rank), key=lambda row: row.start)
        for kind in "FB":
            assert [row.microbatch for row in rows if row.kind == kind] == list(range(40))
        assert all(one.end <= other.start for one, other in pairwise(rows))
    last = max(line["seconds"] for line in lines(emulated / "metrics.jsonl"))
    assert max(row.end for row in whole.rows) == pytest.approx(last, abs=60)  # not another epoch


def test_without_a_timeline_there_is_a_table_still(local, capsys):
    assert call(timeline, [str(local())]) == 0
    said = capsys.readouterr().out
    assert "recorded no timeline" in said
    assert len(said.split("\n\n")[0].splitlines()) == 4
    assert not (local() / "trace.json").exists()


@pytest.mark.parametrize("given", [[], ["a", "b"], ["nowhere"]])
def test_what_has_no_timeline_is_refused(capsys, given):
    assert call(timeline, given) == 2
    assert capsys.readouterr().err.count("error: ") == 1


def test_a_run_of_an_older_version_has_no_timeline(tmp_path):
    line = {"update": 1, "stage": 0, "busy_seconds": 1.0, "idle_seconds": 1.0}
    (tmp_path / "stages.jsonl").write_text(json.dumps(line) + "\n")
    with pytest.raises(ValueError, match="or of an older version"):
        timeline.table(tmp_path)


# The same again


def test_static_order_equals_local_to_the_last_bit(base, local, tmp_path):
    folder = train([*base, *DISTRIBUTED, "executor.order=static", f"runs={tmp_path}"]).path
    assert_same(folder, local())


def replayed(capsys, folder) -> tuple[int, str]:
    code, said = call(replay, [str(folder)]), capsys.readouterr()
    return code, said.out or said.err  # where progress is, if there is a result


def test_a_replay_is_bitwise_equal(dynamic, capsys):
    code, said = replayed(capsys, dynamic)
    assert (code, said) == (0, f"{dynamic}: replayed, bitwise equal\n")


def test_a_replay_names_what_differs(dynamic, capsys):
    part = sorted((dynamic / "model").glob("*.safetensors"))[-1]
    original, tensors = part.read_bytes(), load_file(part)
    name = min(tensors)
    tensors[name].view(-1)[0] += 0.5
    save_file(tensors, part, {"format": "pt"})
    try:
        code, said = replayed(capsys, dynamic)
    finally:
        part.write_bytes(original)
    assert code == 1
    assert said == f"{name} differs by up to 0.5\n{dynamic}: replayed, not equal\n"


DAMAGE = {
    "config.yaml": (None, "is not a run folder"),
    "config.yaml ": ("{", "config.yaml is damaged, or of an older version"),
    "config.yaml  ": ("executor: {name: local}", "config.yaml is damaged, or of an older version"),
    "model/model-00001-of-00002.safetensors": (None, "model lacks"),
    "model/model-00002-of-00002.safetensors": ("x", "00002.safetensors is damaged"),
    "orders/000000005.csv": (None, "orders lacks the segment to update 5"),
    "orders/000000005.csv ": (
        "0F0,0B0",
        "orders/000000005.csv is damaged: it has 1 stage(s), the run has 2",
    ),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_what_cannot_be_replayed_is_refused(name, dynamic, tmp_path, capsys):
    folder, (text, sentence) = tmp_path / dynamic.name, DAMAGE[name]
    shutil.copytree(dynamic, folder)
    if text is None:
        (folder / name).unlink()
    else:
        (folder / name.strip()).write_text(text)
    code, said = replayed(capsys, folder)
    assert code == 2
    assert sentence in said
    assert said.count("\n") == 1


# Ends


TWELVE = ["tokens=3072", "evaluations=3"]  # updates, in segments of four
STATIC, DYNAMIC = "executor.order=static", "executor.order=dynamic"
TERMINATED = {  # overrides, and the update at which it happens
    "in mid-segment": ([STATIC], 5),
    "at the end of one": ([STATIC], 8),
    "dynamic": ([DYNAMIC], 5),
    "flush": (["method=1f1b-flush", DYNAMIC], 5),
    "two stages a rank": (["method=zbv", "stages=4", STATIC], 5),
}


@pytest.fixture(scope="module")
def terminated(tmp_path_factory, base):
    """{name: (status in between, folder of the resumed run)}; one set of processes for all."""
    runs = tmp_path_factory.mktemp("terminated")
    jobs = [
        ([*base, *DISTRIBUTED, *TWELVE, *overrides, f"runs={runs / name}"], update)
        for name, (overrides, update) in TERMINATED.items()
    ]
    statuses = spawn(fleet.terminated_and_resumed, 2, jobs)[-1]
    folders = [Run(compose(overrides)).folder.path for overrides, _ in jobs]
    return dict(zip(TERMINATED, zip(statuses, folders, strict=True), strict=True))


@pytest.mark.parametrize(("name", "start"), [("in mid-segment", 4), ("at the end of one", 8)])
def test_where_a_drain_would_show_it_goes_back_to_the_last_one(terminated, local, name, start):
    ended, folder = terminated[name]
    assert ended["state"] == "preempted"
    assert ended["why"] == f"interrupted: goes on from update {start}"
    assert start <= ended["update"] < start + 4
    assert_same(folder, local(*TWELVE))
    metrics = [lines(run / "metrics.jsonl") for run in (folder, local(*TWELVE))]
    for line in (line for run in metrics for line in run):
        for key in ("seconds", "units", "clock"):
            line.pop(key, None)
    assert metrics[0] == metrics[1]
    assert [file.name for file in sorted((folder / "orders").iterdir())] == [
        f"{update:09d}.csv" for update in (4, 8, 12)
    ]


@pytest.mark.parametrize("name", ["dynamic", "flush", "two stages a rank"])
def test_elsewhere_an_interruption_loses_nothing(terminated, local, name):
    ended, folder = terminated[name]
    assert 5 <= ended["update"] < 8
    assert ended["why"] == f"interrupted: goes on from update {ended['update']}"
    segments = [line["update"] for line in lines(folder / "stages.jsonl")]
    assert sorted(set(segments)) == [4, ended["update"], 8, 12]
    assert len(losses(folder)) == 12
    if name != "dynamic":
        assert_same_results(folder, local(*TWELVE, *TERMINATED[name][0][:-1]))


def test_divergence_is_a_result(base, tmp_path):
    folder = train([*base, *DISTRIBUTED, "optimizer.lr=1e30", f"runs={tmp_path}"])
    why = "stage 1, update 2: the loss of micro-batch 4 is not finite"
    expected = {"state": "diverged", "why": why, "update": 1, "updates": 10}
    assert timeless(folder.status()) == expected


def test_terminated_then_killed_at_one_rank_and_it_goes_on(
    base, local, tmp_path, monkeypatch, capfd
):
    settings = [*base, *DISTRIBUTED, STATIC, f"runs={tmp_path}", *TWELVE]
    folder = tmp_path / NAME
    rank = partial(fleet.terminated_rank, os.getpid(), 6)
    with monkeypatch.context() as patch:
        patch.setattr("experiments.run.execution.spawned_rank", rank)
        assert call(command, settings) == 1
    why = "interrupted: goes on from update 4"
    assert (status(folder)["state"], status(folder)["why"]) == ("preempted", why)
    assert status(folder)["update"] in (6, 7)
    assert newest(folder) == 4
    assert capfd.readouterr().out == f"{folder}: preempted: {why}\n"

    with monkeypatch.context() as patch:
        patch.setattr("experiments.run.execution.spawned_rank", partial(fleet.killed_rank, 10))
        assert call(command, settings) == 1
    ended = status(folder)
    assert ended["state"] == "failed"
    assert re.fullmatch(r"rank 1 \(stage 1, micro-batch \d+\): killed by SIGKILL", ended["why"])
    out, err = capfd.readouterr()
    assert out == f"{folder}: failed: {ended['why']}\n"
    assert "Traceback" not in err
    assert "terminate called" not in err

    assert newest(folder) == 8
    starts = json.loads((folder / "environment.json").read_text())
    assert [s["from_update"] for s in starts] == [0, 4]
    expected = {"state": "completed", "why": None, "update": 12, "updates": 12}
    assert timeless(train(settings).status()) == expected
    assert_same(folder, local(*TWELVE))


def newest(folder: Path) -> int:
    """The update of the newest checkpoint."""
    return max(int(path.name) for path in folder.glob("checkpoints/[0-9]*")) // 4


# Started by torchrun


def torchrun(overrides) -> subprocess.CompletedProcess:
    return subprocess.run(
        [
            *(sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"),
            *("--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0"),
            *("-m", "experiments.train", *overrides),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_torchrun_starts_the_ranks(base, local, tmp_path):
    settings = [*base, *DISTRIBUTED, "executor.order=static", f"runs={tmp_path}"]
    done = torchrun(settings)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{tmp_path / NAME}: completed  loss ")
    assert_same(tmp_path / NAME, local())


def test_torchrun_with_the_wrong_number_of_ranks_is_refused(base, tmp_path):
    refused = torchrun([*base, *DISTRIBUTED, "stages=3", f"runs={tmp_path}"])
    assert refused.returncode != 0
    said = "error: torchrun must start 3 processes for this run, not 2"
    assert refused.stderr.count(said) == 1
    assert not list(tmp_path.iterdir())

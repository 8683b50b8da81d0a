import json
import math
import os
import re
import shutil
import signal
from itertools import pairwise

import pytest
import torch
from omegaconf import OmegaConf
from transformers import GPT2LMHeadModel

import runlog
from experiments import data, models
from experiments import train as command
from experiments.config import compose
from experiments.run.pipelines import build_pipeline
from experiments.run.run import Run
from paci.schedules import theory
from tests.experiments.smoke import (
    assert_same_run,
    at_update,
    call,
    killed,
    lines,
    losses,
    stamps,
    timeless,
    train,
    weights,
)

# What a run leaves


def test_a_run_folder_has_its_files(trained):
    assert {path.name for path in trained.iterdir() if path.name != ".lock"} == {
        "config.yaml",
        "environment.json",
        "identity.json",
        "metrics.jsonl",
        "stages.jsonl",
        "status.json",
        "checkpoints",
        "orders",
        "model",
    }
    status = json.loads((trained / "status.json").read_text())
    expected = {"state": "completed", "why": None, "update": 10, "updates": 10}
    assert timeless(status) == expected
    assert OmegaConf.load(trained / "config.yaml").method.name == "paci"
    (start,) = json.loads((trained / "environment.json").read_text())
    assert start["packages"]["torch"]
    assert start["started"] == status["started"] < status["ended"] <= start["ended"]
    assert 0 < status["wall_seconds"] <= start["wall_seconds"]


def test_a_line_for_each_update(trained):
    metrics = [line for line in lines(trained / "metrics.jsonl") if "loss" in line]
    assert [line["update"] for line in metrics] == list(range(1, 11))
    assert [line["tokens"] for line in metrics] == [256 * k for k in range(1, 11)]
    assert {(line["clock"], line["seconds"]) for line in metrics} == {("simulated", None)}
    units = [line["units"] for line in metrics]
    assert all(a < b for a, b in pairwise(units))
    assert metrics[0]["loss"] == pytest.approx(math.log(257), rel=0.05)  # knows nothing yet
    assert metrics[0]["lr"] == pytest.approx(1e-3)
    assert metrics[-1]["lr"] == pytest.approx(1e-4)


def test_evaluations_are_even(trained):
    evaluations = [line for line in lines(trained / "metrics.jsonl") if "perplexity" in line]
    assert [line["update"] for line in evaluations] == [0, 5, 10]
    for line in evaluations:
        assert line["perplexity"] == pytest.approx(math.exp(line["validation_loss"]))


def test_drift_is_measured_and_within_its_bound(trained):
    stages = lines(trained / "stages.jsonl")
    assert [(s["update"], s["stage"]) for s in stages] == [
        (u, i) for u in (5, 10) for i in range(4)
    ]
    for line in stages:
        drift = {int(d): count for d, count in line["drift"].items()}
        assert sum(drift.values()) == 5 * 4  # every micro-batch of the segment
        assert max(drift) <= theory.drift_bound(4, line["stage"], 4)
        assert line["version_bytes"] == 0  # one copy of the weights
        assert line["busy_units"] == pytest.approx(20 * 2 * 3.0)  # micro-batches of 2, F + B
        assert line["idle_units"] >= 0
        assert line["busy_seconds"] is line["idle_seconds"] is None
    assert any(int(d) for line in stages for d in line["drift"])


def test_transformers_reads_the_model(trained):
    config = OmegaConf.load(trained / "config.yaml")
    model = GPT2LMHeadModel.from_pretrained(trained / "model").eval()
    batches = data.evaluation_batches(
        data.load(config.data).validation.tokens, 32, 32, config.validation_sequences
    )
    with torch.no_grad():
        again = [models.loss(model(input).logits, target).item() for input, target in batches]
    last = lines(trained / "metrics.jsonl")[-1]
    assert sum(again) / len(again) == pytest.approx(last["validation_loss"], rel=1e-6)


# The same again


def test_a_run_is_a_function_of_its_configuration(trained, settings):
    assert_same_run(train(settings).path, trained)


def test_another_seed_is_another_run_on_the_same_text_in_the_same_order(trained, settings):
    other = Run(compose([*settings, "seed=1"]))
    same = Run(compose(settings)).batches(0, 40)
    for one, two in zip(other.batches(0, 40), same, strict=True):
        assert torch.equal(one[0], two[0])
    assert losses(train([*settings, "seed=1"]).path) != losses(trained)


def test_another_order_of_the_text_is_another_run(trained, settings):
    assert losses(train([*settings, "data.order_seed=1"]).path) != losses(trained)


def test_methods_at_one_batch_see_the_same_data(settings):
    settings = [*settings, "model.dropout=0.0"]  # which draws per micro-batch
    methods = ["method=paci", "method=1f1b-flush", "method=1f1b-flush method.accumulation=2"]
    first = [losses(train([*settings, *method.split()]).path)[0] for method in methods]
    assert first == pytest.approx([first[0]] * 3, rel=1e-6)


def test_a_finished_run_is_not_repeated(settings, capsys):
    assert call(command, settings) == 0
    said = capsys.readouterr().out
    assert re.search(
        r"paci-a4-b8-s0: completed  loss \d\.\d+  perplexity \d+\.\d+  in [\d.]+ s\n$", said
    )
    folder = Run(compose(settings)).folder.path
    written = stamps(folder)
    assert call(command, settings) == 0
    assert capsys.readouterr().out == said.replace("\n", "  (from before)\n")
    assert stamps(folder) == written


def test_a_dry_run_only_says_what_it_would_do(settings, tmp_path, capsys):
    assert call(command, [*settings, "dry_run=true"]) == 0
    assert capsys.readouterr().out.endswith("paci-a4-b8-s0: not started: would be run\n")
    assert not (tmp_path / "runs").exists()


def test_another_configuration_in_its_folder_is_refused(settings, capsys):
    folder = train(settings).path
    written = stamps(folder)
    assert call(command, [*settings, "optimizer.lr=0.5"]) == 2
    assert "(optimizer.lr is 0.001 there, 0.5 here)" in capsys.readouterr().err
    assert stamps(folder) == written


# Interruptions


def test_killed_and_terminated_is_as_if_nothing_had_been(settings, tmp_path, monkeypatch):
    settings = [*settings, "tokens=5120", "evaluations=4"]
    undisturbed = train([*settings, f"runs={tmp_path / 'undisturbed'}"]).path

    folder = tmp_path / "runs" / "paci-a4-b8-s0"
    killed(settings, 8)
    assert json.loads((folder / "status.json").read_text())["state"] == "running"

    with monkeypatch.context() as patch:
        at_update(patch, 13, lambda: os.kill(os.getpid(), signal.SIGTERM))
        assert call(command, settings) == 1
    assert timeless(json.loads((folder / "status.json").read_text())) == {
        "state": "preempted",
        "why": "interrupted: goes on from update 10",
        "update": 13,
        "updates": 20,
    }
    assert call(command, settings) == 0
    assert_same_run(folder, undisturbed)
    assert len(losses(folder)) == 20


def test_an_error_within_a_segment_leaves_the_checkpoint_as_it_was(settings, monkeypatch):
    """Update 8 is in the middle of the second of two segments."""
    checkpoints, before = Run(compose(settings)).folder.checkpoints, {}

    def fail():
        before.update(stamps(checkpoints))
        raise KeyboardInterrupt

    at_update(monkeypatch, 8, fail)
    assert train(settings).status()["why"] == "interrupted: goes on from update 5"
    assert before
    assert stamps(checkpoints) == before


def test_a_run_names_its_corpus_code_and_packages(trained):
    identity = json.loads((trained / "identity.json").read_text())
    assert identity["corpus"]["train"]["tokens"] > 0
    assert len(identity["corpus"]["validation"]["sha256"]) == 64
    assert identity["corpus"]["tokeniser"]["name"] == "bytes"
    assert "torch" in identity["packages"]
    assert "paci/local.py" in identity["code"]
    assert identity["cost"] is None


@pytest.fixture(scope="module")
def begun(tmp_path_factory, corpus):
    """The folder of a run that was interrupted after its first checkpoint, to copy."""

    def stop():
        raise KeyboardInterrupt

    runs = tmp_path_factory.mktemp("begun")
    with pytest.MonkeyPatch.context() as patch:
        at_update(patch, 8, stop)
        settings = ["scale=smoke", "tokens=2560", f"runs={runs}", f"data.folder={corpus}"]
        return train(settings).path


def changed(folder, path, value):
    """Record in identity.json that the run began with `value` at the keys `path`."""
    identity = place = json.loads((folder / "identity.json").read_text())
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    (folder / "identity.json").write_text(json.dumps(identity))


@pytest.mark.parametrize(
    ("path", "other", "named"),
    [
        (("corpus", "train", "sha256"), "0", "the corpus: the train split has other tokens"),
        (("corpus", "tokeniser", "sha256"), "0", "the vocabulary of the tokeniser bytes"),
        (("code", "paci/local.py"), "0", "the code: paci/local.py"),
        (("packages", "torch"), "1.0", "the packages: torch was 1.0, is "),
        (("cost",), {"forward": [1.0]}, "cost.json: forward was [1.0], is None"),
    ],
)
def test_a_run_does_not_go_on_as_another(settings, begun, tmp_path, path, other, named, capsys):
    folder = shutil.copytree(begun, tmp_path / "runs" / begun.name)
    changed(folder, path, other)
    written = stamps(folder)
    assert call(command, settings) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert named in said
    (start,) = json.loads((folder / "environment.json").read_text())
    assert f"commit {start['commit']}), or start anew with runs=" in said
    assert stamps(folder) == written


@pytest.mark.parametrize("state", ["failed", "diverged", "out-of-memory"])
def test_nor_does_a_run_that_is_tried_again(settings, begun, tmp_path, state, capsys):
    folder = shutil.copytree(begun, tmp_path / "runs" / begun.name)
    status = runlog.Status(state, None, 8, 10)
    runlog.write_json(folder / "status.json", runlog.as_json(status))
    changed(folder, ("code", "paci/local.py"), "0")
    assert call(command, settings) == 2
    assert "the code: paci/local.py" in capsys.readouterr().err


def test_a_completed_run_is_left_alone_whatever_changed(settings, trained, tmp_path, capsys):
    folder = shutil.copytree(trained, tmp_path / "runs" / trained.name)
    changed(folder, ("code", "paci/local.py"), "0")
    assert call(command, settings) == 0
    said = capsys.readouterr()
    assert said.out.startswith(f"{folder}: completed")
    assert said.err == ""


# Ends that are no success


def test_divergence_is_a_result(settings, capsys):
    assert call(command, [*settings, "optimizer.lr=1e30"]) == 1
    folder = Run(compose([*settings, "optimizer.lr=1e30"])).folder
    why = "stage 3, update 2: the loss of micro-batch 4 is not finite"
    assert capsys.readouterr().out == f"{folder.path}: diverged: {why}\n"
    expected = {"state": "diverged", "why": why, "update": 0, "updates": 10}
    assert timeless(folder.status()) == expected
    assert not folder.model.exists()


def test_out_of_memory_is_a_result(settings, monkeypatch):
    def exhaust():
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB.\nDetails")

    at_update(monkeypatch, 3, exhaust)
    status = train(settings).status()
    assert status["state"] == "out-of-memory"
    assert status["why"] == "OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB."


def test_what_is_our_fault_is_raised_and_recorded(settings, monkeypatch):
    at_update(monkeypatch, 3, lambda: [].pop())
    with pytest.raises(IndexError):
        train(settings)
    status = Run(compose(settings)).folder.status()
    assert (status["state"], status["why"]) == ("failed", "IndexError: pop from empty list")
    monkeypatch.undo()
    assert train(settings).status()["state"] == "completed"  # a new try goes on


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_a_device_that_is_not_here_is_refused(settings, capsys, tmp_path):
    assert call(command, [*settings, "executor.device=cuda"]) == 2
    assert "PyTorch finds no CUDA device here" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_weights_are_finite_and_moved(trained, settings):
    untrained = build_pipeline(Run(compose(settings))).stages
    initial = {n: t for stage in untrained for n, t in stage.module.state_dict().items()}
    for name, tensor in weights(trained).items():
        assert tensor.isfinite().all()
        assert not torch.equal(tensor, initial[name])

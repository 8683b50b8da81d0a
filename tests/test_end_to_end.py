"""Smoke runs of every task and executor, read by `analysis`, drawn by `paper_figures`."""

from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

import runlog
from analysis import read_runs
from analysis.manifest import BROKEN, MADE, read_manifest
from experiments import extrapolate, train
from paper_figures.command import main, scripts
from tests.experiments.smoke import call

FLUSH, PACI = "method=1f1b-flush", "method=paci"
REAL = ["executor=distributed", "stages=2"]
SHORT, RECOMPUTE = ["tokens=2560"], "named=[executor.recompute]"
TRAININGS = ["experiment=trainings", *SHORT]
EXTRAS = ["experiment=extras", *SHORT]
Q2 = ["experiment=q2"]
Q3 = ["experiment=q3"]
Q3_EMULATED = ["experiment=q3-emulated", "stages=2", "method.accumulation=8"]
Q3_REAL = ["experiment=q3-real", "method.accumulation=8", *REAL]
RUNS = {
    "training-local": [
        [*TRAININGS, FLUSH, "method.accumulation=8"],
        [*TRAININGS, PACI, "method.accumulation=8"],
        [*TRAININGS, PACI, "method.accumulation=4"],
        [*EXTRAS, PACI, "method.accumulation=4", "method.weights=stashed"],
        [*EXTRAS, "method=async-1f1b"],
    ],
    "training-distributed": [
        [*TRAININGS, *REAL, FLUSH, "method.accumulation=4"],
        [*TRAININGS, *REAL, PACI, "method.accumulation=4", "timeline=true"],
    ],
    "training-precision": [
        ["experiment=precision", *SHORT, PACI, f"method.weights={weights}", "seed=1"]
        for weights in ("live", "stashed")
    ],
    "training-recompute": [
        ["experiment=recompute", *SHORT, PACI, f"executor.recompute={what}", "seed=2", RECOMPUTE]
        for what in ("none", "stage")
    ],
    "training-clipping": [["experiment=clipping", *SHORT, PACI, "optimizer.clip=stage"]],
    "training-horizon": [
        ["experiment=horizon", *SHORT, "batch=16", method, "optimizer.lr=1e-3"]
        for method in (FLUSH, PACI)
    ],
    "training-rates": [["experiment=rates", *SHORT, PACI, "optimizer.lr=1e-1"]],
    "training-optimizers": [
        ["experiment=optimizers", *SHORT, PACI, "optimizer=muon", "optimizer.lr=4e-3"]
    ],
    "training-emulated": [["executor=emulated", "stages=2", "tokens=2560"]],
    "throughput-q2": [
        [*Q2, FLUSH, "method.accumulation=4"],
        [*Q2, FLUSH, "method.accumulation=8"],
        [*Q2, PACI, "method.accumulation=4"],
        [*Q2, PACI, "method.accumulation=8"],
    ],
    "throughput-local": [
        [*Q3, method, f"method.accumulation={count}"]
        for method in (FLUSH, PACI)
        for count in (2, 4, 8)
    ],
    "throughput-emulated": [[*Q3_EMULATED, method] for method in (FLUSH, PACI)],
    "throughput-distributed": [[*Q3_REAL, method] for method in (FLUSH, PACI)],
}


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """The folder of all runs, what `analysis` reads of it, and what `paper_figures` makes of it."""
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("study")
    corpus = tmp_path_factory.mktemp("corpus")
    for name, runs in RUNS.items():
        shared = ["scale=smoke", f"runs={folder / name}", f"data.folder={corpus}"]
        for run in runs:
            assert call(train, [*shared, *run]) == 0, (name, run)
    assert call(extrapolate, ["scale=smoke", f"runs={folder / 'extrapolation'}"]) == 0
    frames = read_runs(folder)
    assert main(argv=[str(folder)]) == 0
    return SimpleNamespace(folder=folder, frames=frames, made=read_manifest(folder / "figures"))


def test_every_run_is_read_and_no_key_is_missing_or_unknown(study):
    states = study.frames.runs["state"]
    assert len(states) == sum(map(len, RUNS.values()))
    assert set(states) == {"completed"}
    assert study.frames.notes == []


@pytest.mark.parametrize("name", RUNS)
def test_every_log_has_the_keys_of_its_record(study, name):
    """Asked of the files themselves, so that the reader above is checked, too."""
    for folder in map(Path, sorted((study.folder / name).glob("*/"))):
        if "throughput" in name:
            logs = {runlog.THROUGHPUT: [runlog.RepetitionLine], runlog.STAGES: [runlog.StageLine]}
        else:
            lines = [runlog.UpdateLine, runlog.EvaluationLine]
            logs = {runlog.METRICS: lines, runlog.STAGES: [runlog.StageLine]}
        for file, records in logs.items():
            rows, unreadable = runlog.read_lines(folder / file)
            assert rows
            assert not unreadable
            for row in rows:
                assert any(
                    runlog.required(record) <= row.keys() <= {*runlog.keys(record)}
                    for record in records
                ), (folder, file, row.keys())


def test_every_number_that_a_log_must_have_is_a_number(study):
    frames = study.frames
    for log in (frames.updates, frames.evaluations):
        times = log[["seconds", "units"]]
        assert times.notna().sum(axis=1).eq(1).all()
        assert log.drop(columns=times.columns).notna().all(axis=None)
    assert frames.throughput.notna().all(axis=None)
    required = runlog.required(runlog.StageLine) - {"busy_seconds", "idle_seconds"}
    assert frames.stages[[key for key in frames.stages if key in required]].notna().all(axis=None)
    for part in ("busy", "idle"):
        times = frames.stages[[f"{part}_seconds", f"{part}_units"]]
        assert times.notna().sum(axis=1).eq(1).all()


def test_every_figure_and_table_is_made(study):
    assert study.made.keys() == {*scripts()}
    assert {name: item.why for name, item in study.made.items() if item.state == BROKEN} == {}
    assert {name: item.why for name, item in study.made.items() if item.state != MADE} == {}
    for item in study.made.values():
        assert item.files
        assert all((study.folder / "figures" / file).stat().st_size for file in item.files)

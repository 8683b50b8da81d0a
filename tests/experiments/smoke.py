"""Run commands and read run folders, as a user would."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path
from types import ModuleType
from unittest.mock import patch

import pytest
import torch
from safetensors.torch import load_file

from experiments.config import compose
from experiments.run.execution import train as train_
from experiments.run.folder import RunFolder
from experiments.run.run import Run

ROOT = Path(__file__).resolve().parents[2]


def train(overrides: list[str]) -> RunFolder:
    run = Run(compose(overrides))
    train_(run)
    return run.folder


def start(command: str, overrides: list[str]) -> subprocess.Popen:
    """`python -m experiments.COMMAND OVERRIDES`, in a process (group) of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", f"experiments.{command}", *overrides],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def call(command: ModuleType, arguments: list[str]) -> int:
    """The same in this process; its exit status."""
    with patch("sys.argv", [command.__name__, *arguments]):
        try:
            command.main()
        except SystemExit as end:
            return int(end.code)
    return 0


def killed(overrides: list[str], update: int) -> None:
    """Train in a process that is killed as soon as this update is logged."""
    process = get_context("fork").Process(target=_killed, args=(overrides, update))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL


def _killed(overrides: list[str], update: int) -> None:
    at_update(pytest.MonkeyPatch(), update, lambda: os.kill(os.getpid(), signal.SIGKILL))
    train(overrides)


def at_update(patch: pytest.MonkeyPatch, update: int, act: Callable[[], object]) -> None:
    """Call `act` when this update has been logged."""
    log = RunFolder.log

    def log_and_act(folder, file, new):
        log(folder, file, new)
        if getattr(new[0], "loss", None) is not None and new[0].update == update:
            act()

    patch.setattr(RunFolder, "log", log_and_act)


def wait_for_a_checkpoint(folder: Path, beyond: int = 0) -> None:
    """Until there is one of more than so many micro-batches."""
    deadline = time.monotonic() + 120
    while not any(int(path.name) > beyond for path in folder.glob("checkpoints/[0-9]*")):
        assert time.monotonic() < deadline, f"no checkpoint in {folder}"
        time.sleep(0.005)


def timeless(status: dict) -> dict:
    """Return a status without its wall time."""
    times = ("started", "ended", "wall_seconds")
    return {key: value for key, value in status.items() if key not in times}


def lines(file: Path) -> list[dict]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def losses(folder: Path) -> list[float]:
    """The training loss of each update; it must be there once, in order."""
    updates = [line for line in lines(folder / "metrics.jsonl") if "loss" in line]
    assert [line["update"] for line in updates] == list(range(1, len(updates) + 1))
    return [line["loss"] for line in updates]


def weights(folder: Path) -> dict[str, torch.Tensor]:
    """Return the weights of the finished model, by name."""
    parts = [load_file(part) for part in sorted((folder / "model").glob("*.safetensors"))]
    return {name: tensor for part in parts for name, tensor in part.items()}


def assert_same_results(one: Path, other: Path) -> None:
    """Bitwise the same weights and, digit for digit, the same losses."""
    a, b = weights(one), weights(other)
    assert a
    assert a.keys() == b.keys()
    assert all(torch.equal(a[name], b[name]) for name in a)
    assert losses(one) == losses(other)


def assert_same_run(one: Path, other: Path) -> None:
    """The same results and, digit for digit, the same metrics and statistics."""
    assert_same_results(one, other)
    for file in ("metrics.jsonl", "stages.jsonl"):
        assert (one / file).read_text() == (other / file).read_text()


def stamps(folder: Path) -> dict[Path, int]:
    """When each file of a run was last written; its lock is not one of the run."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != ".lock")
    return {path: path.stat().st_mtime_ns for path in files}

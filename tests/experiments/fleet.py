"""Ranks of runs that are ended at a given update, not after some seconds: by a signal that all of
them have heard of before any goes on, or by the death of one."""

import os
import signal
import time
from pathlib import Path

import pytest
import torch.distributed as dist

from experiments.config import compose
from experiments.run.execution import spawned_rank, train_rank
from experiments.run.run import Run
from paci.distributed.inbox import Inbox
from tests.experiments.smoke import at_update


def terminated_and_resumed(runs: list[tuple[list[str], int]]) -> list[dict]:
    """Each of the (overrides, update): SIGTERM as soon as that update is made; then again, to the
    end. Returns the status of each run in between."""
    ended = []
    for overrides, update in runs:
        run = Run(compose(overrides))
        run.folder.path.mkdir(parents=True, exist_ok=True)
        with pytest.MonkeyPatch.context() as patch:
            terminate(patch, os.getpid(), update, run.folder.path)
            train_rank(run)
        ended.append(run.folder.status())
        train_rank(run)
    return ended


def terminated_rank(launcher: int, update: int, config: dict) -> None:
    """A rank of a run whose launcher gets SIGTERM at an update."""
    terminate(pytest.MonkeyPatch(), launcher, update, Path(config["runs"]))
    spawned_rank(config)


def killed_rank(update: int, config: dict) -> None:
    """A rank of a run whose last rank is killed at an update."""
    at_update(pytest.MonkeyPatch(), update, lambda: os.kill(os.getpid(), signal.SIGKILL))
    spawned_rank(config)


def terminate(patch: pytest.MonkeyPatch, process: int, update: int, folder: Path) -> None:
    """Send SIGTERM to a process at an update, and wait there until every rank has heard that
    training is to end. The ranks note in `folder` when they have."""
    heard = [folder / f".heard-{rank}" for rank in range(dist.get_world_size())]
    put = Inbox.put

    def put_and_note(inbox, item):
        put(inbox, item)
        if isinstance(item, dict) and "interrupt" in item:
            heard[dist.get_rank()].touch()

    def act():
        os.kill(process, signal.SIGTERM)
        while not all(file.exists() for file in heard):
            time.sleep(0.001)

    patch.setattr(Inbox, "put", put_and_note)
    at_update(patch, update, act)

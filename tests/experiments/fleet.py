"""Processes that do many runs, one after the other, each as the ranks of the command do one."""

import os
import signal
import time
from collections.abc import Callable

from experiments.config import compose
from experiments.run.execution import train_rank
from experiments.run.folder import RunFolder
from experiments.run.run import Run


def terminated_and_resumed(runs: list[tuple[list[str], int]]) -> list[dict]:
    """Each of the (overrides, update): SIGTERM as soon as that update is made; then again, to the
    end. Returns the status of each run in between."""
    ended, log = [], RunFolder.log
    for overrides, update in runs:
        run = Run(compose(overrides))
        run.folder.path.mkdir(parents=True, exist_ok=True)
        RunFolder.log = terminating(log, update)
        train_rank(run)
        ended.append(run.folder.status())
        RunFolder.log = log
        train_rank(run)
    return ended


def terminating(log: Callable, update: int) -> Callable:
    def log_and_terminate(folder, file, lines):
        log(folder, file, lines)
        if getattr(lines[0], "loss", None) is not None and lines[0].update == update:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(0.3)  # all ranks hear of it before they get much further

    return log_and_terminate

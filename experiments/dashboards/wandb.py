"""Weights & Biases, offline unless the environment variable WANDB_MODE says otherwise."""

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from experiments.dashboards.dashboard import Dashboard, ExportedRun, OpenRun
from experiments.dashboards.steps import Step


class WandB(Dashboard):
    package = "wandb"

    def __init__(self, folder: Path):
        super().__init__(folder)
        import wandb

        self._wandb = wandb

    def open(self, run: ExportedRun) -> OpenRun:
        """Return the run whose id follows from its name, so that parts of it that were written
        offline at different times become one run when they are synchronised."""
        self.folder.mkdir(parents=True, exist_ok=True)
        mode: Any = os.environ.get("WANDB_MODE", "offline")
        place = f"{self.folder.absolute()}/{run.label}"
        opened = self._wandb.init(
            project=os.environ.get("WANDB_PROJECT", "paci"),
            id=hashlib.sha256(place.encode()).hexdigest()[:16],
            name=run.label,
            config=run.config,
            dir=self.folder,
            mode=mode,
            resume="allow",
            reinit="create_new",
            settings=self._wandb.Settings(
                silent=True, console="off", x_disable_stats=True, x_disable_meta=True
            ),
        )
        return _Run(opened)

    def how_to_look(self) -> str:
        return f"wandb sync {self.folder}/wandb/offline-run-*"


class _Run(OpenRun):
    def __init__(self, run):
        self._run = run

    def send(self, steps: Sequence[Step]) -> None:
        for step in steps:
            self._run.log(step.values, step=step.number)

    def close(self, state: str) -> None:
        self._run.summary["state"] = state
        self._run.finish(exit_code=int(state in ("failed", "out-of-memory", "diverged")))

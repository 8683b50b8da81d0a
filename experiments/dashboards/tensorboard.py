"""TensorBoard: a folder of event files for each run."""

from collections.abc import Sequence
from pathlib import Path

import yaml

from experiments.dashboards.dashboard import Dashboard, ExportedRun, OpenRun
from experiments.dashboards.steps import Step


class TensorBoard(Dashboard):
    package = "tensorboard"

    def __init__(self, folder: Path):
        super().__init__(folder)
        from torch.utils.tensorboard import SummaryWriter

        self._writer = SummaryWriter

    def open(self, run: ExportedRun) -> OpenRun:
        folder = self.folder / run.label
        is_new = not any(folder.glob("events.*"))
        writer = self._writer(folder)
        if is_new:
            text = yaml.safe_dump(run.config, sort_keys=False)
            writer.add_text("configuration", f"```yaml\n{text}```")
        return _Run(writer)

    def how_to_look(self) -> str:
        return f"tensorboard --logdir {self.folder}"


class _Run(OpenRun):
    def __init__(self, writer):
        self._writer = writer

    def send(self, steps: Sequence[Step]) -> None:
        for step in steps:
            for name, value in step.values.items():
                self._writer.add_scalar(name, value, step.number)
        self._writer.flush()

    def close(self, state: str) -> None:
        self._writer.close()

"""Sending what is new in all runs of a folder to one dashboard."""

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import yaml
from omegaconf import DictConfig

import runlog
from experiments.dashboards.dashboard import Dashboard, ExportedRun, OpenRun
from experiments.dashboards.sent import Sent, digest
from experiments.dashboards.steps import steps
from experiments.run.folder import RESULTS, RunFolder, run_folders

FILES = (runlog.STATUS, runlog.METRICS, runlog.STAGES, runlog.THROUGHPUT)
SENT = "sent.json"


class Round(NamedTuple):
    """What one look at all runs found: new `steps`, of so many `runs`, and the runs `unended`."""

    steps: int
    runs: int
    unended: int


class Export:
    """The export of the runs below `runs` to `dashboard`.

    What was sent of a run is recorded in the dashboard's folder after it was sent, so an export
    that is killed may send its last steps again, and loses none.
    """

    def __init__(self, runs: Path, dashboard: Dashboard):
        self.runs = runs
        self.dashboard = dashboard
        self._open: dict[str, OpenRun] = {}
        self._seen: dict[str, list[tuple[int, int]]] = {}

    def round(self) -> Round:
        """Send what is new."""
        done = [self._run(path) for path in run_folders(self.runs)]
        steps = [count for count, _ in done]
        unended = sum(state not in RESULTS for _, state in done)
        return Round(sum(steps), sum(map(bool, steps)), unended)

    def close(self) -> None:
        """Close the runs that are still open."""
        for name in list(self._open):
            self._close(name, self._sent(name).state)

    def _run(self, path: Path) -> tuple[int, str]:
        """Send what is new in a run folder; return the count of steps, and the run's state."""
        name = path.relative_to(self.runs).as_posix() if path != self.runs else path.name
        # The state is read before the logs: a run is complete in them once it says that it ended.
        state = RunFolder(path, DictConfig({})).status().get("state", "")
        at_work = state == "running"
        seen = [(file.stat().st_size, file.stat().st_mtime_ns) for file in _existing(path)]
        if seen == self._seen.get(name):
            return 0, state
        all_steps, sent = steps(path, at_work), self._sent(name)
        if not sent.fits(all_steps):
            self._close(name, sent.state)
            sent = Sent(sent.generation + 1)
        new = all_steps[sent.steps :]
        if new or (state != sent.state and sent.steps):
            if name not in self._open:
                config = yaml.safe_load((path / runlog.CONFIG).read_text(encoding="utf-8"))
                run = ExportedRun(name, sent.generation, config)
                self._open[name] = self.dashboard.open(run)
            self._open[name].send(new)
            of_all = replace(sent, steps=len(all_steps), digest=digest(all_steps), state=state)
            of_all.write(self._record(name))
        if not at_work:
            self._close(name, state)
        self._seen[name] = seen
        return len(new), state

    def _close(self, name: str, state: str) -> None:
        if name in self._open:
            self._open.pop(name).close(state)

    def _sent(self, name: str) -> Sent:
        return Sent.read(self._record(name))

    def _record(self, name: str) -> Path:
        return self.dashboard.folder / ".sent" / name / SENT


def _existing(path: Path) -> list[Path]:
    return [path / name for name in FILES if (path / name).exists()]

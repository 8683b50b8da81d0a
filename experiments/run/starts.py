"""The starts of a run, environment.json: machine and code of each, and how long it took."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import runlog
from experiments.run.environment import describe_environment


class Starts:
    """The starts of the run in the folder `run`."""

    def __init__(self, run: Path):
        self._file = run / runlog.ENVIRONMENT
        self._status = run / runlog.STATUS

    def begin(self, from_update: int) -> None:
        """Record a start from the checkpoint of `from_update`. An earlier start whose process was
        killed ended with its last report."""
        starts = self.read()
        if starts and "ended" not in starts[-1]:
            reported = self._status.stat().st_mtime if self._status.exists() else 0
            starts[-1] |= _end(starts[-1], datetime.fromtimestamp(reported, UTC))
        now = _text(datetime.now(UTC))
        start = runlog.Start(from_update, **describe_environment(), started=now)
        runlog.write_json(self._file, [*starts, runlog.as_json(start)])

    def end(self) -> None:
        """Record when the last start ended, and how long it took."""
        *earlier, last = self.read()
        last |= _end(last, datetime.now(UTC))
        runlog.write_json(self._file, [*earlier, last])

    def wall_time(self, running: bool) -> dict[str, Any]:
        """Return the fields of `runlog.Status` that tell of wall time, as of now."""
        starts = self.read()
        if not starts:
            return {}
        if "ended" not in starts[-1]:
            starts[-1] |= _end(starts[-1], datetime.now(UTC))
        return {
            "started": starts[0].get("started"),
            "ended": None if running else starts[-1]["ended"],
            "wall_seconds": sum(start.get("wall_seconds", 0.0) for start in starts),
        }

    def first_commit(self) -> str:
        """Return the commit of the code with which the run began."""
        commits = [start.get("commit") for start in self.read() if not start.get("from_update")]
        return (commits or [None])[-1] or "unknown"

    def read(self) -> list[dict]:
        """Return the starts, as far as they can be read."""
        try:
            return runlog.read_json(self._file, list) or []
        except runlog.Damaged:
            return []


def _end(start: dict, ended: datetime) -> dict[str, Any]:
    """Return the fields of a start that `ended` then."""
    started = datetime.fromisoformat(start["started"]) if "started" in start else ended
    ended = max(started, ended)
    return {"ended": _text(ended), "wall_seconds": (ended - started).total_seconds()}


def _text(time: datetime) -> str:
    return time.isoformat(timespec="milliseconds")

"""The folder of one run, as its process writes it; `runlog` lists the files."""

import json
import math
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from filelock import FileLock, Timeout
from omegaconf import DictConfig, OmegaConf

import runlog
from experiments.config import flat
from experiments.run.environment import describe_environment

ELSEWHERE = (
    *("runs", "cluster", "retry", "dry_run", "timeline", "grid"),
    *("seeds", "batches", "small_batch", "large_batch", "flush_count", "async_batch"),
    *("counts", "sizes", "splits", "count", "size", "devices"),
)
"""Keys that do not change a run's numbers: where it runs, beside which others, what it saves."""
RESULTS = ("completed", "diverged", "failed", "out-of-memory")
"""States of a run that has ended."""
_NOT_SET = "not set"


class InUse(ValueError):
    """Another process holds the run."""


class RunFolder:
    """The run of `config` in the folder `path`; one process at a time may hold it (`claimed`)."""

    def __init__(self, path: Path, config: DictConfig):
        self.path = path
        self.config = config
        self.checkpoints = path / runlog.CHECKPOINTS
        self.orders = path / runlog.ORDERS
        self.timeline = path / runlog.TIMELINE
        self.model = path / runlog.MODEL

    @contextmanager
    def claimed(self) -> Iterator[None]:
        """Hold the folder inside the block; make it if need be. Raises ValueError if it has the run
        of another configuration, and `InUse` if another process holds it."""
        self.check_config()
        self.path.mkdir(parents=True, exist_ok=True)
        try:
            with FileLock(self.path / runlog.LOCK, timeout=1):  # `held` looks for a moment
                self.plan()
                yield
        except Timeout:
            raise InUse(f"{self.path} is held by another process that runs it") from None

    @property
    def finished(self) -> bool:
        """Whether a sweep leaves the run alone: it has ended or, with `retry`, is completed."""
        return self.status().get("state") in (RESULTS if not self.config.retry else ["completed"])

    @property
    def held(self) -> bool:
        """Whether a process holds the run, as far as file locks show it on this machine."""
        lock = self.path / runlog.LOCK
        if not lock.exists():
            return False
        try:
            with FileLock(lock, timeout=0):
                return False
        except Timeout:
            return True

    def plan(self) -> None:
        """Write config.yaml, unless a run has started. A reader of the folder then knows the run
        before it starts, and also if it never does."""
        if not self._holds_a_run():
            self.path.mkdir(parents=True, exist_ok=True)
            runlog.write(self.path / runlog.CONFIG, OmegaConf.to_yaml(_own(self.config)))

    def check_config(self) -> None:
        """Raise ValueError if the folder holds the run of another configuration, or cannot be
        made."""
        nearest = next(path for path in (self.path, *self.path.absolute().parents) if path.exists())
        if not nearest.is_dir():
            raise ValueError(
                f"{nearest} is a file, where the folder of a run should be: choose another folder "
                "with runs=..."
            )
        file = self.path / runlog.CONFIG
        if not self._holds_a_run():
            return
        try:
            there = flat(cast(DictConfig, OmegaConf.load(file)))
            here = flat(_own(self.config))
        except Exception as error:
            raise ValueError(
                f"{file} cannot be read ({type(error).__name__}): remove the folder "
                "or choose another with runs=..."
            ) from error
        differing = [
            key
            for key in {*there, *here} - {"data.folder"}  # data may be moved
            if there.get(key, _NOT_SET) != here.get(key, _NOT_SET)
        ]
        if differing:
            # A group's name, or what is in none, says more than what follows from it.
            key = min(differing, key=lambda key: ("." in key and not key.endswith(".name"), key))
            more = f", and {len(differing) - 1} more" if len(differing) > 1 else ""
            raise ValueError(
                f"{self.path} holds the run of another configuration ({key} is "
                f"{there.get(key, _NOT_SET)!r} there, {here.get(key, _NOT_SET)!r} here{more}): "
                "choose another folder with runs=..."
            )

    def _holds_a_run(self) -> bool:
        """Return whether the folder has a configuration and anything besides; a lone configuration
        is a plan, which may still change."""
        files = {file.name for file in self.path.glob("[!.]*")}
        return runlog.CONFIG in files and len(files) > 1

    def describe(self) -> None:
        """Add this start to environment.json: machine, versions, commit, and the time. An earlier
        start whose process was killed ended with its last report."""
        starts = self._starts()
        if starts and "ended" not in starts[-1]:
            report = self.path / runlog.STATUS
            known = datetime.fromtimestamp(report.stat().st_mtime, UTC) if report.exists() else None
            starts[-1] |= _end(starts[-1], known)
        start = runlog.Start(
            from_update=self.checkpointed_update,
            **describe_environment(),
            started=_text(datetime.now(UTC)),
        )
        runlog.write_json(self.path / runlog.ENVIRONMENT, [*starts, runlog.as_json(start)])

    def describe_end(self) -> None:
        """Add to the last start when it ended, and how long it took."""
        *earlier, last = self._starts()
        last |= _end(last, datetime.now(UTC))
        runlog.write_json(self.path / runlog.ENVIRONMENT, [*earlier, last])

    def _wall_time(self, running: bool) -> dict[str, Any]:
        """Return the fields of a status, reported now, that tell of wall time."""
        starts = self._starts()
        if not starts:
            return {}
        if "ended" not in starts[-1]:
            starts[-1] |= _end(starts[-1], datetime.now(UTC))
        return {
            "started": starts[0].get("started"),
            "ended": None if running else starts[-1]["ended"],
            "wall_seconds": sum(start.get("wall_seconds", 0.0) for start in starts),
        }

    def begun_with_commit(self) -> str:
        """Return the commit of the code with which the run began, as environment.json has it."""
        commits = [start.get("commit") for start in self._starts() if not start.get("from_update")]
        return (commits or [None])[-1] or "unknown"

    def _starts(self) -> list[dict]:
        try:
            return runlog.read_json(self.path / runlog.ENVIRONMENT, list) or []
        except runlog.Damaged:
            return []

    def begin(self, identity: runlog.Identity) -> None:
        """Record what the run's numbers depend on beside its configuration."""
        runlog.write_json(self.path / runlog.IDENTITY, runlog.as_json(identity))

    def identity(self) -> runlog.Identity | None:
        """Return what `begin` recorded; None if nothing. Raises ValueError if it is damaged."""
        file = self.path / runlog.IDENTITY
        try:
            content = runlog.read_json(file)
            return None if content is None else runlog.Identity(**content)
        except (runlog.Damaged, TypeError) as error:
            raise ValueError(
                f"{file} is damaged ({error}): remove the folder, or choose another with runs=..."
            ) from None

    def cost(self) -> dict | None:
        """Return the run's cost.json; None if it has none. Raises ValueError if it is damaged."""
        return runlog.read_json(self.path / runlog.COST)

    def status(self) -> dict:
        """Return the last status that was reported; {} if there is none that can be read."""
        try:
            return runlog.read_json(self.path / runlog.STATUS) or {}
        except (OSError, runlog.Damaged):
            return {}

    def report(
        self, state: runlog.State, update: int, updates: int, why: str | None = None
    ) -> None:
        """Report the state of the run: `update` of `updates` are done."""
        wall_time = self._wall_time(running=state == "running")
        status = runlog.Status(state, why, update, updates, **wall_time)
        runlog.write_json(self.path / runlog.STATUS, runlog.as_json(status), indent=None)

    @property
    def checkpointed_update(self) -> int:
        """The updates in the newest checkpoint."""
        from paci import checkpoint  # not above: it loads torch, which few who look here need

        return checkpoint.taken_at(self.checkpoints) // self.config.method.accumulation

    def interrupted(self) -> str:
        """Say why a run was preempted, and where it will go on."""
        return f"interrupted: goes on from update {self.checkpointed_update}"

    def log(self, file: str, records: Iterable[Any]) -> None:
        """Append a line for each of `records` to a log of the folder."""
        runlog.append(self.path / file, records)

    def lines(self, file: str) -> list[dict]:
        """Return the readable lines of a log of the folder."""
        return runlog.read_lines(self.path / file)[0]

    def rewind(self, update: int) -> None:
        """Remove all records after `update`, from which the run goes on, and all repetitions, which
        always begin anew. Warn if earlier updates are missing from the log (the disk was full, or
        the file was edited); the weights contain them all the same."""
        for name in (runlog.METRICS, runlog.STAGES, runlog.THROUGHPUT):
            file = self.path / name
            if file.exists():  # the line of a repetition has no update
                earlier = [row for row in self.lines(name) if row.get("update", math.inf) <= update]
                runlog.write(file, "".join(json.dumps(row) + "\n" for row in earlier))
        for file in (*self.orders.glob("*.csv"), *self.timeline.glob("*.parquet")):
            if int(file.stem) > update:
                file.unlink()
        self._warn_of_holes(update)

    def _warn_of_holes(self, update: int) -> None:
        file = self.path / runlog.METRICS
        logged = {line.get("update") for line in self.lines(runlog.METRICS) if "loss" in line}
        missing = [number for number in range(1, update + 1) if number not in logged]
        if missing:
            warnings.warn(
                f"{file} has no line of {len(missing)} of the {update} updates done (of update "
                f"{missing[0]}{' and later ones' if missing[1:] else ''}): the run goes on without",
                stacklevel=3,
            )


def _own(config: DictConfig) -> DictConfig:
    return OmegaConf.create({key: value for key, value in config.items() if key not in ELSEWHERE})


def _end(start: dict, ended: datetime | None) -> dict[str, Any]:
    """Return the fields of a start that `ended` then; at once, if nothing is known of it."""
    started = datetime.fromisoformat(start["started"]) if "started" in start else ended
    if started is None:
        return {}
    ended = max(started, ended or started)
    return {"ended": _text(ended), "wall_seconds": (ended - started).total_seconds()}


def _text(time: datetime) -> str:
    return time.isoformat(timespec="milliseconds")

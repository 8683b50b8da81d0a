"""The folder of one run, as its process writes it; `runlog` lists the files."""

import json
import math
import os
import shutil
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from omegaconf import DictConfig, OmegaConf

import runlog
from experiments.config.derived import updates
from experiments.config.own import own
from experiments.run.longer import going_on_from, why_not
from experiments.run.recorded import differing, other_run, shorter_of
from experiments.run.starts import Starts

RESULTS = ("completed", "diverged", "failed", "out-of-memory")
"""States of a run that has ended."""


class InUse(ValueError):
    """Another process holds the run."""


class RunFolder:
    """The run of `config` in the folder `path`; one process at a time may hold it (`claimed`)."""

    def __init__(self, path: Path, config: DictConfig):
        self.path = path
        self.config = config
        self.checkpoints = path / runlog.CHECKPOINTS
        self.orders = path / runlog.ORDERS
        self.stable = path / runlog.STABLE
        self.timeline = path / runlog.TIMELINE
        self.model = path / runlog.MODEL
        self.starts = Starts(path)

    @contextmanager
    def claimed(self) -> Iterator[None]:
        """Hold the folder inside the block; make it if need be. Raises ValueError if it has the run
        of another configuration, and `InUse` if another process holds it."""
        self.check_config()
        self.path.mkdir(parents=True, exist_ok=True)
        try:
            with FileLock(self.path / runlog.LOCK, timeout=1):  # `held` looks for a moment
                self.plan()
                if shorter := self.shorter():
                    self.lengthen(shorter)
                yield
        except Timeout:
            raise InUse(f"{self.path} is held by another process that runs it") from None

    @property
    def completed(self) -> bool:
        """Whether the run has been trained to the end that its configuration asks for."""
        return self.status().get("state") == "completed" and self.shorter() is None

    @property
    def finished(self) -> bool:
        """Whether a sweep leaves the run alone: it has ended or, with `retry`, is completed."""
        if self.config.retry:
            return self.completed
        return self.status().get("state") in RESULTS and self.shorter() is None

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
            runlog.write(self.path / runlog.CONFIG, OmegaConf.to_yaml(own(self.config)))

    def check_config(self) -> None:
        """Raise ValueError if the folder holds the run of another configuration, or cannot be
        made."""
        nearest = next(path for path in (self.path, *self.path.absolute().parents) if path.exists())
        if not nearest.is_dir():
            raise ValueError(
                f"{nearest} is a file, where the folder of a run should be: choose another folder "
                "with runs=..."
            )
        differing = self._differing()
        if shorter := shorter_of(differing, self.config):
            taken = self.checkpointed_updates()
            if going_on_from(shorter, self.config, taken) is None:
                raise ValueError(why_not(shorter, self.config, taken, self.path))
        elif differing:
            raise ValueError(other_run(self.path, differing))

    def shorter(self) -> DictConfig | None:
        """Return the configuration of the run in the folder if it is this one with fewer tokens, so
        that the run is to be made longer; otherwise None."""
        if self.config.get("task") != "training":
            return None  # a sweep asks often
        return shorter_of(self._differing(), self.config)

    def _differing(self) -> dict[str, tuple[Any, Any]]:
        """Return `recorded.differing`; {} if there is no run."""
        holds_a_run = self._holds_a_run()
        return differing(self.path / runlog.CONFIG, self.config) if holds_a_run else {}

    def lengthen(self, shorter: DictConfig) -> None:
        """Let the run of the configuration `shorter` go on as that of this one, from the last
        checkpoint that both have."""
        update = going_on_from(shorter, self.config, self.checkpointed_updates())
        assert update is not None  # by `check_config`
        if update < self.checkpointed_update:
            self._return_to(update)
        why = f"made longer: goes on from update {update}"
        self.report("preempted", update, updates(self.config), why)
        runlog.write(self.path / runlog.CONFIG, OmegaConf.to_yaml(own(self.config)))

    def _return_to(self, update: int) -> None:
        """Make the checkpoint of `update` the newest. What came later, the fall of the rate, is
        kept in a folder of its own: the logs, and the model if it was saved."""
        kept = self.path / runlog.DECAYED / f"{self.checkpointed_update:09d}"
        kept.mkdir(parents=True, exist_ok=True)
        for file in (runlog.METRICS, runlog.STAGES):
            shutil.copy(self.path / file, kept)
        if self.model.exists():
            shutil.copytree(self.model, kept / runlog.MODEL, dirs_exist_ok=True)
        name = f"{update * self.config.method.accumulation:09d}"
        if not (self.checkpoints / name).exists():
            draft = self.checkpoints / f".{name}.draft"
            shutil.copytree(self.stable / name, draft, dirs_exist_ok=True)
            draft.rename(self.checkpoints / name)
        for checkpoint in self.checkpoints.glob("[0-9]*"):
            if checkpoint.name > name:
                shutil.rmtree(checkpoint)

    def checkpointed_updates(self) -> list[int]:
        """Return the updates at which there are checkpoints."""
        taken = [*self.checkpoints.glob("[0-9]*"), *self.stable.glob("[0-9]*")]
        return [int(path.name) // self.config.method.accumulation for path in taken]

    def _holds_a_run(self) -> bool:
        """Return whether the folder has a configuration and anything besides; a lone configuration
        is a plan, which may still change."""
        files = {file.name for file in self.path.glob("[!.]*")}
        return runlog.CONFIG in files and len(files) > 1

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
        wall_time = self.starts.wall_time(running=state == "running")
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


def run_folders(root: Path) -> Iterator[Path]:
    """Yield the run folders at or below `root`, in the order of their paths."""
    for path, below, files in os.walk(root):
        if runlog.CONFIG in files:
            below.clear()  # checkpoints and the like
            yield Path(path)
        below[:] = sorted(name for name in below if not name.startswith("."))

"""The work of a run with its pipeline, on any executor."""

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

import runlog
from experiments.run.pipelines import build_pipeline, clock_of
from experiments.run.run import Run
from experiments.run.weights import load_weights
from paci.segment import DeviceMemory, Segment


class Task(ABC):
    """The work of `run` in this process. In a distributed run, every rank makes the same calls.

    Only the rank that knows the losses and the times (where `pipeline.reports`) writes into the run
    folder; on any other rank, `log`, `rewind`, `begin` and `report` do nothing.
    """

    def __init__(self, run: Run):
        self.run, self.config, self.folder = run, run.config, run.folder
        self.pipeline = build_pipeline(run)
        self.clock = clock_of(run.config)

    @abstractmethod
    def train(self) -> None:
        """Train to the end of the run, or until it is interrupted."""

    @property
    def done(self) -> int:
        """Updates done."""
        return self.pipeline.microbatch // self.config.method.accumulation

    def seconds(self, time: float) -> float | None:
        """Return a time on the run's clock; None if the clock counts units."""
        return None if self.clock == runlog.UNITS else time

    def units(self, time: float) -> float | None:
        """Return a time on the run's clock; None if the clock counts seconds."""
        return time if self.clock == runlog.UNITS else None

    def begin(self) -> None:
        """Begin a run: load the weights of the run that it starts from, if there is one, empty the
        logs, and record the identity."""
        if self.config.weights_from:
            load_weights(self.pipeline.stages, self.config)
        if self.pipeline.reports:
            self.folder.rewind(-1)
            self.folder.begin(self.run.identity())

    def log(self, file: str, records: Iterable[Any]) -> None:
        if self.pipeline.reports:
            self.folder.log(file, records)

    def rewind(self, update: int) -> None:
        if self.pipeline.reports:
            self.folder.rewind(update)

    def report(
        self, state: runlog.State, why: str | None = None, updates: int | None = None
    ) -> None:
        """Report the state of the run. `updates` is their total, if it is only known by now."""
        if self.pipeline.reports:
            self.folder.report(state, self.done, updates or self.run.updates, why)

    def stage_lines(self, segment: Segment) -> list[runlog.StageLine]:
        """Return the records of the stages for a segment that ended after update `done`."""
        busy: dict[int, float] = defaultdict(float)
        for row in segment.timeline.rows:
            busy[row.stage] += row.end - row.start
        rank_of = {row.stage: row.rank for row in segment.timeline.rows}
        lines = []
        for stage in segment.stages:
            rank = rank_of[stage.index]
            of_rank = segment.ranks[rank] if segment.ranks else None
            idle = segment.seconds - segment.timeline.busy[rank]
            line = runlog.StageLine(
                update=self.done,
                stage=stage.index,
                rank=rank,
                drift=stage.drift,
                staleness=stage.staleness,
                movement=[runlog.MovementSample(**asdict(sample)) for sample in stage.movements],
                peak_in_flight=stage.peak_in_flight,
                parameter_bytes=stage.parameter_bytes,
                gradient_bytes=stage.peak_held.gradients,
                optimizer_bytes=stage.peak_held.optimizer,
                activation_bytes=stage.peak_held.activations,
                version_bytes=stage.peak_held.copies,
                copied=stage.copied,
                skipped=[runlog.Skipped(update, why) for update, why in stage.skipped],
                busy_seconds=self.seconds(busy[stage.index]),
                idle_seconds=self.seconds(idle),
                clock=self.clock,
                busy_units=self.units(busy[stage.index]),
                idle_units=self.units(idle),
                waiting_seconds=of_rank.waiting if of_rank else None,
                **(device_bytes(of_rank.memory) if of_rank and of_rank.memory else {}),
            )
            lines.append(line)
        return lines


def device_bytes(memory: DeviceMemory) -> dict[str, int]:
    """Return the fields of a stage's line that tell of the CUDA device of its rank."""
    return {
        "allocated_bytes": memory.allocated,
        "reserved_bytes": memory.reserved,
        "device_used_bytes": memory.used,
    }

"""What a run does with its pipeline, whichever it is."""

from abc import ABC, abstractmethod

from experiments.run.pipelines import build_pipeline, clock_of
from experiments.run.run import Run


class Task(ABC):
    """`run`, in this process; where there are several, each is one rank and calls the same.

    The rank that knows the losses and the times (the pipeline `reports` there) writes what the run
    folder says of the run; at any other, `log`, `rewind` and `report` do nothing.
    """

    def __init__(self, run: Run):
        self.run, self.config, self.folder = run, run.config, run.folder
        self.pipeline = build_pipeline(run)
        self.clock = clock_of(run.config)

    @abstractmethod
    def train(self) -> None:
        """To the end of the run, or until it is interrupted."""

    @property
    def done(self) -> int:
        """Updates."""
        return self.pipeline.microbatch // self.config.method.accumulation

    def log(self, file: str, lines: list[dict]) -> None:
        if self.pipeline.reports:
            self.folder.log(file, lines)

    def rewind(self, update: int) -> None:
        if self.pipeline.reports:
            self.folder.rewind(update)

    def report(self, state: str, why: str | None = None, updates: int | None = None) -> None:
        """Of so many `updates`, if it is known better now than before the run."""
        if self.pipeline.reports:
            self.folder.report(state, self.done, updates or self.run.updates, why)

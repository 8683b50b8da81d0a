"""The training loop of a run, in segments that end with an evaluation and a checkpoint.

update   0 ──────────── 58 ──────────── 117 ── ...
         evaluate       drain, evaluate, checkpoint
"""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from experiments import models
from experiments.config.derived import stable_end
from experiments.run.task import Task
from experiments.terminal.progress import Progress
from paci import write_orders
from paci.segment import Segment, Update
from runlog import METRICS, STAGES, EvaluationLine, UpdateLine, write


class Training(Task):
    """Training on a budget of tokens, to see how well the model learns."""

    def train(self) -> None:
        """Train from the newest checkpoint to the end of the run or, if interrupted, to the end of
        the current window."""
        if not self.pipeline.load(self.folder.checkpoints):
            self.begin()
            self.evaluate()
        self.rewind(self.done)
        with self.progress() as on_update:
            for end in self.run.segment_ends:
                if end <= self.done:
                    continue
                count = (end - self.done) * self.config.method.accumulation
                first, start = self.pipeline.microbatch, self.pipeline.seconds
                segment = self.pipeline.train(self.run.batches(first, count), on_update)
                whole = self.done == end
                if whole or self.may_drain_anywhere:
                    self.log_segment(segment, first, start)
                    if whole:
                        self.evaluate()
                    if self.done == stable_end(self.config):
                        self.pipeline.save(self.folder.stable, keep=1)
                    self.pipeline.save(self.folder.checkpoints)
                if self.pipeline.interrupted and self.done < self.run.updates:
                    return self.report("preempted", self.folder.interrupted())
        self.save_model()
        self.report("completed")

    @property
    def may_drain_anywhere(self) -> bool:
        """Whether a checkpoint may be taken after any window, and not only at the end of a segment,
        where an undisturbed run drains, too. It may if the schedule drains after every window, or
        if the run is not repeatable bit by bit. Any other run, when interrupted, goes back to the
        end of its last segment."""
        return self.pipeline.schedule.flushes or self.config.executor.get("order") == "dynamic"

    def evaluate(self) -> None:
        loss = self.pipeline.evaluate(self.run.validation)
        line = EvaluationLine(
            update=self.done,
            tokens=self.run.tokens(self.done),
            validation_loss=loss,
            perplexity=math.exp(loss) if loss < 700 else math.inf,  # beyond it exp overflows
            seconds=self.seconds(self.pipeline.seconds),
            clock=self.clock,
            units=self.units(self.pipeline.seconds),
        )
        self.log(METRICS, [line])

    @contextmanager
    def progress(self) -> Iterator[Callable[[Update], None] | None]:
        """Give a callback for each update that logs it, reports the status and moves a progress
        bar; None on a rank that does not report."""
        if not self.pipeline.reports:
            yield None
            return
        self.report("running")
        newest, reported = self.done, time.monotonic()

        def on_update(update: Update) -> None:
            nonlocal newest, reported
            newest = update.number
            self.log(METRICS, [self.update_line(update)])
            if time.monotonic() - reported > 1:
                self.folder.report("running", newest, self.run.updates)
                reported = time.monotonic()
            bar.set_postfix_str(f"loss {update.loss:.3f}", refresh=False)
            bar.update()

        with Progress(
            total=self.run.updates,
            initial=self.done,
            desc=self.folder.path.name,
            unit="update",
        ) as bar:
            try:
                yield on_update
            except BaseException:  # the final report takes the update from here
                self.folder.report("running", newest, self.run.updates)
                raise

    def update_line(self, update: Update) -> UpdateLine:
        return UpdateLine(
            update=update.number,
            tokens=self.run.tokens(update.number),
            loss=update.loss,
            lr=update.learning_rate,
            seconds=self.seconds(update.seconds),
            clock=self.clock,
            units=self.units(update.seconds),
        )

    def log_segment(self, segment: Segment | None, first: int, start: float) -> None:
        """Log the statistics of each stage and the order of each rank's actions; the segment began
        with micro-batch `first`, at time `start` of the run's clock."""
        if segment is None:
            return
        self.log(STAGES, self.stage_lines(segment))
        file = self.folder.orders / f"{self.done:09d}.csv"
        write(file, write_orders(segment.timeline.orders()))
        if self.config.timeline:
            from experiments.run.timelines import save_timeline  # not above: it loads pandas

            file = self.folder.timeline / f"{self.done:09d}.parquet"
            save_timeline(segment.timeline, file, first, start)

    def save_model(self) -> None:
        """Save the model for transformers to read, each stage by the rank that has it."""
        vocabulary = self.run.corpus.vocabulary
        for stage in self.pipeline.stages:
            models.save_stage(stage.module, stage.index, self.config.stages, self.folder.model)
        if self.pipeline.reports:
            models.save_index(self.config.model, vocabulary, self.run.cut, self.folder.model)

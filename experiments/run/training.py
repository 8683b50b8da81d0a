"""The training loop of a run: segments, each ended by an evaluation and a checkpoint.

update   0 ──────────── 58 ──────────── 117 ── ...
         evaluate       drain, evaluate, checkpoint
"""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from experiments import models
from experiments.run.cut import cut_for
from experiments.run.folder import replace
from experiments.run.stage_lines import stage_lines
from experiments.run.task import Task
from experiments.terminal.progress import Progress
from paci import write_orders
from paci.segment import Segment, Update


class Diverged(Exception):
    """The training loss is no longer a number."""


class Training(Task):
    """So many tokens, to see how well the model learns."""

    def train(self) -> None:
        """To the end of the run, from its newest checkpoint; or, if interrupted, to the end of
        the window in training."""
        if not self.pipeline.load(self.folder.checkpoints):
            self.rewind(-1)
            self.evaluate()
        self.rewind(self.done)
        with self.progress() as on_update:
            for end in self.run.segment_ends:
                if end <= self.done:
                    continue
                count = (end - self.done) * self.config.method.accumulation
                first, seconds = self.pipeline.microbatch, self.pipeline.seconds
                segment = self.pipeline.train(self.run.batches(first, count), on_update)
                whole = self.done == end
                if whole or self.may_drain_anywhere:
                    self.log_segment(segment, first, seconds)
                    if whole:
                        self.evaluate()
                    self.pipeline.save(self.folder.checkpoints)
                if self.pipeline.interrupted and self.done < self.run.updates:
                    return self.report("preempted", self.folder.interrupted())
        self.save_model()
        self.report("completed")

    @property
    def may_drain_anywhere(self) -> bool:
        """Whether a checkpoint may be taken after any window, and not only where the undisturbed
        run drains too: if the run drains there anyway, or does not repeat to the last bit. Any
        other goes back to the end of its last segment, as it does after a crash."""
        return self.pipeline.schedule.flushes or self.config.executor.get("order") == "dynamic"

    def evaluate(self) -> None:
        loss = self.pipeline.evaluate(self.run.validation)
        line = {
            "update": self.done,
            "tokens": self.run.tokens(self.done),
            "validation_loss": loss,
            "perplexity": math.exp(loss) if loss < 700 else math.inf,  # beyond it exp overflows
            "seconds": self.pipeline.seconds,
            "clock": self.clock,
        }
        self.log("metrics.jsonl", [line])

    @contextmanager
    def progress(self) -> Iterator[Callable[[Update], None] | None]:
        """Gives what logs each update, keeps the status fresh, and shows how far it is;
        None where nothing is reported."""
        if not self.pipeline.reports:
            yield None
            return
        self.report("running")
        newest, reported = self.done, time.monotonic()

        def on_update(update: Update) -> None:
            nonlocal newest, reported
            newest = update.number
            self.log("metrics.jsonl", [self.update_line(update)])
            if not math.isfinite(update.loss):
                raise Diverged(f"the loss of update {newest} is {update.loss}")
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
            except BaseException:  # who says how the run ended takes the update from here
                self.folder.report("running", newest, self.run.updates)
                raise

    def update_line(self, update: Update) -> dict:
        return {
            "update": update.number,
            "tokens": self.run.tokens(update.number),
            "loss": update.loss,
            "lr": update.learning_rate,
            "seconds": update.seconds,
            "clock": self.clock,
        }

    def log_segment(self, segment: Segment | None, first: int, seconds: float) -> None:
        """What each stage's books say of the segment, a line a stage, and what every rank did;
        it began with micro-batch `first`, after so many `seconds` of training."""
        if segment is None:
            return
        self.log("stages.jsonl", stage_lines(self.run, segment, self.done, self.clock))
        self.folder.orders.mkdir(exist_ok=True)
        file = self.folder.orders / f"{self.done:09d}.csv"
        replace(file, write_orders(segment.timeline.orders()))
        if self.config.timeline:
            from experiments import timeline  # not above: it loads pandas

            file = self.folder.timeline / f"{self.done:09d}.parquet"
            timeline.keep(segment.timeline, file, first, seconds)

    def save_model(self) -> None:
        """The trained model, each stage by the rank that has it, for transformers to read."""
        vocabulary = self.run.corpus.vocabulary
        for stage in self.pipeline.stages:
            models.save_stage(stage.module, stage.index, self.config.stages, self.folder.model)
        if self.pipeline.reports:
            cut = cut_for(self.config, vocabulary)
            models.save_index(self.config.model, vocabulary, cut, self.folder.model)

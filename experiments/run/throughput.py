"""Throughput and memory of a run: the same segment, repeated until the rate is known.

    update at the last stage    1    2    3    4    5
    repetition               fill ──┼────┼────┼────┼── drain
                                    └── counted ───┘

A repetition is a segment of its own. The counted part lies between two updates of the last stage:
the first by which as many micro-batches are through as there are stages, and the last. It leaves
out the filling and the draining of the pipeline; a flush schedule drains at every update, so its
bubble counts.
"""

import math
import statistics
import time
from itertools import count

from experiments.config.derived import full_after, repeats_exactly, windows
from experiments.run.run import Run
from experiments.run.task import Task
from experiments.terminal.progress import Progress
from paci.segment import Segment
from paci.simulation.timeline import Timeline
from runlog import STAGES, THROUGHPUT, RepetitionLine, State

LEAST = 3
"""Repetitions before their spread is believed."""


class Throughput(Task):
    """Repetitions of one segment. The rank that knows the times decides for all ranks when to
    stop."""

    def __init__(self, run: Run):
        super().__init__(run)
        self.rates: list[float] = []  # tokens/s of each repetition
        self.started = time.monotonic()

    def train(self) -> None:
        """Warm up, then repeat until the relative standard error of tokens/s is small enough or
        time is up. If all repetitions are alike, run one. An interrupted run starts again."""
        self.begin()
        a, exact = self.config.method.accumulation, repeats_exactly(self.config)
        silent = not self.pipeline.reports
        with Progress(desc=self.folder.path.name, unit="repetition", disable=silent) as bar:
            for repetition in count(1 if exact else 0):
                updates = windows(self.config) if repetition else full_after(self.config)
                batches = self.run.batches(self.pipeline.microbatch, updates * a)
                if repetition == 1:
                    self.started = time.monotonic()
                segment = self.pipeline.train(batches)
                if segment and repetition and not segment.interrupted:
                    self.log_repetition(repetition, segment)
                    bar.set_postfix_str(f"{self.rates[-1]:.4g} tokens/s", refresh=False)
                bar.update()
                state, why = next(filter(None, self.pipeline.gather(self.outcome())))
                # How many updates there will be is known at the end.
                over = state == "completed"
                self.report(state, why, self.done if over else max(self.done, self.run.updates))
                if state != "running":
                    return

    def log_repetition(self, repetition: int, segment: Segment) -> None:
        """Log a repetition: its tokens and seconds, and the statistics of the stages."""
        updates, seconds = steady(segment.timeline, self.config.stages, full_after(self.config))
        tokens = self.run.tokens(updates)
        self.rates.append(tokens / seconds)
        line = RepetitionLine(repetition, tokens, seconds, updates, self.clock)
        self.log(THROUGHPUT, [line])
        self.log(STAGES, self.stage_lines(segment))

    def outcome(self) -> tuple[State, str | None] | None:
        """Return the state of the run and why; None on a rank that does not know it."""
        if not self.pipeline.reports:
            return None
        if self.pipeline.interrupted:
            return "preempted", self.folder.interrupted()
        if self.rates and repeats_exactly(self.config):
            return "completed", None
        settings, error = self.config.throughput, relative_standard_error(self.rates)
        if error <= settings.error:
            return "completed", None
        if self.rates and time.monotonic() - self.started > settings.most_seconds:
            why = f"time was up after {len(self.rates)} repetition(s)"
            return "completed", why + (f", error {error:.1%}" if error < math.inf else "")
        return "running", None


def steady(timeline: Timeline, stages: int, full: int) -> tuple[int, float]:
    """Return the updates after the `full`-th at the last stage, and the time that they took."""
    ends = sorted(
        row.end for row in timeline.rows if row.stage == stages - 1 and timeline.updates(row)
    )
    return len(ends) - full, ends[-1] - ends[full - 1]


def relative_standard_error(rates: list[float]) -> float:
    """Return the standard error of the mean over the mean; infinite for fewer than `LEAST`."""
    if len(rates) < LEAST:
        return math.inf
    return statistics.stdev(rates) / math.sqrt(len(rates)) / statistics.mean(rates)

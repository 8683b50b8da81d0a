"""The exact optimisation dynamics of an N-stage pipeline, in one process."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

import torch
from torch import nn

from paci import checkpoint
from paci.actions import ENDS_BACKWARD
from paci.checks import positive
from paci.cost import Cost, Durations
from paci.pipeline import SegmentGuard, check_sizes
from paci.schedules import Schedule, build
from paci.segment import Segment, StageStatistics, Update
from paci.simulation.event_loop import Step, StepFields, run_schedule, whole_windows
from paci.simulation.timeline import Timeline
from paci.stage.checks import check_no_shared_parameters
from paci.stage.compute import Compute
from paci.stage.learning_rate import LearningRate
from paci.stage.perform import Mailbox, perform
from paci.stage.safeguards import Safeguards, check_schedule, global_norm
from paci.stage.stage import Batch, Loss, MakeOptimizer, Stage
from paci.stage.weights import MakePolicy

T = TypeVar("T")


class LocalPipeline:
    """Train `stages` (modules, in order) as a pipeline whose stages take turns in this process.

    The order of the actions, and so the weights that each of them sees, is that of `paci.simulate`
    for the same schedule and cost; the losses and weights are those of the real pipeline.

    cost   times on the simulated clock; default `Cost()`

    `paci.pipeline.Pipeline` describes the other arguments and the methods.
    """

    def __init__(
        self,
        stages: Sequence[nn.Module],
        schedule: str | Schedule = "paci",
        accumulation: int | None = None,
        slack: int = 0,
        weights: str | MakePolicy = "live",
        *,
        optimizer: MakeOptimizer,
        loss_fn: Loss,
        lr_lambda: LearningRate | Sequence[LearningRate] | None = None,
        cost: Cost | None = None,
        seed: int = 0,
        measure_every: int = 0,
        batch: int | None = None,
        compute: Compute | None = None,
        safeguards: Safeguards | None = None,
    ):
        self.schedule = build(schedule, len(stages), accumulation, slack)
        self.accumulation = self.schedule.accumulation
        check_no_shared_parameters(dict(enumerate(stages)))
        safeguards = safeguards or Safeguards()
        check_schedule(safeguards, self.schedule)
        self.cost = cost or Cost()
        self.seed = seed
        self.stages = [
            Stage(
                index, len(stages), module, self.accumulation, optimizer, lr_lambda=lr_lambda,
                loss_fn=loss_fn, weights=weights, seed=seed, measure_every=measure_every,
                batch=batch, in_flight=self.schedule.in_flight_limit(index), compute=compute,
                safeguards=safeguards,
            )
            for index, module in enumerate(stages)
        ]  # fmt: skip
        self.microbatch = 0
        self.seconds = 0.0
        self._tried: set[tuple[torch.Size, torch.Size]] = set()  # shapes known to fit
        self._guard = SegmentGuard()
        Durations(self.cost, len(stages), 0)  # refuses a cost table that does not fit

    def train(
        self, batches: Iterable[Batch], on_update: Callable[[Update], None] | None = None
    ) -> Segment:
        """Fill the pipeline, train on `batches` of (input, target), drain it.

        `on_update` is called as soon as all stages have made an update. Raises ValueError before
        any work unless `batches` are whole windows of micro-batches that fit the stages, and
        RuntimeError if an earlier segment was cut short.
        """
        self._guard.check_drained("train")
        batches = batches if isinstance(batches, Sequence) else list(batches)
        whole_windows(len(batches), self.accumulation)
        check_sizes(self.stages, batches)
        self._try_shapes(batches)
        for stage in self.stages:
            stage.begin_segment()

        a, N, first = self.accumulation, len(self.stages), self.microbatch
        durations = Durations(self.cost, N, len(batches), self.seed, first)
        mail = Mailbox()
        losses: list[torch.Tensor] = []
        steps: list[Step] = []
        closed: defaultdict[int, list[tuple[float, float]]] = defaultdict(list)

        def batch_of(microbatch: int) -> Batch:
            return batches[microbatch - first]

        with self._guard.segment(self.stages):
            for step in self._steps(len(batches), durations):
                _, index, kind, microbatch, _, end, version = step
                stage = self.stages[index]
                rate = stage.learning_rate
                loss = perform(stage, kind, first + microbatch, batch_of, mail.take, mail.put)
                if loss is not None:
                    losses.append(loss)
                steps.append(Step._make(step))
                if kind not in ENDS_BACKWARD or (microbatch + 1) % a:
                    continue
                closed[version].append((end, rate))
                if len(closed[version]) < N:
                    continue
                if stage.waits_for_update:
                    self._update_together()
                if on_update:
                    ends, rates = zip(*closed.pop(version), strict=True)
                    window = losses[version * a : (version + 1) * a]
                    mean = self.stages[-1].window_loss(window)
                    number, seconds = stage.versions.version, self.seconds + max(ends)
                    on_update(Update(number, mean, max(rates), seconds))

        timeline = Timeline(steps, len(self.schedule.placement), a)
        self.microbatch += len(batches)
        self.seconds += timeline.makespan
        statistics = [StageStatistics.of(stage) for stage in self.stages]
        return Segment(torch.stack(losses).tolist(), statistics, timeline)

    def evaluate(self, batches: Iterable[Batch]) -> float:
        """Return the mean loss over `batches` in evaluation mode, and leave no trace.

        Raises ValueError if there are none, and RuntimeError if an earlier segment was cut short.
        """
        self._guard.check_whole("evaluate")
        batches = batches if isinstance(batches, Sequence) else list(batches)
        positive("micro-batches to evaluate", len(batches))
        losses = [self._evaluate(*batch) for batch in batches]
        return torch.stack(losses).mean().item()

    @property
    def reports(self) -> bool:
        """True: the only process knows the losses."""
        return True

    @property
    def interrupted(self) -> bool:
        """False: an exception ends one process, and nothing asks a segment to end early."""
        return False

    def gather(self, value: T) -> list[T]:
        """Return the `value` of every process: there is one."""
        return [value]

    def save(self, folder: str | Path, keep: int = 2) -> None:
        """Write a checkpoint below `folder`; see `paci.checkpoint`.

        Raises RuntimeError inside a segment and after one that was cut short.
        """
        self._guard.check_drained("save")
        state = {"microbatch": self.microbatch, "seconds": self.seconds}
        checkpoint.save(Path(folder), self.stages, state, keep)

    def load(self, folder: str | Path) -> bool:
        """Go on from the newest valid checkpoint below `folder`, however many stages wrote it.

        Return whether there is one.

        Raises ValueError if it does not fit the stages.
        """
        self._guard.check_drained("load")
        newest = checkpoint.newest(Path(folder))
        if newest is None:
            return False
        state, tensors = checkpoint.read(newest, self.stages)
        with self._guard.segment(self.stages):  # half restored is as good as cut short
            checkpoint.restore(self.stages, state, tensors)
        self.microbatch, self.seconds = state["microbatch"], state["seconds"]
        return True

    def close(self) -> None:
        """Do nothing: one process holds nothing to give back."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _steps(self, count: int, durations: Durations) -> Iterator[StepFields]:
        """Yield the actions of `count` micro-batches. If the stages wait for each other's gradients
        at every update, a window begins when all stages have ended the one before."""
        if not self.stages[0].waits_for_update:
            yield from run_schedule(self.schedule, count, durations)
            return
        start, a = 0.0, self.accumulation
        for first in range(0, count, a):
            end = start
            for step in run_schedule(self.schedule, a, durations.of_window(first, a)):
                rank, stage, kind, microbatch, began, ended, version = step
                end = max(end, start + ended)
                yield (
                    rank, stage, kind, first + microbatch, start + began, start + ended,
                    first // a + version,
                )  # fmt: skip
            start = end

    def _update_together(self) -> None:
        """Update all stages, which have ended a window, with their gradients clipped together."""
        norm = global_norm({stage.index: stage.gradient_norm() for stage in self.stages})
        for stage in self.stages:
            stage.update(norm)

    def _evaluate(self, input: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        for stage in self.stages:
            input = stage.evaluate(input, target)
        return input

    def _try_shapes(self, batches: Sequence[Batch]) -> None:
        """Raise ValueError if a micro-batch does not fit through the stages; one of each shape is
        tried, once."""
        for shapes, (input, target) in {(x.shape, y.shape): (x, y) for x, y in batches}.items():
            if shapes not in self._tried:
                for stage in self.stages:
                    input = stage.probe(input, target)
                self._tried.add(shapes)

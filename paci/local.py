"""The exact optimisation dynamics of an N-stage pipeline, in one process."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import torch
from torch import nn

from paci import checkpoint
from paci.checks import positive
from paci.cost import Cost, Durations
from paci.schedules import Schedule, build
from paci.segment import Batch, Segment, StageStatistics, Update
from paci.simulation.event_loop import Step, play, whole_windows
from paci.simulation.timeline import Timeline
from paci.stage.perform import Mailbox, perform
from paci.stage.stage import LearningRate, Loss, MakeOptimizer, Stage, check_no_shared_parameters
from paci.stage.weights import Policy


class LocalPipeline:
    """Train `stages` (modules, in order) as a pipeline whose stages take turns in this process.

    The order of the actions, and so the weights each of them sees, is that of `paci.simulate`
    for the same schedule and cost; the losses and weights are those of the real pipeline.

    schedule       a name in `paci.SCHEDULES`, or a `Schedule`
    accumulation   a, the micro-batches of one update; None: the schedule's own, mostly 4
    slack          forwards more in flight at every stage but the last; PACI's only
    weights        which weights an action sees: a name in `paci.stage.weights.WEIGHTS`,
                   or a function that makes a policy from a stage
    optimizer      makes an optimizer from a stage's parameters: `lambda params: AdamW(params)`
    lr_lambda      factor on its learning rate as a function of the stage's own version; or one
                   such function for each stage
    loss_fn        (output of the last stage, target) -> scalar mean over the micro-batch
    cost           times on the simulated clock; default `Cost()`
    seed           of every draw: dropout (with stage and micro-batch), jitter of the cost
    measure_every  updates between two samples of how far the weights move (0: never)

    Raises ValueError for unknown names and impossible sizes.
    """

    def __init__(
        self,
        stages: Sequence[nn.Module],
        schedule: str | Schedule = "paci",
        accumulation: int | None = None,
        slack: int = 0,
        weights: str | Callable[[Stage], Policy] = "live",
        *,
        optimizer: MakeOptimizer,
        loss_fn: Loss,
        lr_lambda: LearningRate | Sequence[LearningRate] | None = None,
        cost: Cost | None = None,
        seed: int = 0,
        measure_every: int = 0,
    ):
        self.schedule = build(schedule, len(stages), accumulation, slack)
        self.accumulation = self.schedule.accumulation
        check_no_shared_parameters(dict(enumerate(stages)))
        self.cost = cost or Cost()
        self.seed = seed
        self.stages = [
            Stage(
                index, len(stages), module, self.accumulation, optimizer, lr_lambda=lr_lambda,
                loss_fn=loss_fn, weights=weights, seed=seed, measure_every=measure_every,
            )
            for index, module in enumerate(stages)
        ]  # fmt: skip
        self.microbatch = 0  # the index of the next one
        self.seconds = 0.0  # on the simulated clock, all segments together
        self._tried: set[tuple[torch.Size, torch.Size]] = set()  # shapes known to fit
        self._cut_short = False  # by an error, in the middle of a segment
        Durations(self.cost, len(stages), 0)  # refuses a cost table that does not fit

    def train(
        self, batches: Iterable[Batch], on_update: Callable[[Update], None] | None = None
    ) -> Segment:
        """Fill the pipeline, train on `batches` of (input, target), drain it.

        Inputs enter at the first stage, targets stay at the last. `on_update` is called as soon
        as all stages have made an update. Raises ValueError before any work unless `batches` are
        whole windows of micro-batches that fit the stages.
        """
        batches = batches if isinstance(batches, Sequence) else list(batches)
        whole_windows(len(batches), self.accumulation)
        if self._cut_short:
            raise RuntimeError(
                "an earlier segment was cut short, and its micro-batches are still in flight: "
                "make a new pipeline, and load a checkpoint into it"
            )
        self._try_shapes(batches)
        for stage in self.stages:
            stage.clear_statistics()

        a, N, first = self.accumulation, len(self.stages), self.microbatch
        durations = Durations(self.cost, N, len(batches), self.seed, first)
        mail, losses = Mailbox(), []

        def batch_of(microbatch: int) -> Batch:
            return batches[microbatch - first]

        closed: defaultdict[int, list[tuple[float, float]]] = defaultdict(list)
        steps = []
        self._cut_short = True  # until it is not
        for step in play(self.schedule, len(batches), durations):
            _, index, kind, microbatch, _, end, version = step
            stage = self.stages[index]
            rate, before = stage.learning_rate, stage.versions.version
            loss = perform(stage, kind, first + microbatch, batch_of, mail.take, mail.put)
            if loss is not None:
                losses.append(loss)
            if on_update and stage.versions.version > before:
                closed[version].append((end, rate))
                if len(closed[version]) == N:
                    ends, rates = zip(*closed.pop(version), strict=True)
                    window = losses[version * a : (version + 1) * a]
                    loss = torch.stack(window).mean().item()
                    number, seconds = stage.versions.version, self.seconds + max(ends)
                    on_update(Update(number, loss, max(rates), seconds))
            steps.append(Step._make(step))

        timeline = Timeline(steps, len(self.schedule.placement), a)
        self._cut_short = False
        self.microbatch += len(batches)
        self.seconds += timeline.makespan
        books = map(StageStatistics.of, self.stages)
        return Segment.of(books, torch.stack(losses).tolist(), timeline)

    def evaluate(self, batches: Iterable[Batch]) -> float:
        """Mean loss over `batches` in evaluation mode; leaves no trace in weights or draws. Raises
        ValueError if there are none."""
        batches = batches if isinstance(batches, Sequence) else list(batches)
        positive("micro-batches to evaluate", len(batches))
        losses = [self._evaluate(*batch) for batch in batches]
        return torch.stack(losses).mean().item()

    @property
    def reports(self) -> bool:
        """Whether this process knows the losses; of one process, it is the one."""
        return True

    @property
    def interrupted(self) -> bool:
        """Whether the last segment was asked to end early; an exception ends one process."""
        return False

    def gather(self, value: object) -> list:
        """The `value` of every process: there is one."""
        return [value]

    def save(self, folder: Path, keep: int = 2) -> None:
        """Write a checkpoint below `folder`; see `paci.checkpoint`."""
        state = {"microbatch": self.microbatch, "seconds": self.seconds}
        checkpoint.save(folder, self.stages, state, keep)

    def load(self, folder: Path) -> bool:
        """Go on from the newest valid checkpoint below `folder`, by however many stages it was
        written; False if there is none. Raises ValueError if it does not fit the stages."""
        newest = checkpoint.newest(folder)
        if newest is None:
            return False
        state = checkpoint.load(newest, self.stages)
        self.microbatch, self.seconds = state["microbatch"], state["seconds"]
        return True

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

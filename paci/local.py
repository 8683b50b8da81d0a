"""The exact optimisation dynamics of an N-stage pipeline, in one process."""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import nn

from paci.actions import FORWARD
from paci.clock import Step, play, whole_windows
from paci.cost import Cost, Durations
from paci.ledger import Movement
from paci.memory import Held
from paci.schedules import Schedule, build
from paci.stage import Loss, MakeOptimizer, Stage
from paci.timeline import Timeline

Batch = tuple[torch.Tensor, torch.Tensor]


@dataclass(frozen=True)
class Segment:
    """What one `train` did, from a filled to a drained pipeline; lists of lists are per stage.

    losses           of each micro-batch, in their order, not scaled
    drift            histogram {updates between forward and backward: micro-batches}
    staleness        histogram {updates between forward and the update that uses it: micro-batches}
    movements        samples of how far the weights moved between forward and backward
    peak_in_flight   micro-batches
    peak_held        most bytes held for backwards: activations, parameter copies
    timeline         every action on the simulated clock
    """

    losses: list[float]
    drift: list[Counter[int]]
    staleness: list[Counter[int]]
    movements: list[list[Movement]]
    peak_in_flight: list[int]
    peak_held: list[Held]
    timeline: Timeline

    @property
    def seconds(self) -> float:
        """Of the simulated clock: what the pipeline would have taken at the given cost."""
        return self.timeline.makespan


class Update(NamedTuple):
    """One update of all stages: its number from 1, the mean loss of its window, the learning rate
    it was made with, and when the last stage to make it (stage 0) had made it, on the simulated
    clock."""

    number: int
    loss: float
    learning_rate: float
    seconds: float


class LocalPipeline:
    """Train `stages` (modules, in order) as a pipeline whose stages take turns in this process.

    The order of the actions, and so the weights each of them sees, is that of `paci.simulate`
    for the same schedule and cost; the losses and weights are those of the real pipeline.

    optimizer      makes an optimizer from a stage's parameters: `lambda params: AdamW(params)`
    lr_lambda      factor on its learning rate as a function of the stage's own version
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
        weights: str = "live",
        *,
        optimizer: MakeOptimizer,
        loss_fn: Loss,
        lr_lambda: Callable[[int], float] | None = None,
        cost: Cost | None = None,
        seed: int = 0,
        measure_every: int = 0,
    ):
        self.schedule = build(schedule, len(stages), accumulation, slack)
        self.accumulation = self.schedule.accumulation
        self.cost = cost or Cost()
        self.seed = seed
        self.stages = [
            Stage(
                index,
                len(stages),
                module,
                self.accumulation,
                optimizer,
                lr_lambda,
                loss_fn,
                weights,
                seed,
                measure_every,
            )
            for index, module in enumerate(stages)
        ]
        self.microbatch = 0  # the index of the next one
        self.seconds = 0.0  # on the simulated clock, all segments together
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
        for batch in {(x.shape, y.shape): (x, y) for x, y in batches}.values():
            self._try(*batch)
        for stage in self.stages:
            stage.ledger.clear()
            stage.saved.clear()

        a = self.accumulation
        durations = Durations(self.cost, len(self.stages), len(batches), self.seed, self.microbatch)
        activations = [deque() for _ in self.stages]
        gradients = [deque() for _ in self.stages]
        losses: list[torch.Tensor] = []
        steps = []
        for step in play(self.schedule, len(batches), durations):
            _, index, kind, microbatch, _, end, version = step
            stage = self.stages[index]
            if kind == FORWARD:
                input = batches[microbatch][0] if stage.is_first else activations[index].popleft()
                target = batches[microbatch][1] if stage.is_last else None
                output = stage.forward(self.microbatch + microbatch, input, target)
                if stage.is_last:
                    losses.append(output)
                else:
                    activations[index + 1].append(output)
            else:
                gradient = None if stage.is_last else gradients[index].popleft()
                rate = stage.learning_rate
                gradient = stage.backward(self.microbatch + microbatch, gradient)
                if not stage.is_first:
                    gradients[index - 1].append(gradient)
                elif on_update and (microbatch + 1) % a == 0:
                    window = torch.stack(losses[version * a : (version + 1) * a])
                    on_update(
                        Update(stage.ledger.version, window.mean().item(), rate, self.seconds + end)
                    )
            steps.append(Step._make(step))

        timeline = Timeline(steps, len(self.schedule.placement), a)
        self.microbatch += len(batches)
        self.seconds += timeline.makespan
        return Segment(
            losses=torch.stack(losses).tolist(),
            drift=[stage.ledger.drift for stage in self.stages],
            staleness=[stage.ledger.staleness for stage in self.stages],
            movements=[stage.ledger.movements for stage in self.stages],
            peak_in_flight=[stage.ledger.peak_in_flight for stage in self.stages],
            peak_held=[stage.saved.peak for stage in self.stages],
            timeline=timeline,
        )

    def evaluate(self, batches: Iterable[Batch]) -> float:
        """Mean loss over `batches` in evaluation mode; leaves no trace in weights or draws."""
        losses = [self._evaluate(*batch) for batch in batches]
        return torch.stack(losses).mean().item()

    def _evaluate(self, input: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        for stage in self.stages:
            input = stage.evaluate(input, target)
        return input

    def _try(self, input: torch.Tensor, target: torch.Tensor) -> None:
        """Raise ValueError if a micro-batch does not fit through the stages."""
        for stage in self.stages:
            shape = tuple(input.shape)
            try:
                input = stage.evaluate(input, target)
            except (RuntimeError, IndexError) as error:
                raise ValueError(
                    f"stage {stage.index} cannot take its input of shape {shape} "
                    f"(target: {tuple(target.shape)}): {error}"
                ) from error
        if input.dim() != 0:
            raise ValueError(f"loss_fn must give one number, not a shape of {tuple(input.shape)}")

"""Simulation of a schedule, without tensors, and the quantities that it measures."""

from collections.abc import Iterable
from functools import cached_property
from typing import Any

from paci.actions import ENDS_BACKWARD, FORWARD, WEIGHT_GRADIENT
from paci.cost import Cost, Durations
from paci.schedules import FixedOrder, Schedule, build
from paci.simulation.event_loop import Step, StepFields, run_schedule, whole_windows
from paci.simulation.timeline import Timeline

VERSIONED = ("stashed", "double-buffered")
"""Policies of weights under which a backward sees the weights of its forward."""


def simulate(
    schedule: str | Schedule,
    stages: int = 8,
    microbatches: int = 512,
    accumulation: int | None = None,
    slack: int = 0,
    cost: Cost | None = None,
    seed: int = 0,
    **options: Any,
) -> "Simulation":
    """Run `schedule` on the simulated clock.

    `accumulation` None is the schedule's own (4; 1 for async-1f1b); `microbatches` must be whole
    windows of it; times are in the unit of `cost`; `options` are the schedule's own. The result
    is a function of the arguments alone. Raises ValueError for unknown names and impossible sizes.

    >>> simulate("1f1b-flush", stages=8, microbatches=8, accumulation=8).utilization  # 8 / 15
    0.5333333333333333
    """
    rule = build(schedule, stages, accumulation, slack, **options)
    whole_windows(microbatches, rule.accumulation)
    durations = Durations(cost or Cost(), rule.stages, microbatches, seed)
    return Simulation(rule, list(run_schedule(rule, microbatches, durations)))


def fixed_order(schedule: Schedule, microbatches: int) -> FixedOrder:
    """Return the order that `schedule` takes at the default `Cost()`, as a schedule.

    Raises ValueError unless `microbatches` is a whole number of windows.
    """
    run = simulate(schedule, schedule.stages, microbatches)
    return FixedOrder(run.timeline.orders(), schedule.accumulation)


class Simulation:
    """The result of a simulation: `actions` (rows of `Step`) and what follows from them.

    makespan             time from the first start to the last end
    utilization          busy time of the busiest rank over the makespan
    max_drift[i]         most updates of stage i between the weights that a micro-batch's forward
                         sees and those that its backward sees
    max_staleness[i]     most updates of stage i between the weights that a forward sees and the
                         update that uses its gradient
    max_copies[i]        most versions of its weights that stage i holds beside the newest
    peak_in_flight[i]    most micro-batches of stage i with a forward started and the backward
                         (its weight gradient, where it is split) not finished
    peak_activations[r]  the same at rank r, all its stages together
    """

    def __init__(self, schedule: Schedule, steps: Iterable[StepFields], weights: str = "live"):
        """Measure `steps` of a run of `schedule`, in the order of `event_loop.run_schedule`.

        They are iterated over once. `actions`, `timeline`, `makespan` and `utilization` need them
        again and exist if `steps` is a list; an iterator is not stored, for runs that do not fit
        into memory.

        A double-buffered forward of window k sees version k - 1, every other forward the newest.
        Stashed and double-buffered backwards see the version of their forward, every other the
        newest: predicted and corrected weights estimate what drift does, and do not remove it.
        """
        self.schedule = schedule
        self.max_drift = [0] * schedule.stages
        self.max_staleness = [0] * schedule.stages
        self.max_copies = [0] * schedule.stages
        self.peak_in_flight = [0] * schedule.stages
        self.peak_activations = [0] * len(schedule.placement)
        self._steps = steps

        a, is_versioned = schedule.accumulation, weights in VERSIONED
        versions: list[dict[int, int]] = [{} for _ in range(schedule.stages)]  # by micro-batch
        in_flight = [0] * schedule.stages
        activations = [0] * len(schedule.placement)
        for rank, stage, kind, microbatch, _, _, version in steps:
            of_forwards, window = versions[stage], microbatch // a
            if is_versioned:
                copies = len({*of_forwards.values()} - {version})
                self.max_copies[stage] = max(self.max_copies[stage], copies)
            if kind == FORWARD:
                seen = max(0, window - 1) if weights == "double-buffered" else version
                of_forwards[microbatch] = seen
                self.max_staleness[stage] = max(self.max_staleness[stage], window - seen)
                in_flight[stage] += 1
                activations[rank] += 1
                self.peak_in_flight[stage] = max(self.peak_in_flight[stage], in_flight[stage])
                self.peak_activations[rank] = max(self.peak_activations[rank], activations[rank])
            elif kind != WEIGHT_GRADIENT:
                seen = of_forwards.pop(microbatch)
                drift = 0 if is_versioned else version - seen
                self.max_drift[stage] = max(self.max_drift[stage], drift)
            if kind in ENDS_BACKWARD:
                in_flight[stage] -= 1
                activations[rank] -= 1

    def __repr__(self) -> str:
        rule = self.schedule
        busy = f"utilization {self.utilization:.3f}, " if self.actions else ""
        return (
            f"<Simulation of {rule.name}: {rule.stages} stages, accumulation {rule.accumulation}, "
            f"{busy}largest drift {max(self.max_drift)}>"
        )

    @cached_property
    def actions(self) -> list[Step]:
        return [Step._make(step) for step in self._steps]

    @cached_property
    def timeline(self) -> Timeline:
        ranks = len(self.schedule.placement)
        return Timeline(self.actions, ranks, self.schedule.accumulation)

    @property
    def makespan(self) -> float:
        return self.timeline.makespan

    @property
    def utilization(self) -> float:
        return self.timeline.utilization

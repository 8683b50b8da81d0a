"""Schedules at any scale, without tensors."""

from collections.abc import Iterable
from functools import cached_property

from paci.actions import BACKWARD, ENDS_BACKWARD, FORWARD, INPUT_GRADIENT
from paci.cost import Cost, Durations
from paci.schedules import Recorded, Schedule, build
from paci.simulation.event_loop import Step, play, whole_windows
from paci.simulation.timeline import Timeline


def simulate(
    schedule: str | Schedule,
    stages: int = 8,
    microbatches: int = 512,
    accumulation: int | None = None,
    slack: int = 0,
    cost: Cost | None = None,
    seed: int = 0,
    **options,
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
    return Simulation(rule, list(play(rule, microbatches, durations)))


def fixed_order(schedule: Schedule, microbatches: int) -> Recorded:
    """The order that `schedule` takes at the default `Cost()`, whatever times really are.

    Raises ValueError unless `microbatches` is a whole number of windows.
    """
    run = simulate(schedule, schedule.stages, microbatches)
    return Recorded(run.timeline.orders(), schedule.accumulation)


class Simulation:
    """What happened: `actions` (rows of `Step`) and what follows from them.

    makespan             from the first start to the last end
    utilization          busy time of the busiest rank over the makespan
    max_drift[i]         most updates of stage i between a micro-batch's forward and its backward
    peak_in_flight[i]    most micro-batches of stage i with a forward started and the backward
                         (its weight gradient, where it is split) not finished
    peak_activations[r]  most of them at rank r, all its stages together
    """

    def __init__(self, schedule: Schedule, steps: Iterable[tuple]):
        """`steps` of a run of `schedule`, in the order of `event_loop.play`, are gone through once.
        What needs them again (`actions`, `timeline`, `makespan`, `utilization`) is there if they
        are a list; of an iterator none is kept, which is for runs that memory has no room for."""
        self.schedule = schedule
        self.max_drift = [0] * schedule.stages
        self.peak_in_flight = [0] * schedule.stages
        self.peak_activations = [0] * len(schedule.placement)
        self._steps = steps

        forward_version: dict[tuple[int, int], int] = {}
        in_flight = [0] * schedule.stages
        held = [0] * len(schedule.placement)
        for rank, stage, kind, microbatch, _, _, version in steps:
            if kind == FORWARD:
                forward_version[stage, microbatch] = version
                in_flight[stage] += 1
                held[rank] += 1
                self.peak_in_flight[stage] = max(self.peak_in_flight[stage], in_flight[stage])
                self.peak_activations[rank] = max(self.peak_activations[rank], held[rank])
            if kind in (BACKWARD, INPUT_GRADIENT):
                drift = version - forward_version.pop((stage, microbatch))
                self.max_drift[stage] = max(self.max_drift[stage], drift)
            if kind in ENDS_BACKWARD:
                in_flight[stage] -= 1
                held[rank] -= 1

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

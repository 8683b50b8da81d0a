"""What a method is like: bubble, drift, copies, ... on the simulated timeline of its schedule."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from paci.actions import FORWARD, WEIGHT_GRADIENT
from paci.cost import Cost
from paci.schedules import SCHEDULES, Schedule, theory
from paci.simulation.event_loop import Step
from paci.simulation.simulate import simulate

VERSIONED = ("stashed", "double-buffered")  # a backward sees the weights of its forward
MICROBATCHES = 64  # simulated, for each rank


@dataclass(frozen=True)
class Traits:
    """
    bubble       idle time of the busiest rank over its work, where windows follow one another
    utilization  its busy time over all time, from an empty pipeline to a drained one
    drift        most updates between forward and backward, and how many there may be
    staleness    most updates between forward and the update that uses its gradient, likewise
    copies       of a stage's weights beyond the one that all have, at the most (of the two that
                 predicted and corrected weights need, one lasts no longer than an action)
    activations  most in flight at a rank, over those of 1F1B's first rank
    """

    bubble: float
    utilization: float
    drift: int
    drift_bound: int
    staleness: int
    staleness_bound: int
    copies: int
    activations: float


def traits_of(rule: Schedule, weights: str, cost: Cost, seed: int = 0) -> Traits:
    """Of a schedule at its own number of ranks, with a policy of weights and times per stage."""
    a, ranks = rule.accumulation, len(rule.placement)
    half = -(-MICROBATCHES * ranks // (2 * a)) * a
    run, first = (simulate(rule, rule.stages, m, cost=cost, seed=seed) for m in (2 * half, half))
    work = max(run.timeline.busy) - max(first.timeline.busy)
    late = 0 if rule.flushes else theory.drift_bound(rule.stages, 0, a, rule.slack)
    drift, staleness, copies = books(run.actions, rule, weights)
    if weights not in ("live", *VERSIONED):  # not versions, but buffers of the same size
        copies = theory.parameter_units(weights, rule.stages, 0, a, rule.slack) - 1
    return Traits(
        bubble=(run.makespan - first.makespan) / work - 1,
        utilization=run.utilization,
        drift=drift,
        drift_bound=0 if weights in VERSIONED else late,
        staleness=staleness,
        staleness_bound=1 if weights == "double-buffered" else late,
        copies=copies,
        activations=max(run.peak_activations) / rule.stages,
    )


def books(actions: Iterable[Step], rule: Schedule, weights: str) -> tuple[int, int, int]:
    """The largest drift and staleness of any micro-batch at any stage, and the most versions of a
    stage's weights that are held at once beside the newest.

    A double-buffered forward of window k sees version k - 1, every other the newest. Predicted and
    corrected weights have the drift of live ones: they estimate what it does.
    """
    seen: dict[int, dict[int, int]] = {stage: {} for stage in range(rule.stages)}
    drift = staleness = copies = 0
    for _, stage, kind, microbatch, _, _, version in actions:
        window, in_flight = microbatch // rule.accumulation, seen[stage]
        if weights in VERSIONED:
            copies = max(copies, len({*in_flight.values()} - {version}))
        if kind == FORWARD:
            late = weights == "double-buffered"
            in_flight[microbatch] = max(0, window - 1) if late else version
            staleness = max(staleness, window - in_flight[microbatch])
        elif kind != WEIGHT_GRADIENT:
            forward = in_flight.pop(microbatch)
            drift = max(drift, 0 if weights in VERSIONED else version - forward)
    return drift, staleness, copies


def stages_per_rank(schedule: str, options: Mapping) -> int:
    """How many stages of `schedule`, with its `options`, make up one rank."""
    return options.get("stages_per_rank", SCHEDULES[schedule].stages_per_rank)


def shared_out(cost: Cost, stages_per_rank: int) -> Cost:
    """The times of a rank, shared out among its stages; times that are given stage by stage, and
    those of messages, stay as they are."""
    shares = {
        name: time / stages_per_rank
        for name in ("forward", "backward", "weight", "input", "update")
        if isinstance(time := getattr(cost, name), int | float)
    }
    return replace(cost, **shares)

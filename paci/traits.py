"""Properties of a method, measured on the simulated timeline of its schedule."""

from dataclasses import dataclass

from paci.cost import Cost
from paci.method import Method
from paci.schedules import theory
from paci.simulation.simulate import VERSIONED, Simulation, simulate

MICROBATCHES = 64  # simulated, for each rank


@dataclass(frozen=True)
class Traits:
    """
    bubble       idle time of the busiest rank over its work, where windows follow one another
    utilization  its busy time over all time, from an empty pipeline to a drained one
    drift        most updates between forward and backward, and their bound
    staleness    most updates between forward and the update that uses its gradient, and their bound
    copies       most copies of a stage's weights beyond the one that every method has (predicted
                 and corrected weights have two at times, one of them for a single action)
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


def traits_of(method: Method, ranks: int, cost: Cost, seed: int = 0) -> Traits:
    """Simulate `method` on `ranks` ranks, of which each takes the times of `cost`.

    A rank with several stages divides its times among them. Raises ValueError for sizes that the
    method's schedule does not allow.
    """
    stages = ranks * method.stages_per_rank
    rule, a = method.schedule_of(stages), method.accumulation
    cost = cost.per_stage(method.stages_per_rank)
    half = -(-MICROBATCHES * ranks // (2 * a)) * a
    run, first = (simulate(rule, stages, m, cost=cost, seed=seed) for m in (2 * half, half))
    work = max(run.timeline.busy) - max(first.timeline.busy)
    seen = Simulation(rule, run.actions, method.weights)
    copies = max(seen.max_copies)
    if method.weights not in ("live", *VERSIONED):  # not versions, but buffers of the same size
        drift = max(method.updates_between(stages, stage) for stage in range(stages))
        copies = theory.parameter_units(method.weights, drift) - 1
    return Traits(
        bubble=(run.makespan - first.makespan) / work - 1,
        utilization=run.utilization,
        drift=max(seen.max_drift),
        drift_bound=max(method.drift_bound_at(stages, stage) for stage in range(stages)),
        staleness=max(seen.max_staleness),
        staleness_bound=max(method.staleness_bound_at(stages, stage) for stage in range(stages)),
        copies=copies,
        activations=max(run.peak_activations) / stages,
    )

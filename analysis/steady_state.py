"""The steady state of a simulated schedule: seconds from one update to the next."""

from collections.abc import Iterable

from paci import Cost, simulate
from paci.actions import FORWARD
from paci.schedules import Schedule


def seconds_per_update(schedule: Schedule, cost: Cost) -> float:
    """Return the time from one update of the first stage to the next, where windows of
    `schedule.accumulation` micro-batches follow one another, in the unit of `cost`."""
    window = schedule.accumulation
    run = simulate(schedule, schedule.stages, 2 * window, cost=cost)
    ends = sorted(_backwards(run.actions))
    return ends[-1] - ends[len(ends) // 2 - 1]


def _backwards(actions: Iterable) -> list[float]:
    return [it.end for it in actions if it.stage == 0 and it.kind != FORWARD]

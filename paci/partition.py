"""Partition of a model's consecutive units into stages, balanced under a memory limit."""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import inf
from operator import add

from paci.schedules import Schedule
from paci.schedules.theory import in_flight_bound
from paci.simulation.simulate import simulate


@dataclass(frozen=True)
class UnitCost:
    """The cost of one unit of a model to the stage that holds it.

    time              its forward and backward of one micro-batch, in any one unit (seconds, FLOPs)
    parameter_bytes   one copy of its weights
    activation_bytes  what its forward of one micro-batch saves for the backward
    """

    time: float
    parameter_bytes: int = 0
    activation_bytes: int = 0


def partition(
    units: Sequence[UnitCost],
    stages: int,
    limit: int | None = None,
    *,
    copies: int = 4,
    in_flight: Sequence[int] | None = None,
    shared: bool = False,
) -> list[range]:
    """Cut `units` into `stages` non-empty runs that minimise the slowest stage's time.

    Returns one `range` of unit indices per stage, in order. Of the cuts with the smallest slowest
    stage it takes the most even one (smallest sum of squared stage times), of those the one that
    cuts earliest.

    `limit` bounds the bytes of every stage, as `stage_bytes` counts them. If no cut fits, the limit
    is raised to the smallest that allows one: the largest stage exceeds it as little as possible,
    and only then times are balanced (the two passes of Elam et al., arXiv 2606.07881). Stages that
    have one device for all of them (`shared`) are bounded by the sum of their bytes.

    Raises ValueError for more stages than units, and for a time that is not a positive finite
    number.
    """
    if not 1 <= stages <= len(units):
        raise ValueError(f"cannot cut {len(units)} units into {stages} non-empty stages")
    for index, unit in enumerate(units):
        if not 0 < unit.time < inf:
            raise ValueError(f"unit {index} takes {unit.time}: a time is a positive finite number")

    times = _prefix_sums(_as_integers([unit.time for unit in units]))
    memory = _memory(units, stages, copies, in_flight)

    def time(run: range) -> int:
        return times[run.stop] - times[run.start]

    if limit is not None and shared:
        cut = partition(units, stages)
        if sum(stage_bytes(units, cut, copies=copies, in_flight=in_flight)) <= limit:
            return cut
        return _within_sum(len(units), stages, time, memory, limit)
    if limit is not None:
        smallest, _ = _cheapest(len(units), stages, memory, max)
        limit = max(limit, smallest)

    def fits(stage: int, run: range) -> bool:
        return limit is None or memory(stage, run) <= limit

    slowest, _ = _cheapest(
        len(units), stages, lambda stage, run: time(run) if fits(stage, run) else None, max
    )
    _, cut = _cheapest(
        len(units),
        stages,
        lambda stage, run: time(run) ** 2 if time(run) <= slowest and fits(stage, run) else None,
        add,
    )
    return cut


def _within_sum(
    units: int,
    stages: int,
    time: Callable[[range], int],
    memory: Callable[[int, range], int],
    limit: int,
) -> list[range]:
    """Return the cut with the smallest slowest stage of those whose stages need at most `limit`
    bytes together, or as few as any cut needs; of these, the one that needs the fewest bytes."""

    def leanest(slowest: int) -> tuple[int, list[range]] | None:
        """Return the fewest bytes of a cut without a slower stage, and the cut; None if there is
        no such cut."""
        try:
            return _cheapest(
                units, stages, lambda i, run: memory(i, run) if time(run) <= slowest else None, add
            )
        except KeyError:
            return None

    times = sorted({time(range(a, b)) for a in range(units) for b in range(a + 1, units + 1)})
    fewest, _ = _cheapest(units, stages, memory, add)
    limit = max(limit, fewest)
    first = bisect_left(times, True, key=lambda it: bool((cut := leanest(it)) and cut[0] <= limit))
    found = leanest(times[first])
    assert found is not None, "the longest time allows every cut"
    return found[1]


def stage_bytes(
    units: Sequence[UnitCost],
    cut: Sequence[range],
    *,
    copies: int = 4,
    in_flight: Sequence[int] | None = None,
) -> list[int]:
    """Return the peak bytes of each stage of a cut.

    They are `copies` times its parameters (by default weights, gradients and Adam's two moments)
    and the activations of the `in_flight` micro-batches that it has in flight at most
    (`peak_in_flight`); None: N - i at stage i, as under 1F1B and PACI.
    """
    memory = _memory(units, len(cut), copies, in_flight)
    return [memory(stage, run) for stage, run in enumerate(cut)]


def peak_in_flight(schedule: Schedule) -> list[int]:
    """Return the micro-batches that each stage has in flight at most under `schedule`.

    Asynchronous rules enforce a limit, which late messages can make a stage reach. Windows of
    schedules that flush do not overlap, so that the peak of a simulated window is that of all:
    GPipe holds a whole window, 1F1B no more than fill the pipeline.
    """
    if not schedule.flushes:
        return [schedule.in_flight_limit(stage) for stage in range(schedule.stages)]
    return list(simulate(schedule, schedule.stages, schedule.accumulation).peak_in_flight)


def _memory(
    units: Sequence[UnitCost], stages: int, copies: int, in_flight: Sequence[int] | None
) -> Callable[[int, range], int]:
    """Return the function that gives the peak bytes of a stage with a run of units."""
    parameters = _prefix_sums([unit.parameter_bytes for unit in units])
    activations = _prefix_sums([unit.activation_bytes for unit in units])

    limits = in_flight or [in_flight_bound(stages, stage) for stage in range(stages)]

    def memory(stage: int, run: range) -> int:
        static = copies * (parameters[run.stop] - parameters[run.start])
        return static + limits[stage] * (activations[run.stop] - activations[run.start])

    return memory


def _cheapest(
    units: int,
    stages: int,
    cost: Callable[[int, range], int | None],
    combine: Callable[[int, int], int],
) -> tuple[int, list[range]]:
    """Return the smallest cost of a cut, and the earliest cut that has it.

    It is a dynamic program over (stage, first unit), from the last stage to the first.
    `cost(stage, run)` is the cost of giving that run of units to that stage, or None if that is
    not allowed; `combine` (max or +) adds it to the cost of the later stages. At least one cut must
    be allowed.
    """
    rest: dict[int, tuple[int, list[range]]] = {units: (0, [])}  # by first unit: cost and cut
    for stage in reversed(range(stages)):
        best: dict[int, tuple[int, list[range]]] = {}
        last_stop = units - (stages - 1 - stage)  # each later stage needs a unit
        for start in range(stage, last_stop) if stage else [0]:  # each earlier one too
            for stop in range(start + 1, last_stop + 1):
                run = range(start, stop)
                if stop not in rest or (own := cost(stage, run)) is None:
                    continue
                later, cut = rest[stop]
                total = combine(own, later)
                if start not in best or total < best[start][0]:
                    best[start] = total, [run, *cut]
        rest = best
    return rest[0]


def _prefix_sums(values: Sequence[int]) -> list[int]:
    return list(accumulate(values, initial=0))


def _as_integers(times: Sequence[float]) -> list[int]:
    """Return the times as exact multiples of one tiny unit: their sums do not round, so equal
    cuts tie."""
    ratios = [float(time).as_integer_ratio() for time in times]
    unit = max(denominator for _, denominator in ratios)  # all are powers of two
    return [numerator * (unit // denominator) for numerator, denominator in ratios]

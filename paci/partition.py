"""Cut a model's consecutive units into pipeline stages, as evenly as its memory allows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import inf
from operator import add

from paci.schedules.theory import in_flight_bound


@dataclass(frozen=True)
class UnitCost:
    """What one unit of a model asks of the stage that holds it.

    `time` is its forward and backward of one micro-batch, in any one unit (seconds, FLOPs);
    `parameter_bytes` is one copy of its weights; `activation_bytes` is what its forward of one
    micro-batch saves for the backward.
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
    slack: int = 0,
) -> list[range]:
    """Cut `units` into `stages` non-empty runs that minimise the slowest stage's time.

    Returns one `range` of unit indices per stage, in order. Of the cuts with the smallest
    slowest stage it takes the most even one (smallest sum of squared stage times), of those the
    one that cuts earliest.

    `limit` bounds every stage's bytes: `copies` times its parameters (by default weights,
    gradients and Adam's two moments) plus the activations of the micro-batches it has in flight
    at most, which under 1F1B and PACI are stages - i + slack at stage i and one at the last.

    Raises ValueError for more stages than units, for a time that is not a positive finite
    number, and, naming the smallest limit that would do, if no cut fits into `limit`.
    """
    if not 1 <= stages <= len(units):
        raise ValueError(f"cannot cut {len(units)} units into {stages} non-empty stages")
    for index, unit in enumerate(units):
        if not 0 < unit.time < inf:
            raise ValueError(f"unit {index} takes {unit.time}: a time is a positive finite number")

    times = _prefix_sums(_as_integers([unit.time for unit in units]))
    parameters = _prefix_sums([unit.parameter_bytes for unit in units])
    activations = _prefix_sums([unit.activation_bytes for unit in units])

    def time(run: range) -> int:
        return times[run.stop] - times[run.start]

    def memory(stage: int, run: range) -> int:
        in_flight = in_flight_bound(stages, stage, slack)
        held = parameters[run.stop] - parameters[run.start]
        return copies * held + in_flight * (activations[run.stop] - activations[run.start])

    if limit is not None:
        needed, _ = _cheapest(len(units), stages, memory, max)
        if needed > limit:
            raise ValueError(
                f"no cut of {len(units)} units into {stages} stages fits into {limit} bytes a "
                f"stage: the smallest limit that would do is {needed} bytes"
            )

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


def _cheapest(
    units: int,
    stages: int,
    cost: Callable[[int, range], int | None],
    combine: Callable[[int, int], int],
) -> tuple[int, list[range]]:
    """Dynamic program over (stage, first unit), from the last stage to the first.

    `cost(stage, run)` is what giving that run of units to that stage costs, None if it must not
    have it; `combine` (max or +) joins it with the cost of the later stages. At least one cut
    must be allowed. Between equals the earliest cut wins: a later one must be strictly cheaper.
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
    """The times in one tiny common unit, exactly: sums do not round, so equal cuts do tie."""
    ratios = [float(time).as_integer_ratio() for time in times]
    unit = max(denominator for _, denominator in ratios)  # all are powers of two
    return [numerator * (unit // denominator) for numerator, denominator in ratios]

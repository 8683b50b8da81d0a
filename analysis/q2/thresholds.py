"""Time to a validation perplexity: seconds of training, evaluation and checkpoints apart."""

from collections.abc import Sequence
from math import inf, isfinite, nan

import numpy as np
import pandas as pd

from analysis.cells import CannotAnswer, Cell

NOT_REACHED = inf
"""The time to a perplexity that a run never has: nothing is extrapolated."""

GIVEN_COSTS = "simulated"
"""The clock of given costs, in arbitrary units: whoever chose them chose the answer."""

MOST_THRESHOLDS = 6


def time_to(evaluations: pd.DataFrame, perplexity: float) -> float:
    """Seconds until the validation perplexity is first at or below `perplexity`.

    Between the evaluation that finds it so and the one before, the logarithm of the perplexity is
    taken to be linear in time. NOT_REACHED if no evaluation finds it so, NaN if the first already
    does: when, nobody measured. Evaluations without a finite perplexity are passed over.
    """
    known = evaluations[np.isfinite(evaluations["perplexity"]) & evaluations["seconds"].notna()]
    below = np.flatnonzero(known["perplexity"] <= perplexity)
    if not len(below):
        return NOT_REACHED
    if below[0] == 0:
        return nan
    around = known.iloc[below[0] - 1 : below[0] + 1]
    losses, seconds = np.log(around["perplexity"].to_numpy()), around["seconds"].to_numpy()
    # np.interp wants a rising axis; the loss falls.
    return float(np.interp(-np.log(perplexity), -losses, seconds))


def times_to(cell: Cell, perplexity: float) -> pd.Series:
    """`time_to` of every seed of a cell."""
    return pd.Series({seed: time_to(log, perplexity) for seed, log in cell.evaluations.items()})


def lowest_common(group: Sequence[Cell]) -> float:
    """The lowest perplexity that every seed of every cell reaches; inf if one has none."""
    return max(_lowest(log) for cell in group for log in cell.evaluations.values())


def derived_thresholds(group: Sequence[Cell]) -> list[float]:
    """Round perplexities that every completed run of a setting passes, the highest first.

    They lie below the first evaluation after training began of the run that is then lowest, so
    that none falls into the steep first stretch, and not below the lowest perplexity that all
    completed runs reach. Round: multiples of the smallest of 1, 2 or 5 x 10^k that leaves at most
    six of them. Empty if the runs have no such stretch in common.
    """
    logs = [cell.evaluations[cell.runs[name]] for cell in group for name in cell.completed]
    trained = [log[log["update"] > 0] for log in logs]
    if not trained or any(log.empty for log in trained):
        return []
    start = min(log["perplexity"].iloc[0] for log in trained)
    return _round_numbers(max(map(_lowest, logs)), start)


def timed(made: list[Cell]) -> tuple[list[Cell], str]:
    """The cells that can answer a question about time, and what to say of those that cannot.

    On the clock of given costs no cell can. Of the others, those without an evaluation cannot.
    Raises CannotAnswer if none is left, or if two runs were timed with different measurements of
    the same micro-batch size.
    """
    given = [cell for cell in made if cell.clock == GIVEN_COSTS]
    rest = [cell for cell in made if cell.clock != GIVEN_COSTS]
    able = [cell for cell in rest if isfinite(lowest_common([cell]))]
    unable = [cell.variant.label for cell in rest if cell not in able]
    said = []
    if given:
        said.append(
            f"{sum(cell.seeds for cell in given)} runs on the clock '{GIVEN_COSTS}', whose costs "
            "are given and not measured, say nothing about time"
        )
    if unable:
        said.append(f"without a validation perplexity in every seed: {', '.join(unable)}")
    if not able:
        raise CannotAnswer("; ".join(said))
    _refuse_two_measurements(able)
    return able, "; ".join(said)


def _refuse_two_measurements(made: list[Cell]) -> None:
    tables: dict[tuple, tuple[str, str]] = {}
    for cell in made:
        microbatch = cell.batch / cell.variant.accumulation
        timed_for = cell.scale, cell.clock, microbatch, cell.recipe
        for name, costs in cell.costs.items():
            other, known = tables.setdefault(timed_for, (name, costs))
            if costs != known:
                raise CannotAnswer(
                    f"{other} and {name} have different measured costs of the same micro-batch "
                    "size; point at a folder with one of the two"
                )


def _lowest(log: pd.DataFrame) -> float:
    known = log["perplexity"][np.isfinite(log["perplexity"]) & log["seconds"].notna()]
    return float(known.min()) if len(known) else inf


def _round_numbers(low: float, high: float) -> list[float]:
    """At most six multiples of 1, 2 or 5 x 10^k in [low, high), the highest first."""
    if not low < high < inf:
        return []
    steps = sorted(base * 10.0**power for base in (1, 2, 5) for power in range(-6, 9))
    for step in steps:
        first, last = int(np.ceil(low / step)), int(np.ceil(high / step)) - 1
        if last - first < MOST_THRESHOLDS:
            return [float(f"{k * step:.9g}") for k in range(last, first - 1, -1)]
    return []

"""The throughput that times trainings: tokens to a perplexity over tokens/s, as in the paper.

The trainings of `experiment=trainings` say how many tokens a method needs, and `experiment=q2` how
many it processes in a second: on a simulated clock at measured costs, or on the wall.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import isfinite

import pandas as pd

from analysis.cells import CannotAnswer, Cell, in_order, unequal
from analysis.frames import Frames
from analysis.q3.throughput import Q2, throughput
from analysis.states import THROUGHPUT
from analysis.variants import Variant

GIVEN_COSTS = "simulated"
"""The clock of given costs, in arbitrary units: whoever chose them chose the answer."""

SHARED = ("model", "stages", "precision")
"""Parts of the recipe that a training must share with the runs that time it."""


def on_clocks(made: Sequence[Cell], frames: Frames) -> list[Cell]:
    """Return the cells on the clocks that Q2 timed them on: one on given costs for each clock on
    which its throughput is known, all others as they are.

    Raises CannotAnswer if the timed runs have another model or precision than the trainings.
    """
    known = rates_of_q2(frames)
    found: list[Cell] = []
    for cell in made:
        clocks = known if cell.clock == GIVEN_COSTS else {}
        timed = [
            replace(cell, clock=clock, rate=of_clock[cell.batch, cell.variant])
            for (scale, clock), of_clock in clocks.items()
            if scale == cell.scale and (cell.batch, cell.variant) in of_clock
        ]
        if timed:
            _check_alike(cell, frames)
        found += timed or [cell]
    return in_order(found)


def rates_of_q2(frames: Frames) -> dict[tuple[str, str], dict[tuple[int, Variant], float]]:
    """Return tokens/s of Q2's runs by (scale, clock), then by (batch, variant)."""
    if not _runs(frames).any():
        return {}
    found: dict[tuple[str, str], dict[tuple[int, Variant], float]] = {}
    for row in throughput(frames, q2=True).itertuples():
        if isfinite(row.rate):
            found.setdefault((row.scale, row.clock), {})[row.batch, row.variant] = row.rate
    return found


def _runs(frames: Frames) -> pd.Series:
    used = frames.of(THROUGHPUT).used
    return used["experiment"].eq(Q2)


def _check_alike(cell: Cell, frames: Frames) -> None:
    """Raise CannotAnswer if the runs that time a cell process something else than it trained."""
    used = frames.of(THROUGHPUT).used
    mine = used[_runs(frames) & used["scale"].eq(cell.scale) & used["variant"].eq(cell.variant)]
    for run, recipe in mine["recipe"].items():
        if differing := [name for name in unequal(cell.recipe, recipe) if name in SHARED]:
            raise CannotAnswer(
                f"{next(iter(cell.runs))} and {run}, which times it, differ in "
                f"{' and '.join(differing)}; point at a folder with one of the two"
            )

"""The split of PACI's distance from flush into delay and inconsistency.

With stashed weights, PACI applies its gradients as late as ever, but a backward sees the weights
of its forward. So the final training losses (nats per token) of three methods split the distance:

    live - flush  =  (stashed - flush)  +  (live - stashed)
    distance      =   delay             +   inconsistency
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf, isnan

import numpy as np
import pandas as pd

from analysis.cells import Cell, differences
from analysis.q1.drift import mean_movement
from analysis.statistics import mean_and_interval, mean_and_std

PARTS = ("delay", "inconsistency", "distance")


@dataclass(frozen=True, eq=False)
class Split:
    """PACI, its control and flush, at one setting; PACI and its control differ in weights only."""

    live: Cell
    stashed: Cell
    flush: Cell

    @cached_property
    def by_seed(self) -> pd.DataFrame:
        """PARTS of each seed that all three have: paired, so the noise of the data cancels."""
        losses = [cell.final_losses for cell in (self.live, self.stashed, self.flush)]
        whole = pd.concat(losses, axis=1, join="inner", keys=["live", "stashed", "flush"])
        return pd.DataFrame(
            {
                "delay": whole["stashed"] - whole["flush"],
                "inconsistency": whole["live"] - whole["stashed"],
                "distance": whole["live"] - whole["flush"],
            }
        ).sort_index()

    def part(self, name: str) -> tuple[float, float]:
        """Return the mean over seeds and half of its 95 % interval; NaN if one diverged."""
        return mean_and_interval(self.by_seed[name])

    @property
    def movement(self) -> float:
        """Mean relative movement of the first stage's weights between a forward and its backward
        under live weights, a fraction: the cause that inconsistency would have."""
        return float(mean_movement([self.live]).get(0, np.nan))


def splits(group: Sequence[Cell], flush: Cell | None) -> Iterator[Split]:
    """Yield a split for every PACI cell of a setting that has its control, in their order."""
    if flush is None:
        return
    for live in group:
        if live.variant.is_paci and not differences(live, flush):
            twin = replace(live.variant, weights="stashed")
            for stashed in group:
                if stashed.variant == twin and not differences(stashed, flush):
                    yield Split(live, stashed, flush)


def flush_of(group: Sequence[Cell]) -> Cell | None:
    """Return the flush baseline of a setting: of several, the one with the lowest final loss."""
    flushes = [cell for cell in group if cell.variant.is_flush]

    def final_loss(cell: Cell) -> float:
        loss, _ = mean_and_std(cell.final_losses)
        return inf if isnan(loss) else loss  # a seed diverged: the last to be chosen

    return min(flushes, key=final_loss, default=None)

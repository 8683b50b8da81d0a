"""How much sooner than flush PACI reaches a perplexity; always at one scale, clock and batch."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf

import numpy as np
import pandas as pd

from analysis.cells import Cell, differences
from analysis.q2.thresholds import derived_thresholds, lowest_common, times_to
from analysis.statistics import mean_and_std

BEST = "best flush"
EQUAL = "flush, m = a"


@dataclass(frozen=True, eq=False)
class SpeedUp:
    """Flush's time to a perplexity over PACI's, seed by seed."""

    paci: Cell
    flush: Cell
    against: str  # BEST or EQUAL
    perplexity: float
    lowest: bool  # whether it is the lowest that PACI and every flush of the setting reach

    @cached_property
    def by_seed(self) -> pd.Series:
        """Over the seeds that both have; NaN where one of the two does not get there."""
        ratio = times_to(self.flush, self.perplexity) / times_to(self.paci, self.perplexity)
        ratio = ratio[sorted({*self.paci.evaluations} & {*self.flush.evaluations})]
        return ratio.where(np.isfinite(ratio) & (ratio > 0))

    @property
    def mean_and_std(self) -> tuple[float, float]:
        """Over seeds; undefined if one of them does not get there: the others would flatter."""
        return mean_and_std(self.by_seed)

    @property
    def only_flush(self) -> bool:
        """Whether flush gets there in every seed, and PACI does not."""
        flush, paci = (times_to(cell, self.perplexity) for cell in (self.flush, self.paci))
        return bool(np.isfinite(flush).all() and np.isinf(paci).any())

    @property
    def why(self) -> str:
        """Why there is no number, if there is none."""
        for cell in (self.paci, self.flush):
            times = times_to(cell, self.perplexity)
            if np.isinf(times).any():
                missed = int(np.isinf(times).sum())
                return f"not reached by {cell.variant.label} in {missed} of {cell.seeds} seeds"
            if times.isna().any():
                return f"{cell.variant.label} is below it at its first evaluation"
        return "no seed in common" if self.by_seed.empty else ""


def best_flush(flushes: Sequence[Cell], perplexity: float) -> Cell:
    """The flush, of several micro-batch counts, with the least mean time to a perplexity."""
    return min(flushes, key=lambda cell: times_to(cell, perplexity).fillna(inf).mean())


def speed_ups(
    group: Sequence[Cell], thresholds: Sequence[float] | None = None
) -> Iterator[SpeedUp]:
    """Every speed-up of every PACI cell of one setting: at each threshold (given, or derived) and
    at the lowest perplexity that it and every flush reach; against the best flush and against the
    flush of as many micro-batches, where there is one."""
    if thresholds is None:
        thresholds = derived_thresholds(group)
    for paci in (it for it in group if it.variant.is_paci):
        flushes = [it for it in group if it.variant.is_flush and not differences(it, paci)]
        if not flushes:
            continue
        lowest = lowest_common([paci, *flushes])
        equal = [it for it in flushes if it.variant.accumulation == paci.variant.accumulation]
        for perplexity, is_lowest in [*((it, False) for it in thresholds), (lowest, True)]:
            best = best_flush(flushes, perplexity)
            for against, flush in [(BEST, best), *((EQUAL, it) for it in equal)]:
                yield SpeedUp(paci, flush, against, perplexity, is_lowest)

"""Speed-ups of PACI over flush, always at one scale, clock and batch."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import numpy as np
import pandas as pd

from analysis.cells import Cell, differences
from analysis.q2.timing import Timed, Timings


@dataclass(frozen=True, eq=False)
class Contest:
    """PACI and the flushes that it may be compared with."""

    paci: Timed
    flushes: list[Timed]

    @property
    def match(self) -> Timed | None:
        """The flush with as many micro-batches as PACI; None if there is none."""
        return next((it for it in self.flushes if it.m == self.paci.m), None)

    @property
    def fastest(self) -> Timed:
        """The flush with the least mean time of the whole training."""
        return min(self.flushes, key=lambda it: it.total.mean())

    def first_to(self, perplexity: float) -> Timed:
        """Return the flush with the least mean time to a perplexity."""
        return min(self.flushes, key=lambda it: it.time_to(perplexity).fillna(inf).mean())


def contests(group: Sequence[Cell], timings: Timings) -> list[Contest]:
    """Return a contest for every PACI cell of a setting that has a flush beside it."""
    found = []
    for cell in (it for it in group if it.variant.is_paci):
        alike = [it for it in group if not differences(it, cell)]
        if rivals := timings.flushes(alike):
            found.append(Contest(timings.as_trained(cell), rivals))
    return found


def ratio(flush: Timed | None, paci: Timed, perplexity: float | None = None) -> pd.Series:
    """Return flush's time over PACI's, over the seeds that both have: to a perplexity, or of the
    whole training. NaN where one of the two does not get there."""
    if flush is None:
        return pd.Series(dtype=float)
    theirs, ours = (
        it.total if perplexity is None else it.time_to(perplexity) for it in (flush, paci)
    )
    found = (theirs / ours)[sorted({*theirs.index} & {*ours.index})]
    return found.where(np.isfinite(found) & (found > 0))


def missing(it: Timed, perplexity: float) -> str:
    """Say why there is no time to a perplexity, if there is none."""
    times = it.time_to(perplexity)
    if missed := int(np.isinf(times).sum()):
        return f"not reached by {it.label} in {missed} of {len(times)} seeds"
    return f"{it.label} is below it at its first evaluation" if times.isna().any() else ""

"""The time at which a run reaches a validation perplexity: seconds and tokens of training, without
evaluations."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, nan

import numpy as np
import pandas as pd

from analysis.cells import Cell

PAPERS = (18.0, 17.0, 16.0)
"""The paper's thresholds, and so those of the paper's scale."""

PAPERS_LOWEST = 15.632
"""The lowest perplexity that all of the paper's runs at batch 128 reach (Table 4)."""

NOT_REACHED = inf
"""The time to a perplexity that a run never has: nothing is extrapolated."""


@dataclass(frozen=True)
class Thresholds:
    """Perplexities to time training to, and how to read a curve between two evaluations."""

    given: tuple[float, ...] | None = None
    log_linear: bool = False

    def of(self, group: Sequence[Cell]) -> list[float]:
        """Return the perplexities to time the cells of a setting to, the highest first.

        They are those given, or the paper's at its scale. Elsewhere they lie as far above the
        lowest perplexity that all completed runs of flush and of PACI with Δmax 1 or 2 reach as 18,
        17 and 16 lie above the paper's, to three digits. Empty if there is no such perplexity.
        """
        if self.given is not None:
            return sorted(self.given, reverse=True)
        if group[0].scale == "paper":
            return list(PAPERS)
        methods = [cell for cell in group if cell.variant.is_flush or cell.variant.is_mild_paci]
        logs = [cell.evaluations[cell.runs[name]] for cell in methods for name in cell.completed]
        lowest = max(map(_lowest, logs), default=inf)
        if lowest == inf:
            return []
        return [float(f"{lowest * it / PAPERS_LOWEST:.3g}") for it in PAPERS]

    def crossing(self, evaluations: pd.DataFrame, perplexity: float, of: str = "seconds") -> float:
        """Return the seconds (or, as `of` says, tokens) at which the validation perplexity is first
        at or below `perplexity`.

        Between the first evaluation at or below it and the evaluation before, the perplexity is
        taken to be linear in `of`, as in the paper, or its logarithm is (`log_linear`). The result
        is NOT_REACHED if no evaluation is at or below it, and NaN if the first one already is, as
        the time was not measured then. Evaluations without a finite perplexity are left out.
        """
        known = evaluations[np.isfinite(evaluations["perplexity"]) & evaluations[of].notna()]
        below = np.flatnonzero(known["perplexity"] <= perplexity)
        if not len(below):
            return NOT_REACHED
        if below[0] == 0:
            return nan
        around = known.iloc[below[0] - 1 : below[0] + 1]
        scale = np.log if self.log_linear else np.asarray
        values = scale(around["perplexity"].to_numpy())
        # np.interp wants a rising axis; the perplexity falls.
        return float(np.interp(-scale(perplexity), -values, around[of].to_numpy()))


PAPERS_WAY = Thresholds()


def lowest_common(group: Sequence[Cell]) -> float:
    """Return the lowest perplexity that every seed of every cell reaches; inf if one has none."""
    return max(_lowest(log) for cell in group for log in cell.evaluations.values())


def _lowest(log: pd.DataFrame) -> float:
    known = log["perplexity"][np.isfinite(log["perplexity"]) & log["seconds"].notna()]
    return float(known.min()) if len(known) else inf

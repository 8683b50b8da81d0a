"""Update efficiency: how many updates of flush one update of another method is worth.

    loss │╲ ╲
         │ ╲  ╲  method          E at update t  =  u / t
         │  ╲    ╲
         │- - ╲- - -╲- - -       flush has at update u the loss that the method has at t
         │ flush ╲      ╲
         └─────u──────t────▶ updates

At one batch size updates and tokens are the same, up to a factor. So the speed-up of a method at a
loss is its throughput over flush's, times E. Nothing is extrapolated: where flush never has the
method's loss, or has it before its first value, there is no E.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.optimize import isotonic_regression

from analysis.cells import Cell, differences
from analysis.counterparts import Published
from analysis.q2.speedup import Contest
from analysis.statistics import binned

BINS = 40
"""Bins of equal tokens in which the training loss is compared."""

EARLIEST = 0.2
"""The share of training before which curves are too steep and too noisy to compare."""


def flush_of(method: Cell, group: Sequence[Cell]) -> Cell | None:
    """Return the flush of one setting that `method` is compared with; None if there is none."""
    flushes = (cell for cell in group if cell.variant.is_flush)
    return next((cell for cell in flushes if not differences(cell, method)), None)


def from_losses(method: Cell, flush: Cell, bins: int = BINS) -> pd.DataFrame:
    """Return E from binned training losses: shares of the training (from EARLIEST to 1) × the seeds
    that both have."""
    mine, theirs = (_curves(cell, bins) for cell in (method, flush))
    seeds = [seed for seed in mine if seed in theirs]
    values = {
        seed: [_first(theirs[seed], loss) / tokens for tokens, loss in mine[seed].items()]
        for seed in seeds
    }
    share = mine.index / method.tokens.max()
    found = pd.DataFrame(values, index=share.rename("share"), dtype=float)
    return found[found.index >= EARLIEST]


def from_perplexity(contest: Contest, perplexity: float) -> pd.Series:
    """Return E by seed, from the tokens at which flush and PACI first reach a validation
    perplexity; NaN where one of them does not."""
    flush = contest.match or contest.fastest
    theirs, ours = (it.tokens_to(perplexity) for it in (flush, contest.paci))
    seeds = sorted({*theirs.index} & {*ours.index})
    found = (theirs / ours)[seeds]
    return found.where(np.isfinite(found) & (found > 0))


def at_share(efficiency: pd.DataFrame, share: float, width: float = 0.1) -> pd.Series:
    """Return the mean E of each seed over the bins up to `share`, from `share` - `width` on."""
    inside = (efficiency.index <= share + 1e-9) & (efficiency.index > share - width)
    return efficiency[inside].mean()


class Implied(NamedTuple):
    """The update efficiency that the paper's tables imply at a threshold."""

    batch: int
    method: str
    perplexity: float
    share: float  # of PACI's training, when it reaches the threshold
    efficiency: float


def implied(published: Published) -> list[Implied]:
    """Return matched speed-up at a threshold (Table 6) over the ratio of total runtimes (Table 4),
    which is that of throughputs: both train on the same tokens."""
    totals = published("table_4").set_index(["batch", "method"])
    rows = []
    for it in published("table_6").itertuples():
        if "paci" not in it.method:
            continue
        total = totals.loc[(it.batch, it.method)]
        rows.append(
            Implied(
                int(it.batch), it.method, it.perplexity, it.hours / total["hours"],
                it.match / total["match"],
            )
        )  # fmt: skip
    return rows


def _curves(cell: Cell, bins: int) -> pd.DataFrame:
    """Return the loss in bins, by the tokens in the middle of each: the falling curve that is
    nearest to the means of the bins. Text that is easy by chance would else end the search for a
    loss too early."""
    curves = binned(cell.losses, cell.tokens, bins).dropna()
    middles = curves.index.to_numpy() - cell.tokens.max() / bins / 2
    falling = {seed: isotonic_regression(curves[seed], increasing=False).x for seed in curves}
    return pd.DataFrame(falling, index=pd.Index(middles, name="tokens"))


def _first(curve: pd.Series, loss: float) -> float:
    """Return the tokens at which `curve` is first at or below `loss`, linear between two bins."""
    below = np.flatnonzero(curve.to_numpy() <= loss)
    if not len(below) or below[0] == 0:
        return np.nan
    before, after = curve.iloc[below[0] - 1], curve.iloc[below[0]]
    start, end = curve.index[below[0] - 1], curve.index[below[0]]
    return float(start + (end - start) * (before - loss) / (before - after))

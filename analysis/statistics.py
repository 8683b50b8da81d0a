"""Means, spreads and intervals over seeds and repetitions. The spread of one value is undefined."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, sqrt
from typing import NamedTuple, TypeAlias

import numpy as np
import pandas as pd
from scipy.stats import t as student

FINAL_FRACTION = 0.05
"""The final training loss is the mean over this last part of the updates."""

BINS = 380
"""Bins of equal tokens in which the spread over seeds is taken: the paper logs means over 500 of
its 190,000 updates of 256 sequences. A run of fewer updates has a bin for each."""

POWER = 0.8
"""The probability with which `Estimate.seeds_for` wants an answer."""

MOST_SEEDS = 1000


class Sample(NamedTuple):
    """A mean and standard deviation (ddof=1) over so many seeds: what a published table prints."""

    mean: float
    std: float
    seeds: int


Quantity: TypeAlias = pd.Series | Sample
"""A value of each seed (a series, indexed by seed), or only their mean and spread."""


@dataclass(frozen=True)
class Estimate:
    """A mean over seeds, its standard error and the degrees of freedom of Student's t."""

    mean: float
    error: float
    freedom: float
    seeds: int

    def half_width(self, level: float = 0.95) -> float:
        """Return half of the width of the confidence interval; NaN below two seeds."""
        if not self.error:  # a simulated clock, say: every seed has the same value
            return self.error
        return float(student.ppf((1 + level) / 2, self.freedom)) * self.error

    def seeds_for(self, room: float, level: float = 0.95) -> int | None:
        """Return the seeds with which an interval of this `level` stays within `room` of the true
        mean, on both sides, with the probability POWER; None if that takes more than MOST_SEEDS.
        """
        if not room > 0 or np.isnan(self.error) or self.seeds < 2:
            return None
        per_seed = self.error * sqrt(self.seeds)
        counts = np.arange(2, MOST_SEEDS + 1)
        freedom = self.freedom * (counts - 1) / (self.seeds - 1)
        quantiles = student.ppf((1 + level) / 2, freedom) + student.ppf((1 + POWER) / 2, freedom)
        enough = np.flatnonzero(quantiles * per_seed / np.sqrt(counts) <= room)
        return int(counts[enough[0]]) if len(enough) else None


def contrast(*terms: tuple[float, Quantity]) -> Estimate:
    """Estimate a weighted sum of quantities, given as (weight, quantity).

    If all are series the sum is taken seed by seed, over the seeds that all have: methods that
    share a seed share their initial weights and the order of their data, which then cancels. If
    one is a Sample, all are taken as independent (Welch and Satterthwaite).
    """
    series = [(weight, it) for weight, it in terms if isinstance(it, pd.Series)]
    if len(series) == len(terms):
        total = pd.concat([weight * it for weight, it in series], axis=1, join="inner")
        values = total.sum(axis=1, skipna=False)
        mean, std = mean_and_std(values)
        return Estimate(mean, std / sqrt(len(values) or 1), len(values) - 1, len(values))
    samples = [(weight, sample(it)) for weight, it in terms]
    mean = sum(weight * it.mean for weight, it in samples)
    parts = [(weight**2 * it.std**2 / it.seeds, it.seeds - 1) for weight, it in samples]
    variance = sum(part for part, _ in parts)
    fourth = sum(part**2 / freedom for part, freedom in parts)
    freedom = variance**2 / fourth if fourth else inf
    return Estimate(mean, sqrt(variance), freedom, min(it.seeds for _, it in samples))


def sample(quantity: Quantity) -> Sample:
    """Return the mean and spread of a quantity."""
    if isinstance(quantity, Sample):
        return quantity
    return Sample(*mean_and_std(quantity), len(quantity))


def logarithm(quantity: Quantity) -> Quantity:
    """Return the natural logarithm; of a Sample, to first order in its spread."""
    if isinstance(quantity, Sample):
        return Sample(float(np.log(quantity.mean)), quantity.std / quantity.mean, quantity.seeds)
    return np.log(quantity)


def final_losses(losses: pd.DataFrame) -> pd.Series:
    """Return each seed's mean loss over the last 5 % of the updates (at least one), nats per token.

    A seed with an undefined loss in that part has diverged and gets NaN, not the mean of the rest.
    """
    last = max(1, round(FINAL_FRACTION * len(losses)))
    return losses.tail(last).mean(skipna=False)


def binned(losses: pd.DataFrame, tokens: pd.Series, bins: int = BINS) -> pd.DataFrame:
    """Return the mean loss in bins of equal tokens: one row a bin that an update ends in, indexed
    by the tokens at the bin's end; one column a seed.

    `losses` has a row for each update, `tokens` the tokens seen after it.
    """
    seen = tokens.reindex(losses.index).to_numpy(dtype=float)
    if not len(seen):
        return losses
    width = seen[-1] / bins
    number = np.ceil(seen / width - 1e-9)
    means = losses.groupby(number).mean()
    means.index = means.index * width
    return means.rename_axis("tokens")


def rms_of_std(losses: pd.DataFrame) -> float:
    """Return the root mean square, over rows, of the across-seed standard deviation (ddof=1).

    Over `binned` losses this is the run-to-run variability that the paper reports (Table 3). NaN
    with fewer than two seeds or with a diverged one; a passing undefined loss leaves its row out.
    """
    if losses.shape[1] < 2 or final_losses(losses).isna().any():
        return np.nan
    spread = losses.dropna().std(axis=1, ddof=1)
    return float(np.sqrt((spread**2).mean()))


def mean_and_std(values: pd.Series | Sequence[float]) -> tuple[float, float]:
    """Return the mean and standard deviation (ddof=1) over seeds; both NaN if a seed diverged, the
    deviation also below two seeds."""
    values = pd.Series(values, dtype=float)
    return float(values.mean(skipna=False)), float(values.std(ddof=1, skipna=False))


def mean_and_interval(values: pd.Series) -> tuple[float, float]:
    """Return the mean and half of the width of its 95 % confidence interval by Student's t, which
    for two values is 13 standard errors and for three 4; NaN where undefined."""
    estimate = contrast((1.0, values))
    return estimate.mean, estimate.half_width()


def smoothed(losses: pd.DataFrame, window: int) -> pd.DataFrame:
    """Return mean over seeds and across-seed standard deviation per row, over a centred window.

    The deviation is the root mean square over the window, so that the band of a figure and
    `rms_of_std` are the same statistic. Columns: mean, std.
    """
    mean = losses.mean(axis=1, skipna=False)
    variance = losses.var(axis=1, ddof=1, skipna=False)
    over = [it.rolling(window, min_periods=1, center=True).mean() for it in (mean, variance)]
    return pd.DataFrame({"mean": over[0], "std": np.sqrt(over[1])})

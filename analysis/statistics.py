"""Statistics over seeds and repetitions. A spread of one value is undefined, not zero."""

import numpy as np
import pandas as pd

FINAL_FRACTION = 0.05
"""The final training loss is the mean over this last part of the updates."""

STUDENTS_T = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
    *(2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
)
"""97.5 % quantiles of Student's t with 1 to 30 degrees of freedom (NIST/SEMATECH e-Handbook of
Statistical Methods, 1.3.6.7.2). With more, the last is taken, which is at most 5 % too large."""


def final_losses(losses: pd.DataFrame) -> pd.Series:
    """Each seed's mean loss over the last 5 % of the updates (at least one), nats per token.

    A seed with an undefined loss in that part has diverged and gets NaN, not the mean of the rest.
    """
    last = max(1, round(FINAL_FRACTION * len(losses)))
    return losses.tail(last).mean(skipna=False)


def rms_of_std(losses: pd.DataFrame) -> float:
    """Root mean square over updates of the across-seed standard deviation (ddof=1) of the loss.

    Run-to-run variability as the paper reports it (arXiv 2606.07881). NaN with fewer than two
    seeds or with a diverged one; a passing undefined loss leaves that update out.
    """
    if losses.shape[1] < 2 or final_losses(losses).isna().any():
        return np.nan
    spread = losses.dropna().std(axis=1, ddof=1)
    return float(np.sqrt((spread**2).mean()))


def mean_and_std(values: pd.Series) -> tuple[float, float]:
    """Mean and standard deviation (ddof=1) over seeds; NaN if one seed diverged, or for the
    deviation if there is only one."""
    return float(values.mean(skipna=False)), float(values.std(ddof=1, skipna=False))


def mean_and_interval(values: pd.Series) -> tuple[float, float]:
    """Mean, and half the width of its 95 % confidence interval by Student's t, which for two
    values is 13 standard errors and for three 4; both NaN if a value is undefined, the interval
    also below two values."""
    mean, std = mean_and_std(values)
    if len(values) < 2:
        return mean, np.nan
    quantile = STUDENTS_T[min(len(values) - 1, len(STUDENTS_T)) - 1]
    return mean, quantile * std / np.sqrt(len(values))


def paired_gap(ours: pd.Series, theirs: pd.Series) -> tuple[float, float]:
    """`mean_and_interval` of the difference ours - theirs over the seeds that both have.

    Paired, because methods at one batch size and seed see the same data in the same order, so the
    noise of the data cancels.
    """
    return mean_and_interval((ours - theirs)[ours.index.intersection(theirs.index)])


def smoothed(losses: pd.DataFrame, window: int) -> pd.DataFrame:
    """Mean over seeds and across-seed standard deviation per update, over a centred window.

    The deviation is the root mean square over the window, so that the band of a figure and
    `rms_of_std` are the same statistic. Columns: mean, std.
    """
    rolling = {"window": window, "min_periods": 1, "center": True}
    mean = losses.mean(axis=1, skipna=False).rolling(**rolling).mean()
    variance = losses.var(axis=1, ddof=1, skipna=False).rolling(**rolling).mean()
    return pd.DataFrame({"mean": mean, "std": np.sqrt(variance)})

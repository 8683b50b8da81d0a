"""How the cost of late gradients goes with the length of training, and a power law through it.

    gap(u) = c · u^-p          u: updates of the whole training, each with a schedule of its own

The same law is fitted to 1 - E, the share of the updates that is lost. The fit is a straight line
by least squares through the logarithms of the means over seeds. Its interval is the 95 % percentile
interval of a bootstrap that draws seeds, the same ones at every length. With three seeds it is too
narrow, and it holds nothing of the doubt whether the law goes on beyond the lengths measured.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from analysis.efficiency import at_share, from_losses
from analysis.tuning import Pair

PAPER = 190_000
"""Updates of the paper's trainings at its larger batch."""

DRAWS = 2000
FEWEST = 3
"""Lengths below which no law is fitted: a line through two points fits always."""


class Extrapolated(NamedTuple):
    """A power law, its value at a number of updates, and their 95 % intervals."""

    power: float  # p
    powers: tuple[float, float]
    value: float
    values: tuple[float, float]
    fitted: float  # the share of the bootstrap's draws to which a law could be fitted


def gap(pair: Pair) -> pd.Series:
    """Return, by seed, the method's final training loss less flush's, nats per token."""
    return (pair.method.final_losses - pair.flush.final_losses).dropna()


def lost(pair: Pair) -> pd.Series:
    """Return, by seed, 1 - E at the end of training."""
    return 1 - at_share(from_losses(pair.method, pair.flush), 1.0).dropna()


def power_law(table: pd.DataFrame, at: float = PAPER, draws: int = DRAWS) -> Extrapolated | None:
    """Fit the law to `table`, lengths in updates × seeds, and extrapolate it to `at` updates.

    Returns None for fewer than FEWEST lengths that all seeds have, or where a mean is not positive.
    """
    table = table.dropna()
    if len(table) < FEWEST or table.shape[1] == 0:
        return None
    found = _fit(table.index, table.mean(axis=1))
    if found is None:
        return None
    random = np.random.default_rng(0)
    picked = random.integers(table.shape[1], size=(draws, table.shape[1]))
    fits = [_fit(table.index, table.iloc[:, columns].mean(axis=1)) for columns in picked]
    laws = np.array([fit for fit in fits if fit is not None])
    powers = np.percentile(laws[:, 0], [2.5, 97.5])
    values = np.percentile(laws[:, 1] - laws[:, 0] * np.log(at), [2.5, 97.5])
    power, scale = found
    return Extrapolated(
        power,
        (float(powers[0]), float(powers[1])),
        float(np.exp(scale - power * np.log(at))),
        (float(np.exp(values[0])), float(np.exp(values[1]))),
        len(laws) / draws,
    )


def _fit(updates: pd.Index, means: pd.Series) -> tuple[float, float] | None:
    """Return p and log c; None if a logarithm is undefined."""
    if not (means > 0).all():
        return None
    slope, scale = np.polyfit(np.log(updates.to_numpy(float)), np.log(means.to_numpy()), 1)
    return -float(slope), float(scale)


def by_length(found: Sequence[tuple[int, pd.Series]]) -> pd.DataFrame:
    """Return a table of lengths in updates × seeds from pairs of both."""
    return pd.DataFrame({updates: values for updates, values in found}).T.sort_index()

"""The measured drift of the weights between a micro-batch's forward and its backward."""

from collections import Counter
from collections.abc import Sequence

import pandas as pd

from analysis.cells import Cell


def drift_histogram(group: Sequence[Cell]) -> pd.DataFrame:
    """Count micro-batches by stage (rows) and drift in versions (columns), over all cells."""
    counts: dict[int, Counter[int]] = {}
    for cell in group:
        for stage, histogram in zip(cell.stages["stage"], cell.stages["drift"], strict=True):
            counts.setdefault(stage, Counter()).update(histogram)
    frame = pd.DataFrame.from_dict(counts, orient="index").fillna(0).sort_index()
    return frame.reindex(columns=range(int(max(frame.columns, default=-1)) + 1), fill_value=0)


def largest_drift(group: Sequence[Cell]) -> pd.Series:
    """Return the largest measured drift of each stage, versions; stages without a measurement are
    left out."""
    histogram = drift_histogram(group)
    measured = histogram[histogram.sum(axis=1) > 0]
    return measured.gt(0).mul(measured.columns.to_numpy(dtype=int)).max(axis=1)


def mean_movement(group: Sequence[Cell]) -> pd.Series:
    """Return the mean relative movement of each stage's weights from forward to backward, a
    fraction of their norm."""
    moves = pd.concat([cell.movement for cell in group])
    return moves.groupby("stage")["relative"].mean()

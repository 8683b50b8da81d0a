"""Measured drift of the weights between a micro-batch's forward and its backward."""

from collections import Counter

import pandas as pd

from analysis.cells import Cell


def drift_histogram(group: list[Cell]) -> pd.DataFrame:
    """Micro-batches by stage (rows) and drift in versions (columns), summed over the cells."""
    counts: dict[int, Counter] = {}
    for cell in group:
        for stage, histogram in zip(cell.stages["stage"], cell.stages["drift"], strict=True):
            counts.setdefault(stage, Counter()).update(histogram)
    frame = pd.DataFrame.from_dict(counts, orient="index").fillna(0).sort_index()
    return frame.reindex(columns=range(int(max(frame.columns, default=-1)) + 1), fill_value=0)


def largest_drift(group: list[Cell]) -> pd.Series:
    """Largest measured drift of each stage, versions; stages without a measurement are left out."""
    histogram = drift_histogram(group)
    measured = histogram[histogram.sum(axis=1) > 0]
    return measured.gt(0).mul(measured.columns.to_numpy(dtype=int)).max(axis=1)


def mean_movement(group: list[Cell]) -> pd.Series:
    """Mean relative movement of each stage's weights between forward and backward (a fraction)."""
    moves = pd.concat([cell.movement for cell in group])
    return moves.groupby("stage")["relative"].mean()

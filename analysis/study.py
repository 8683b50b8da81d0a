"""The numbers of a study: an experiment whose runs differ in a few settings, seed for seed."""

import pandas as pd

from analysis.cells import CannotAnswer, Cell, cells, of_experiments
from analysis.frames import Frames
from analysis.q1.drift import largest_drift
from analysis.statistics import mean_and_std

MIB = 2**20
SMOOTHED = 5
"""Updates over which a loss is smoothed before its rises are looked for."""


def study(frames: Frames, experiment: str) -> list[Cell]:
    """Return the cells of an experiment. Raises CannotAnswer if none of its runs is a result."""
    mine = of_experiments(frames, [experiment])
    if mine.used.empty:
        raise CannotAnswer(
            f"no run of experiment={experiment} is completed: "
            f"python -m experiments.sweep experiment={experiment}"
        )
    return cells(mine)


def numbers(cell: Cell) -> dict[str, object]:
    """Return the row of a cell: its setting, then means over its seeds.

    Memory is that of the fullest stage, MiB. `copied` is the share of the weights of which graphs
    keep a copy: their backward sees the weights of its forward, whatever drift is counted. `time`
    is that of an update, on the cell's clock.
    """
    loss, std = mean_and_std(cell.final_losses)
    stages = cell.stages
    return {
        **cell.setting.columns,
        "variant": cell.variant.label,
        "seeds": cell.seeds,
        "diverged": int(cell.final_losses.isna().sum()),
        "final loss": loss,
        "final loss ±": std,
        "largest rise": largest_rise(cell).mean(),
        "largest drift": largest_drift([cell]).max(),
        "copied (%)": 100 * stages["copied"].max(),
        "activations (MiB)": stages["activation_bytes"].max() / MIB,
        "weight copies (MiB)": stages["version_bytes"].max() / MIB,
        "time": time_of_update(cell),
    }


def largest_rise(cell: Cell) -> pd.Series:
    """Return, by seed, how far the smoothed training loss rises at most above its lowest value so
    far, nats per token: the height of the largest spike."""
    curve = cell.losses.rolling(SMOOTHED).mean()
    return (curve - curve.cummin()).max()


def time_of_update(cell: Cell) -> float:
    """Return the mean time of an update, in seconds or in units of cost, without evaluations."""
    log = cell.frames.updates
    log = log[log.index.get_level_values("run").isin(cell.runs)]
    time = log["seconds"].fillna(log["units"])
    last = time.groupby(level="run").last() / log["update"].groupby(level="run").last()
    return float(last.mean())

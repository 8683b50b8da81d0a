"""The simulations that `experiments.extrapolate` wrote, and the choice of those to compare."""

import pandas as pd

from analysis.cells import CannotAnswer
from analysis.frames import Frames

PARAMETERS = [
    *("schedule", "stages", "accumulation", "slack"),
    *("transfer", "jitter", "microbatches", "seed"),
]
RESULTS = ["utilization", "max_drift", "drift_bound", "peak_in_flight"]


def simulations(frames: Frames) -> pd.DataFrame:
    """Return a row for each simulated point: `PARAMETERS`, `RESULTS`, and slack and accumulation as
    shares of the stages. Times are in forwards of a micro-batch; a backward takes two.

    Raises CannotAnswer if there is none, or if the lines are not those of simulations.
    """
    read = frames.simulations
    if read.empty:
        raise CannotAnswer("nothing is simulated: python -m experiments.extrapolate")
    if missing := [name for name in (*PARAMETERS, *RESULTS) if name not in read]:
        raise CannotAnswer(f"the lines of simulations.jsonl have no {missing[0]}")
    whole = read[[*PARAMETERS, *RESULTS]].dropna().drop_duplicates(PARAMETERS, keep="last")
    return whole.sort_values(PARAMETERS, ignore_index=True).assign(
        slack_share=lambda it: it["slack"] / it["stages"],
        window_share=lambda it: it["accumulation"] / it["stages"],
    )


def broadest(points: pd.DataFrame, axes: list[str]) -> pd.DataFrame:
    """Return the points at one number of stages: the one with the most values of `axes`."""
    spread = points.groupby("stages")[axes].nunique().prod(axis=1)
    return points[points["stages"] == spread.idxmax()]

"""The claims of the paper's Q3 (throughput and memory), judged on the runs at hand."""

import pandas as pd

from analysis.cells import CannotAnswer
from analysis.runs import Frames


def q3_claims(frames: Frames) -> pd.DataFrame:
    """One row per claim, scale and clock; columns as in `analysis.claims.COLUMNS`."""
    raise CannotAnswer("no run of q3 is completed")

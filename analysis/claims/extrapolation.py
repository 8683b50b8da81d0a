"""The claims of the paper's extrapolation to larger models, judged on published figures and
simulations."""

import pandas as pd

from analysis.cells import CannotAnswer
from analysis.runs import Frames


def extrapolation_claims(frames: Frames) -> pd.DataFrame:
    """One row per claim; columns as in `analysis.claims.COLUMNS`."""
    raise CannotAnswer("nothing of the extrapolation is simulated")

"""The claims of the paper's Q2 (time to perplexity), judged on the runs at hand."""

from collections.abc import Sequence

import pandas as pd

from analysis.cells import CannotAnswer, Cell


def q2_claims(
    made: list[Cell], published: pd.DataFrame, thresholds: Sequence[float] | None = None
) -> pd.DataFrame:
    """One row per claim, batch and PACI variant; columns as in `analysis.claims.COLUMNS`."""
    raise CannotAnswer("no run of experiment q2 is completed")

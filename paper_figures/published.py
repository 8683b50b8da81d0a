"""Numbers printed by the papers, kept with their source."""

from pathlib import Path

import pandas as pd

REFERENCE = Path(__file__).parent / "reference"


def published(question: str) -> pd.DataFrame:
    """The published figures for "q1", ...: claim, batch, variant, value, spread, unit, source."""
    return pd.read_csv(REFERENCE / f"{question}.csv")

"""Numbers printed by the papers, kept with their source."""

from pathlib import Path

import pandas as pd

REFERENCE = Path(__file__).parent / "reference"


def published(question: str) -> pd.DataFrame:
    """The published figures of reference/`question`.csv, "q1" or "methods", each with its source.

    Those of a question have a claim, a value and its unit, and where they belong: batch, variant,
    perplexity.
    """
    return pd.read_csv(REFERENCE / f"{question}.csv")

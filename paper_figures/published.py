"""The numbers that the papers print, with their source."""

from pathlib import Path

import pandas as pd

REFERENCE = Path(__file__).parent / "reference"


def published(name: str) -> pd.DataFrame:
    """Read reference/`name`.csv; every row has its source.

    table_1, table_2, table_3, table_4, table_6    tables of the paper, by its numbers
    claims                                         the claims of the paper, in words
    methods                                        the traits of methods, by their own papers
    zero_bubble, zero_bubble_times                 Qi et al., ICLR 2024
    """
    return pd.read_csv(
        REFERENCE / f"{name}.csv", dtype={"memory": str} if name == "table_1" else {}
    )

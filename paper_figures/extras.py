"""Final training loss and run-to-run variability of methods that the paper does not train."""

import sys

import pandas as pd

from analysis import CannotAnswer, Frames, cells
from paper_figures.command import main
from paper_figures.table_3_stability import stability

NEEDS = "training"


def table(frames: Frames) -> pd.DataFrame:
    """Return, per variant and batch, the columns of Table 3, without the paper's."""
    others = [cell for cell in cells(frames) if not cell.variant.in_paper]
    if not others:
        raise CannotAnswer("no training run of another method than 1f1b-flush and paci")
    made = stability(others)
    return made.drop(columns=[name for name in made if name.startswith("paper's")])


if __name__ == "__main__":
    sys.exit(main(["extras"]))

"""The claims of Q1 and one of our own: the paper's figure, ours, and whether it holds."""

import sys

import pandas as pd

from analysis import Frames, cells
from analysis.claims import q1_claims
from paper_figures.command import main
from paper_figures.published import published

EXPERIMENT = "q1"


def table(frames: Frames) -> pd.DataFrame:
    return q1_claims(cells(frames, EXPERIMENT), published(EXPERIMENT))


if __name__ == "__main__":
    sys.exit(main(["claims"]))

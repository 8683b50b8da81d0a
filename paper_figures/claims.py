"""Every claim of the paper and some of our own: the paper's figure, ours, and whether it holds."""

import sys

import pandas as pd

from analysis import Frames
from analysis.claims import all_claims
from paper_figures.command import main
from paper_figures.published import published

EXPERIMENT = ("q1", "q2", "q3", "q3-emulated", "q3-real", "extrapolation")


def table(frames: Frames) -> pd.DataFrame:
    return all_claims(frames, published)


if __name__ == "__main__":
    sys.exit(main(["claims"]))

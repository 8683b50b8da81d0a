"""Every claim of the paper and some of our own: the paper's figure, ours, and whether it holds."""

import sys
from collections.abc import Sequence

import pandas as pd

from analysis import Frames
from analysis.claims import all_claims
from analysis.verdicts import FAILS, HOLDS, TRACKING_MARGIN, UNDECIDED, UNTESTABLE, UNTESTED
from paper_figures.command import main
from paper_figures.published import published

EXPERIMENT = ("q1", "q2", "q3", "q3-emulated", "q3-real", "extrapolation")


def table(frames: Frames, thresholds: Sequence[float] | None = None) -> pd.DataFrame:
    return all_claims(frames, published, thresholds)


def note(made: pd.DataFrame) -> str:
    return (
        "Ours: means over seeds ± one standard error, of differences and ratios seed by seed; the "
        "paper's ± is as it prints it. Final losses, in nats per token of either's data, track "
        f"each other if they differ by at most {TRACKING_MARGIN} beyond doubt, which is two "
        f"standard errors wherever a rule says {HOLDS} or {FAILS}. {UNDECIDED.capitalize()}: it "
        f"was measured, but both answers remain open. {UNTESTABLE.capitalize()}: runs of this "
        f"scale or on this clock cannot tell. {UNTESTED.capitalize()}: the runs it takes are not "
        "there. A small run's verdict is about that run: scale and clock are part of it."
    )


if __name__ == "__main__":
    sys.exit(main(["claims"]))

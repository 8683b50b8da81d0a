"""Every claim of the paper and some of our own: the paper's figure, ours, and whether it holds."""

import sys
from collections.abc import Sequence

import pandas as pd

from analysis import Frames
from analysis.claims import all_claims
from analysis.claims.q3 import MARGIN
from analysis.claims.verdicts import FAILS, HOLDS, TRACKING_MARGIN, UNDECIDED, UNTESTABLE, UNTESTED
from paper_figures.command import main
from paper_figures.published import published

EXPERIMENT = ("q1", "q2", "q3", "q3-emulated", "q3-real", "extrapolation")


def table(frames: Frames, thresholds: Sequence[float] | None = None) -> pd.DataFrame:
    return all_claims(frames, published, thresholds)


def note(made: pd.DataFrame) -> str:
    return (
        "Ours: means over seeds ± half of their 95% interval (Student's t), of differences and "
        "ratios seed by seed; the paper's ± is as it prints it. Final losses, in nats per token of "
        f"either's data, track each other if they differ by at most {TRACKING_MARGIN}, "
        f"throughputs are equal within {MARGIN:.0%}. Of means, a rule says {HOLDS} or {FAILS} "
        "only if all of the 95% interval does; of spreads, only if it does without any one of "
        f"the seeds. {UNDECIDED.capitalize()}: it was measured, but both answers remain "
        f"open. {UNTESTABLE.capitalize()}: runs of this scale or on this clock cannot tell. "
        f"{UNTESTED.capitalize()}: the runs it takes are not "
        "there. A small run's verdict is about that run: scale and clock are part of it. The "
        "extrapolation's rest on no run, but on published figures and on simulation."
    )


if __name__ == "__main__":
    sys.exit(main(["claims"]))

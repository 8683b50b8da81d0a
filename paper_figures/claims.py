"""Every claim of the paper and some of our own: the paper's figure, ours, and whether it holds."""

import sys

import pandas as pd

from analysis import Frames
from analysis.claims import all_claims
from analysis.claims.learning import MARGIN
from analysis.claims.verdicts import FAILS, HOLDS, UNDECIDED, UNTESTABLE, UNTESTED
from analysis.q2.thresholds import PAPERS_WAY, Thresholds
from analysis.q3.theory import LEAST_TOLERANCE
from paper_figures.command import main
from paper_figures.published import published

NEEDS = ("training", "throughput", "simulations")


def table(frames: Frames, thresholds: Thresholds = PAPERS_WAY) -> pd.DataFrame:
    return all_claims(frames, published, thresholds)


def note(made: pd.DataFrame) -> str:
    return (
        "Ours: means over seeds ± half of their 95% interval (Student's t); differences and ratios "
        "are taken seed by seed. The paper's ± is as printed. A final loss counts as flush's "
        f"within {MARGIN} nats per token of its data, and a perplexity within {MARGIN:.0%}, by two "
        f"one-sided tests at 5%. Throughputs count as equal within {LEAST_TOLERANCE:.0%}, or as "
        "far as the paper's own differ at that micro-batch size. On other means a rule says "
        f"{HOLDS} or {FAILS} only if the whole 95% interval does; it compares spreads by Fisher's "
        "test. The same rules judge the numbers that the paper prints, as if its seeds were "
        f"independent. {UNDECIDED.capitalize()}: it was measured, but both answers remain open; "
        "so many seeds would decide with a probability of 80%. "
        f"{UNTESTABLE.capitalize()}: runs at this scale or on this clock cannot tell. "
        f"{UNTESTED.capitalize()}: the runs that the rule needs are not there. A verdict on a "
        "small run is about that run: scale and clock belong to it. The claims about the "
        "extrapolation rest on published numbers and simulation, not on runs."
    )


if __name__ == "__main__":
    sys.exit(main(["claims"]))

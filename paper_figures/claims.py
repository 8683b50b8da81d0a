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
        "Ours: means over seeds ± half of their 95% interval (Student's t), of differences and "
        "ratios seed by seed; the paper's ± is as it prints it. Final losses (nats per token of "
        f"either's data) and perplexities count as flush's within {MARGIN} and {MARGIN:.0%}, by "
        f"two one-sided tests at 5%; throughputs are equal within {LEAST_TOLERANCE:.0%}, or as far "
        "as the paper's own differ at that size of micro-batches. Of other means, a rule says "
        f"{HOLDS} or {FAILS} only if all of the 95% interval does; of spreads, by Fisher's test. "
        "The same rules judge the numbers that the paper prints, as if its seeds were "
        f"independent. {UNDECIDED.capitalize()}: it was measured, but both answers remain open; "
        "the number of seeds is what would decide with a probability of 80%. "
        f"{UNTESTABLE.capitalize()}: runs of this scale or on this clock cannot tell. "
        f"{UNTESTED.capitalize()}: the runs it takes are not there. A small run's verdict is about "
        "that run: scale and clock are part of it. The extrapolation's rest on no run, but on "
        "published numbers and on simulation."
    )


if __name__ == "__main__":
    sys.exit(main(["claims"]))

"""The theory check: measured flush over its bubble efficiency m/(m+N-1) against measured PACI."""

import sys

import pandas as pd

from analysis import CannotAnswer, Frames
from analysis.q3.throughput import EXPERIMENTS, theory_check, throughput
from paper_figures.command import main
from paper_figures.published import published

EXPERIMENT = EXPERIMENTS


def table(frames: Frames) -> pd.DataFrame:
    """Tokens/s; a row for each setting and micro-batch count at which both were measured."""
    checked = theory_check(throughput(frames))
    if checked.empty:
        raise CannotAnswer("no setting at which both paci and 1f1b-flush are completed")
    theirs = published("q3").set_index("claim")["value"]
    return pd.DataFrame(
        {
            "scale": checked["scale"],
            "source": checked["source"],
            "clock": checked["clock"],
            "ranks": checked["ranks"],
            "micro-batch": checked["microbatch"],
            "m": checked["m"],
            "flush": checked["flush"],
            "efficiency": checked["efficiency"],
            "flush / efficiency": checked["predicted"],
            "PACI": checked["paci"],
            "deviation (%)": 100 * checked["deviation"],
            "deviation (%) ±": 100 * checked["doubt"] * (1 + checked["deviation"]),
            "deviation with the stages' own times (%)": 100 * checked["deviation as they are"],
            "speed-up": checked["speedup"],
            "paper's PACI / (flush / efficiency)": theirs["PACI over flush over efficiency"],
        }
    )


def note(made: pd.DataFrame) -> str:
    return (
        "Tokens/s, or tokens per unit on the clock named simulated. Deviation: of PACI from flush "
        "over efficiency, ± its 95% interval. The efficiency m/(m+N-1) is of equal stages; "
        "where their busy times differ, a flush idles less, and PACI deviates from that by what "
        "the column of the stages' own times says."
    )


if __name__ == "__main__":
    sys.exit(main(["theory_check"]))

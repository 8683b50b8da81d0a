"""Throughput of every method against micro-batches of an update, at one size of micro-batches."""

import re
import sys

import pandas as pd
from matplotlib.figure import Figure

from analysis import CannotAnswer, Frames
from analysis.q3.throughput import PLACE, throughput
from paper_figures import style
from paper_figures.command import main

NEEDS = "throughput"


def draw(frames: Frames) -> Figure:
    made = throughput(frames)
    made = made[made["even"]].assign(line=lambda it: [_line(one.label) for one in it["variant"]])
    if made.empty:
        raise CannotAnswer("no throughput run has micro-batches of one size")
    made = pd.concat([_richest(group) for _, group in made.groupby(PLACE)])
    looks = {name: style.distinct(number) for number, name in enumerate(made["line"].unique())}
    fig, panels = style.throughput_panels(made, PLACE, height=2.6)
    for ax, group in panels:
        names = list(group["line"].unique())
        for number, name in enumerate(names):
            beside = 2 * number / max(1, len(names) - 1) - 1
            style.rates(ax, group[group["line"] == name], beside, **looks[name])
        ax.set_ylim(0, 1.05 * ax.get_ylim()[1])
        ax.set_ylabel(style.rate_label(group["clock"].iloc[0]))
        size = int(group["microbatch"].iloc[0])
        ax.set_title(f"{ax.get_title()}\nmicro-batches of {size} sequence{'s' * (size > 1)}")
    style.legend(fig, looks)
    style.caption(
        fig,
        "Steady state; bars: 95% interval of the mean over repetitions. Each panel has the size of "
        "micro-batches that most methods were run at. ×: out of memory.",
        style.partial_note(frames.of(NEEDS).partial),
    )
    return fig


def _line(label: str) -> str:
    """Return a method's label without its micro-batches of an update: "paci slack=2"."""
    return re.sub(r" [am]=\d+", "", label)


def _richest(made: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the size of micro-batches at which most methods were run."""
    return max(
        (group for _, group in made.groupby("microbatch")),
        key=lambda group: (group["line"].nunique(), len(group)),
    )


if __name__ == "__main__":
    sys.exit(main(["throughput_of_methods"]))

"""Figure 9: throughput against micro-batches of an update, for each size of micro-batches."""

import sys

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from analysis import CannotAnswer, Frames
from analysis.manifest import counted
from analysis.q2.timing import GIVEN_COSTS
from analysis.q3.throughput import PLACE, of_sizes, throughput
from paci.schedules.theory import bubble_efficiency
from paper_figures import style
from paper_figures.command import main

NEEDS = "throughput"


def table(frames: Frames) -> pd.DataFrame:
    """Return tokens/s of every method at every setting: the mean over repetitions and its doubt."""
    made = throughput(frames)
    return pd.DataFrame(
        {
            "scale": made["scale"],
            "source": made["source"],
            "clock": made["clock"],
            "ranks": made["ranks"],
            "micro-batch": made["microbatch"],
            "batch": made["batch"],
            "method": [it.label for it in made["variant"]],
            "runs": made["runs"],
            "repetitions": made["repetitions"],
            "tokens/s": made["rate"],
            "tokens/s/device": made["rate"] / made["ranks"],
            "± (%)": 100 * made["doubt"],
            "state": made["state"],
        }
    )


def note(made: pd.DataFrame) -> str:
    given = bool((made["clock"] == GIVEN_COSTS).any())
    units = " The clock named simulated counts units of given costs, not seconds." if given else ""
    return (
        "Micro-batch: its sequences, or the smaller of two sizes where m does not divide the "
        "batch. ±: half of the 95% interval of the mean over repetitions (Student's t), in % of "
        "the mean. Simulated, emulated and real times measure different things: compare each with "
        f"its own kind only.{units}"
    )


def draw(frames: Frames) -> Figure:
    made = of_sizes(throughput(frames))
    if made.empty:
        raise CannotAnswer("no completed throughput run of paci or 1f1b-flush")
    colours = style.size_colours(made["microbatch"])
    fig, panels = style.throughput_panels(made, PLACE, height=2.6)
    for ax, group in panels:
        _panel(ax, group, colours)
    grey = {"color": style.GREY, "markersize": 4}
    looks = [
        Line2D([], [], **grey, marker="o", label="PACI"),
        Line2D([], [], **grey, marker="s", label="flush", markerfacecolor="white", linestyle=""),
        Line2D([], [], **grey, linestyle="--", label="PACI's mean · m/(m+N-1)"),
    ]
    style.size_legend(fig, colours, looks)
    style.caption(
        fig,
        f"Steady state, {counted(made['runs'].sum(), 'run')}; bars: 95% interval of the mean over "
        "repetitions (Student's t). ×: out of memory.",
        style.partial_note(frames.of(NEEDS).partial),
    )
    return fig


def _panel(ax: Axes, group: pd.DataFrame, colours: dict[int, str]) -> None:
    clock, ranks = group["clock"].iloc[0], int(group["ranks"].iloc[0])
    for size, of_size in group.groupby("microbatch"):
        colour = colours[size]
        is_flush = np.array([it.is_flush for it in of_size["variant"]])
        for mine, beside, marker, fill, dashes in (
            (of_size[is_flush], -1.0, "s", "white", ""),
            (of_size[~is_flush], 1.0, "o", colour, "-"),
        ):
            style.rates(
                ax, mine, beside, color=colour, marker=marker, linestyle=dashes,
                markerfacecolor=fill, zorder=3,
            )  # fmt: skip
        mean = of_size.loc[~is_flush, "rate"].mean() / ranks
        counts = np.geomspace(of_size["m"].min(), of_size["m"].max(), 50)
        theory = [mean * bubble_efficiency(ranks, m) for m in counts]
        ax.plot(counts, theory, "--", color=colour, linewidth=0.8)
    # An interval may be wider than all else there is to see: it then leaves the panel.
    ax.set_ylim(0, min(ax.get_ylim()[1], 1.6 * group["rate"].max() / ranks))
    ax.set_ylabel(style.rate_label(clock))


if __name__ == "__main__":
    sys.exit(main(["figure_9_throughput"]))

"""Figure 3: flush's throughput over PACI's against micro-batches of an update, for each micro-batch
size, beside m/(m+N-1)."""

import sys

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from analysis import CannotAnswer, Frames
from analysis.q3.theory import papers_deviations, theory_check
from analysis.q3.throughput import PLACE, throughput
from paci.schedules.theory import bubble_efficiency
from paper_figures import style
from paper_figures.command import main
from paper_figures.published import published

NEEDS = "throughput"


def table(frames: Frames) -> pd.DataFrame:
    """Return tokens/s; a row for each setting and micro-batch count at which both were measured."""
    checked = _checked(frames)
    theirs = (
        papers_deviations(published("table_4")).groupby(["m", "microbatch"])["deviation"].mean()
    )
    place = pd.MultiIndex.from_frame(checked[["m", "microbatch"]])
    return pd.DataFrame(
        {
            "scale": checked["scale"],
            "source": checked["source"],
            "clock": checked["clock"],
            "ranks": checked["ranks"],
            "micro-batch": checked["microbatch"],
            "m": checked["m"],
            "flush": checked["flush"],
            "PACI": checked["paci"],
            "flush / PACI": checked["flush"] / checked["paci"],
            "m/(m+N-1)": checked["efficiency"],
            "PACI from flush over m/(m+N-1) (%)": 100 * checked["deviation"],
            "PACI from flush over m/(m+N-1) (%) ±": 100
            * checked["doubt"]
            * (1 + checked["deviation"]),
            "with the stages' own times (%)": 100 * checked["deviation as they are"],
            "paper's (%)": 100 * theirs.reindex(place).to_numpy(),
        }
    )


def note(made: pd.DataFrame) -> str:
    return (
        "Flush and PACI: tokens/s, or tokens per unit of cost on the clock named simulated. ±: "
        "half of the 95% interval. The efficiency m/(m+N-1) holds for equal stages. A flush of "
        "unequal stages idles less; the column 'with the stages' own times' is PACI's deviation "
        "with their efficiency. Paper's: from the total runtimes in its Table 4, where that has "
        "this m and micro-batch size."
    )


def draw(frames: Frames) -> Figure:
    checked = _checked(frames)
    colours = style.size_colours(checked["microbatch"])
    fig, panels = style.throughput_panels(checked, PLACE, height=2.4)
    for ax, group in panels:
        ranks = int(group["ranks"].iloc[0])
        for size, mine in group.groupby("microbatch"):
            mine = mine.sort_values("m")
            ratio = mine["flush"] / mine["paci"]
            ax.errorbar(
                mine["m"], ratio, yerr=(ratio * mine["doubt"]).fillna(0), color=colours[size],
                marker="o", markersize=3, capsize=2, elinewidth=0.8,
            )  # fmt: skip
        counts = np.geomspace(group["m"].min(), group["m"].max(), 50)
        theory = [bubble_efficiency(ranks, m) for m in counts]
        ax.plot(counts, theory, "--", color=style.GREY, linewidth=1)
        ax.set_ylim(0, max(1.05, *ax.get_ylim()))
        ax.set_ylabel("throughput, flush ÷ PACI")
    theory = Line2D([], [], linestyle="--", color=style.GREY, label="m/(m+N-1)")
    style.size_legend(fig, colours, [theory])
    style.caption(
        fig,
        "Steady state; bars: 95% interval of the ratio of the means over repetitions.",
        style.partial_note(frames.of(NEEDS).partial),
    )
    return fig


def _checked(frames: Frames) -> pd.DataFrame:
    checked = theory_check(throughput(frames))
    if checked.empty:
        raise CannotAnswer("no setting at which both paci and 1f1b-flush are completed")
    return checked


if __name__ == "__main__":
    sys.exit(main(["figure_3_throughput_ratio"]))

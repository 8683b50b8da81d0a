"""Throughput against micro-batches of an update: PACI, the flush, and what theory says of both."""

import sys

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, NullLocator

from analysis import CannotAnswer, Frames
from analysis.manifest import counted
from analysis.q2.thresholds import GIVEN_COSTS
from analysis.q3.throughput import EXPERIMENTS, SETTING, is_papers_paci, throughput
from paci.schedules.theory import bubble_efficiency
from paper_figures import style
from paper_figures.command import main

EXPERIMENT = EXPERIMENTS
PACI = style.BY_ACCUMULATION[8]
MARKS = {"flush": (style.FLUSH, "s"), "PACI": (PACI, "o")}


def table(frames: Frames) -> pd.DataFrame:
    """Tokens/s of every method at every setting: mean over repetitions ± its 95 % interval."""
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
    return (
        "Micro-batches in sequences. ±: half of the 95% interval of the mean over repetitions "
        "(Student's t), in % of it. Simulated, emulated and real times are of different things and "
        "compare within each."
        + " The clock named simulated counts units of given costs, not seconds."
        * given
    )


def draw(frames: Frames) -> Figure:
    made = throughput(frames)
    made = made[[it.is_flush or is_papers_paci(it) for it in made["variant"]]]
    if made.empty:
        raise CannotAnswer("no completed throughput run of paci or 1f1b-flush")
    groups = [group for _, group in made.groupby(SETTING)]
    fig, axes = style.panels(len(groups), height=2.4)
    for ax, group in zip(axes, groups, strict=True):
        _panel(ax, group)
    handles = [
        Line2D([], [], color=c, marker=m, linestyle="", label=n) for n, (c, m) in MARKS.items()
    ]
    handles += [
        Line2D([], [], color=PACI, linestyle="--", label="PACI's mean P"),
        Line2D([], [], color=style.FLUSH, linestyle="--", label="P · m/(m+N-1)"),
    ]
    columns = len(handles) if fig.get_figwidth() > style.COLUMN else 2
    fig.legend(handles=handles, loc="outside upper center", ncols=columns, columnspacing=1.2)
    style.footnote(
        fig,
        f"Steady state, {counted(made['runs'].sum(), 'run')}; bars: 95% interval of the mean over "
        "repetitions (Student's t). "
        "×: out of memory.",
        style.partial_note(frames.of(*EXPERIMENTS).partial),
    )
    return fig


def _panel(ax: Axes, group: pd.DataFrame) -> None:
    clock, ranks = group[["clock", "ranks"]].iloc[0]
    for name, is_it in (("flush", True), ("PACI", False)):
        mine = group[[it.is_flush == is_it for it in group["variant"]]]
        colour, marker = MARKS[name]
        doubts = mine["rate"] * mine["doubt"].fillna(0) / ranks
        ax.errorbar(
            mine["m"], mine["rate"] / ranks, yerr=doubts, color=colour, marker=marker,
            linestyle="", markersize=4, capsize=2, zorder=3,
        )  # fmt: skip
        for m in mine.loc[mine["rate"].isna(), "m"]:
            ax.plot(m, 0, "x", color=colour, clip_on=False)
    mean = group.loc[[not it.is_flush for it in group["variant"]], "rate"].mean() / ranks
    counts = np.geomspace(group["m"].min(), group["m"].max(), 50)
    ax.plot(counts, np.full(50, mean), "--", color=PACI, linewidth=1)
    theory = [mean * bubble_efficiency(ranks, m) for m in counts]
    ax.plot(counts, theory, "--", color=style.FLUSH, linewidth=1)
    ax.set_xscale("log", base=2)
    ax.xaxis.set_major_locator(FixedLocator(sorted(group["m"].unique())))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter("{x:.0f}")
    # An interval may be wider than all else there is to see: it then leaves the panel.
    ax.set_ylim(0, min(ax.get_ylim()[1], 1.6 * group["rate"].max() / ranks))
    ax.set_title(style.throughput_title(group.iloc[0]))
    ax.set_xlabel("micro-batches of an update")
    unit = "unit of cost" if clock == GIVEN_COSTS else "s"
    ax.set_ylabel(f"tokens/{unit}/device\n{style.clock_name(clock)}")


if __name__ == "__main__":
    sys.exit(main(["throughput"]))

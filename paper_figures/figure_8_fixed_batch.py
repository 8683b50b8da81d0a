"""Figure 8: throughput against micro-batches of an update at a fixed batch, which trades the
kernels' efficiency against the bubble."""

import sys

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from analysis import CannotAnswer, Frames
from analysis.q3.throughput import FIXED_BATCH, of_fixed_batch, throughput
from paper_figures import style
from paper_figures.command import main

NEEDS = "throughput"
LOOKS = {"flush": (style.FLUSH, "s"), "PACI": ("#0072B2", "o")}
BESIDE = {"flush": -1.0, "PACI": 1.0}


def table(frames: Frames) -> pd.DataFrame:
    """Return tokens/s of flush and PACI at every split of a batch into micro-batches."""
    made = _splits(frames)
    return pd.DataFrame(
        {
            "scale": made["scale"],
            "source": made["source"],
            "clock": made["clock"],
            "ranks": made["ranks"],
            "batch": made["batch"],
            "m": made["m"],
            "micro-batch": _sizes(made),
            "method": made["of"],
            "tokens/s": made["rate"],
            "± (%)": 100 * made["doubt"],
            "state": made["state"],
        }
    ).sort_values(["scale", "source", "batch", "method", "m"], ignore_index=True)


def note(made: pd.DataFrame) -> str:
    return (
        "Where m does not divide the batch, its first micro-batches have one sequence more, as in "
        "the paper. ±: half of the 95% interval of the mean over repetitions, in % of the mean."
    )


def draw(frames: Frames) -> Figure:
    made = _splits(frames)
    fig, panels = style.throughput_panels(made, FIXED_BATCH, height=2.6)
    for ax, group in panels:
        first = group.iloc[0]
        for of, mine in group.groupby("of"):
            colour, marker = LOOKS[of]
            style.rates(ax, mine, beside=BESIDE[of], color=colour, marker=marker)
        ax.set_ylim(0, 1.05 * ax.get_ylim()[1])
        ax.set_ylabel(style.rate_label(first["clock"]))
        ax.set_title(f"batch {first['batch']}\n{style.throughput_title(first)}")
    handles = [
        Line2D([], [], color=colour, marker=marker, markersize=4, label=of)
        for of, (colour, marker) in LOOKS.items()
    ]
    fig.legend(handles=handles, loc="outside upper center", ncols=len(handles))
    style.caption(
        fig,
        "Steady state; bars: 95% interval of the mean over repetitions. Where m does not divide "
        "the batch, its first micro-batches have one sequence more. ×: out of memory.",
        style.partial_note(frames.of(NEEDS).partial),
    )
    return fig


def _splits(frames: Frames) -> pd.DataFrame:
    made = of_fixed_batch(throughput(frames))
    if made.empty:
        raise CannotAnswer("no batch was split into micro-batches in three ways or more")
    return made.assign(of=["flush" if it.is_flush else "PACI" for it in made["variant"]])


def _sizes(made: pd.DataFrame) -> list[str]:
    return [
        f"{it.microbatch}" if it.even else f"{it.microbatch + 1}, {it.microbatch}"
        for it in made.itertuples()
    ]


if __name__ == "__main__":
    sys.exit(main(["figure_8_fixed_batch"]))

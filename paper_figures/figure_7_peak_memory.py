"""Figure 7: peak memory against micro-batches of an update, for each size of micro-batches."""

import sys

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from analysis import CannotAnswer, Frames
from analysis.q3.memory import memory
from analysis.q3.throughput import PLACE, SETTING, is_papers_paci
from paper_figures import style
from paper_figures.command import main

NEEDS = "throughput"
LOOKS = {"flush": ("--", "s"), "PACI": ("-", "o")}


def table(frames: Frames) -> pd.DataFrame:
    """Return the fullest rank of flush and PACI at each size and number of micro-batches, MiB."""
    fullest = _fullest(frames)
    wide = fullest.pivot_table(index=[*SETTING, "m"], columns="of", values="total").reset_index()
    for missing in {*LOOKS} - {*wide}:
        wide[missing] = float("nan")
    return pd.DataFrame(
        {
            "scale": wide["scale"],
            "source": wide["source"],
            "ranks": wide["ranks"],
            "micro-batch": wide["microbatch"],
            "m": wide["m"],
            "flush (MiB)": wide["flush"] / 2**20,
            "PACI (MiB)": wide["PACI"] / 2**20,
            "PACI / flush": wide["PACI"] / wide["flush"],
            "paper's": ["flush below PACI" if m < n else "equal" for m, n in _full(wide)],
        }
    )


def note(made: pd.DataFrame) -> str:
    return (
        "Peak of the fullest rank: on CUDA as its allocator counts it, elsewhere as its stages "
        "count the bytes of their tensors. A flush of fewer micro-batches than ranks never fills "
        "its pipeline and holds less than PACI, in the paper too (m = 4)."
    )


def draw(frames: Frames) -> Figure:
    fullest = _of_several_counts(_fullest(frames))
    colours = style.size_colours(fullest["microbatch"])
    fig, panels = style.throughput_panels(fullest, PLACE, height=2.4)
    for ax, group in panels:
        unit, name = style.memory_unit(group["total"].max())
        for (size, of), mine in group.groupby(["microbatch", "of"]):
            mine = mine.sort_values("m")
            dashes, marker = LOOKS[of]
            filled = colours[size] if of == "PACI" else "white"
            ax.plot(
                mine["m"], mine["total"] / unit, color=colours[size], linestyle=dashes,
                marker=marker, markersize=4, markerfacecolor=filled, linewidth=1,
            )  # fmt: skip
        ax.set_ylim(bottom=0)
        ax.set_ylabel(f"peak memory ({name})")
    looks = [
        Line2D([], [], color=style.GREY, linestyle=dashes, marker=marker, markersize=4, label=of)
        for of, (dashes, marker) in LOOKS.items()
    ]
    style.size_legend(fig, colours, looks)
    style.caption(
        fig,
        "Peak of the fullest rank: on CUDA as its allocator counts it, elsewhere as its stages "
        "count the bytes of their tensors.",
        style.partial_note(frames.of(NEEDS).partial),
    )
    return fig


def _fullest(frames: Frames) -> pd.DataFrame:
    """Return the fullest rank of flush and of PACI at each setting with micro-batches of one size.

    `total` is the allocator's peak where there is one.
    """
    held = memory(frames).dropna(subset="total")
    held = held[held["even"]]
    held = held[[it.is_flush or is_papers_paci(it) for it in held["variant"]]]
    if held.empty:
        raise CannotAnswer("no throughput run of paci or 1f1b-flush logged its memory by rank")
    held = held.assign(
        total=held["allocated"].fillna(held["total"]),
        of=["flush" if it.is_flush else "PACI" for it in held["variant"]],
    )
    return held.loc[held.groupby([*SETTING, "variant"])["total"].idxmax()]


def _of_several_counts(fullest: pd.DataFrame) -> pd.DataFrame:
    """Drop sizes of micro-batches that only one way of splitting a batch led to, if others are
    left."""
    counts = fullest.groupby([*PLACE, "microbatch"])["m"].transform("nunique")
    return fullest[counts > 1] if (counts > 1).any() else fullest


def _full(wide: pd.DataFrame) -> zip:
    return zip(wide["m"], wide["ranks"], strict=True)


if __name__ == "__main__":
    sys.exit(main(["figure_7_peak_memory"]))

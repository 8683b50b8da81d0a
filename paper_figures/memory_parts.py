"""Peak memory of every rank and method, split into its parts."""

import sys
from textwrap import wrap

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from analysis import CannotAnswer, Frames
from analysis.manifest import counted
from analysis.q3.memory import PARTS, memory
from analysis.q3.throughput import SETTING
from paper_figures import style
from paper_figures.command import main

NEEDS = "throughput"
LONGEST = 22
"""Characters of a line of a method's label."""
COLOURS = dict(zip(PARTS, ("#222222", "#0072B2", "#56B4E9", "#E69F00", "#CC79A7"), strict=True))
HATCHED = {"hatch": "/////", "edgecolor": "white", "linewidth": 0}


def table(frames: Frames) -> pd.DataFrame:
    """Return the fullest rank of every method at every setting, MiB."""
    held = _held(frames)
    fullest = held.loc[held.groupby([*SETTING, "variant"])["total"].idxmax()]
    fullest = fullest.set_index([*SETTING, "m"], drop=False)
    flush = fullest.loc[[it.is_flush for it in fullest["variant"]], "total"]
    return pd.DataFrame(
        {
            "scale": fullest["scale"],
            "source": fullest["source"],
            "ranks": fullest["ranks"],
            "micro-batch": fullest["microbatch"],
            "method": [it.label for it in fullest["variant"]],
            "rank": fullest["rank"],
        }
        | {f"{part} (MiB)": fullest[part] / 2**20 for part in PARTS}
        | {
            "total (MiB)": fullest["total"] / 2**20,
            "allocated (MiB)": fullest["allocated"] / 2**20,
            "over flush's at the same m": fullest["total"] / flush.reindex(fullest.index),
        }
    ).reset_index(drop=True)


def note(made: pd.DataFrame) -> str:
    return (
        "Peaks of the bytes that each stage counts of its own tensors. The peaks of a rank's "
        "stages are added up, which is an upper bound where it has several. Allocated: the peak of "
        "CUDA's allocator, where there is one. Flush with fewer micro-batches than ranks never "
        "fills its pipeline, and holds less than PACI."
    )


def draw(frames: Frames) -> Figure:
    """Draw PACI beside flush, rank by rank, and the fullest rank of every method."""
    held = _held(frames)
    settings = [_richest(group) for _, group in held.groupby(["scale", "source"])]
    most = max(len(_of_methods(group)) for group in settings)
    fig, axes = style.panels(2 * len(settings), height=1.4 + 0.13 * most)
    for left, right, group in zip(axes[::2], axes[1::2], settings, strict=True):
        _ranks(left, group)
        _methods(right, group)
    fig.legend(
        handles=[
            *(Patch(color=COLOURS[part], label=part) for part in PARTS),
            Patch(facecolor="#bbbbbb", **HATCHED, label="PACI, by rank"),
        ],
        loc="outside upper center", ncols=style.legend_columns(len(PARTS) + 1),
        columnspacing=1.0, handlelength=1.0,
    )  # fmt: skip
    runs = sum(group.drop_duplicates("variant")["runs"].sum() for group in settings)
    style.caption(
        fig,
        "Peaks of the bytes that each stage counts of its own tensors, "
        f"{counted(runs, 'run')}. By rank: plain bars are flush, hatched ones PACI. By method: the "
        "fullest rank of each. The peaks of a rank's stages are added up, which is an upper "
        "bound where it has several.",
        style.partial_note(frames.of(NEEDS).partial),
    )
    return fig


def _held(frames: Frames) -> pd.DataFrame:
    held = memory(frames).dropna(subset="total")
    held = held[held["even"]]
    if held.empty:
        raise CannotAnswer("no throughput run that computes logged its memory by rank")
    return held


def _richest(held: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the size of micro-batches and the ranks at which most methods were run."""
    groups = [group for _, group in held.groupby(["ranks", "microbatch"])]
    return max(groups, key=lambda group: group["variant"].map(lambda it: it.name).nunique())


def _of_methods(held: pd.DataFrame) -> pd.DataFrame:
    """Return the fullest rank of each method, at the count that most share, or at its own."""
    fullest = held.loc[held.groupby("variant")["total"].idxmax()]
    common = fullest["m"].mode().max()
    name = fullest["variant"].map(lambda it: it.name)
    chosen = fullest.assign(method=name, off=(fullest["m"] != common)).sort_values(["off", "m"])
    return chosen.drop_duplicates("method").sort_values("total")


def _ranks(ax: Axes, held: pd.DataFrame) -> None:
    methods = _of_methods(held)
    unit, name = style.memory_unit(methods["total"].max())
    for shift, is_it, look in ((-0.2, "1f1b-flush", {}), (0.2, "paci", HATCHED)):
        variants = methods.loc[methods["method"] == is_it, "variant"]
        mine = held[held["variant"].isin(variants)].sort_values("rank")
        _stack(ax.bar, "bottom", mine["rank"] + shift, mine, unit, width=0.36, **look)
    ax.set_xticks(range(int(held["ranks"].max())))
    ax.set_xlabel("rank")
    ax.set_ylabel(f"peak memory ({name})")
    ax.set_title(style.throughput_title(held.iloc[0]))
    ax.grid(axis="x", visible=False)


def _methods(ax: Axes, held: pd.DataFrame) -> None:
    methods = _of_methods(held)
    unit, name = style.memory_unit(methods["total"].max())
    places = range(len(methods))
    _stack(ax.barh, "left", pd.Series(places), methods, unit, height=0.7)
    labels = ["\n".join(wrap(it.label, LONGEST)) for it in methods["variant"]]
    ax.set_yticks(places, labels, fontsize=6, linespacing=0.9)
    ax.set_xlabel(f"peak memory of the fullest rank ({name})")
    ax.grid(axis="y", visible=False)


def _stack(bar, start: str, places: pd.Series, rows: pd.DataFrame, unit: int, **look) -> None:
    reached = pd.Series(0.0, index=rows.index)
    for part in PARTS:
        bar(places, rows[part] / unit, color=COLOURS[part], **{start: reached / unit}, **look)
        reached = reached + rows[part]


if __name__ == "__main__":
    sys.exit(main(["memory_parts"]))

"""Table 2: PACI at up to 28.3 billion parameters, extrapolated from published throughput, and
simulated."""

import sys

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from analysis.extrapolation.zero_bubble import SCHEDULES, compared
from paper_figures import style
from paper_figures.command import main
from paper_figures.format import COLUMN, current
from paper_figures.published import published

NEEDS = None
UNIT = "samples/GPU/s"
SOURCES = ("published", "simulated")
SOURCE = (
    "Published: Qi et al., ICLR 2024, Table 4; for PACI their throughput of 1F1B over m/(m+N-1), "
    "at the memory of 1F1B. Simulated: at the times that they profiled, computation and messages "
    "only, without slack."
)
MARKS = {  # Okabe and Ito's palette, and a shape each
    "1F1B": (style.FLUSH, "o"),
    "1F1B-I": ("#E69F00", "D"),
    "ZB-1p": ("#009E73", "s"),
    "ZB-2p": ("#CC79A7", "^"),
    "PACI": ("#0072B2", "*"),
}


def table() -> pd.DataFrame:
    """Return throughput, published (PACI's extrapolated by us, and by the paper) and simulated, and
    memory: a row for each configuration and schedule."""
    made = compared(published("zero_bubble"), published("zero_bubble_times"))
    theirs = published("table_2").set_index(["model", "microbatches"])
    papers = [
        theirs["samples_per_gpu_per_second"].get((it.model, it.m))
        if it.schedule == "PACI"
        else None
        for it in made.itertuples()
    ]
    return made[["model", "N", "m", "schedule"]].assign(
        **{
            f"published ({UNIT})": made["published"],
            f"paper's Table 2 ({UNIT})": papers,
            f"simulated ({UNIT})": made["simulated"],
            "memory (GB)": made["memory"],
        }
    )


def draw() -> Figure:
    """Draw throughput against memory: a column a model, published above and simulated below."""
    made = compared(published("zero_bubble"), published("zero_bubble_times"))
    models = list(made["model"].unique())
    is_narrow = current().is_narrow
    shape = (len(models), 2) if is_narrow else (2, len(models))
    along = "row" if is_narrow else "col"
    fig, axes = style.grid(*shape, 1.8, 2 * COLUMN / len(models), sharex=along, sharey=along)
    grid = axes.T if is_narrow else axes
    for column, model in zip(grid.T, models, strict=True):
        mine = made[made["model"] == model]
        column[0].set_title(f"{model}, {mine['N'].iloc[0]} stages")
        for ax, source in zip(column, SOURCES, strict=True):
            _draw(ax, mine, source)
            if is_narrow:
                ax.set_title(f"{model}, {mine['N'].iloc[0]} stages\n{source}")
    for number, ax in enumerate(axes[:, 0]):
        ax.set_ylabel(UNIT if is_narrow else f"{SOURCES[number]}\n{UNIT}")
    for ax in axes[-1]:
        ax.set_xlabel("memory (GB)")
    fig.legend(
        [_mark(name, 5.0) for name in SCHEDULES],
        SCHEDULES,
        loc="outside upper center",
        ncols=style.legend_columns(len(SCHEDULES)),
        handletextpad=0.2,
    )
    style.caption(
        fig, SOURCE, "Three marks for each schedule: the larger, the more micro-batches m."
    )
    return fig


def note(_: pd.DataFrame) -> str:
    return SOURCE + (
        " Simulated throughput is above published, likely because the profiled times leave out "
        "embedding, head, kernel launches and ranks that wait for a message to be sent. ZB-2p runs "
        "our order, which idles more than theirs where windows are short (see zero_bubble)."
    )


def _draw(ax: Axes, made: pd.DataFrame, source: str) -> None:
    for name in SCHEDULES:
        mine = made[made["schedule"] == name].sort_values("m")
        memory, rates = mine["memory"].iloc[0], list(mine[source])
        ax.plot([memory] * 2, [min(rates), max(rates)], color=MARKS[name][0], linewidth=0.8)
        for size, rate in zip((3.0, 4.2, 5.4), rates, strict=True):
            ax.add_line(_mark(name, size, memory, rate))
    ax.autoscale_view()
    ax.margins(x=0.12)
    ax.xaxis.set_major_locator(MaxNLocator(4, integer=True))
    ax.yaxis.set_major_locator(MaxNLocator(5))


def _mark(name: str, size: float, *at: float) -> Line2D:
    colour, shape = MARKS[name]
    x, y = ([value] for value in at) if at else ([], [])
    larger = 1.5 if shape == "*" else 1  # a star of a size looks smaller than a disc of it
    return Line2D(
        x,
        y,
        color=colour,
        marker=shape,
        markersize=larger * size,
        markeredgecolor="white",
        markeredgewidth=0.4,
        linestyle="none",
        zorder=3,
    )


if __name__ == "__main__":
    sys.exit(main(["table_2_extrapolation"]))

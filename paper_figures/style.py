"""The one visual style: text at 8 pt in 3.3-inch columns, colours for the colour-blind."""

from collections.abc import Iterable, Sequence
from itertools import cycle
from math import ceil
from textwrap import wrap
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from analysis import Cell, Setting, Variant
from analysis.q2.timing import GIVEN_COSTS, Timed
from paper_figures.format import COLUMN, current

INK = "#222222"
GREY = "#6f6f6f"
"""The grey of annotations."""

FLUSH = "#000000"
BY_ACCUMULATION = {  # Okabe and Ito's palette; an `a` keeps its colour in every figure
    1: "#CC79A7",
    2: "#E69F00",
    4: "#D55E00",
    8: "#0072B2",
    16: "#009E73",
    32: "#56B4E9",
}

SOLID, DASHED, DOTTED, DASH_DOTTED = "-", (0, (4, 1.5)), (0, (1, 1.2)), (0, (4, 1.2, 1, 1.2))
DASHES: tuple[Any, ...] = (SOLID, DASHED, DOTTED, DASH_DOTTED)
BY_COUNT = {4: DOTTED, 8: SOLID, 16: DASHED, 32: DASH_DOTTED}
"""The dashes of flushes, all of them black, by micro-batches of an update."""

ROUND = (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9)
MOST_TICKS = 8

RC = {
    "figure.dpi": 300,
    "savefig.dpi": 300,
    "figure.constrained_layout.use": True,
    "font.family": "DejaVu Sans",
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7.5,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "text.color": INK,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "axes.grid": True,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.5,
    "axes.axisbelow": True,
    "lines.linewidth": 1.2,
    "lines.solid_capstyle": "round",
    "pdf.fonttype": 42,  # TrueType, so that text in the PDF stays text
    "axes.unicode_minus": True,
}
matplotlib.rcdefaults()  # whatever a matplotlibrc says: the same logs, the same bytes
plt.rcParams.update(RC)


def colour(variant: Variant) -> str:
    """Return a variant's colour in every figure."""
    return BY_ACCUMULATION.get(variant.accumulation, GREY) if variant.asynchronous else FLUSH


Look = dict[str, Any]
"""Colour and dashes of a line, as matplotlib's keywords."""

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = "osD^vPX"


def _usual(variant: Variant) -> Look:
    """Return a variant's colour and dashes wherever no other variant has taken them: flushes differ
    in these by m, stashed weights from live."""
    dashes: Any = BY_COUNT.get(variant.accumulation, SOLID) if variant.is_flush else SOLID
    if variant.name == "paci" and not variant.is_paci:
        dashes = DASHED
    elif variant.slack:
        dashes = DASH_DOTTED
    return {"color": colour(variant), "linestyle": dashes}


def looks(variants: Iterable[Variant]) -> dict[str, Look]:
    """Return colour and dashes for the label of each variant that a figure shows, no two alike.

    A variant looks the same in every figure, unless it shares its usual look with another one that
    is shown. The paper's methods then keep theirs.
    """
    shown = sorted(set(variants))
    found: dict[str, Look] = {}
    left = []
    for variant in sorted(shown, key=lambda it: not it.in_paper):
        if _usual(variant) in found.values():
            left.append(variant)
        else:
            found[variant.label] = _usual(variant)
    for variant in left:
        spare = (
            {"color": colour, "linestyle": dashes}
            for colour in dict.fromkeys((_usual(variant)["color"], *PALETTE))
            for dashes in DASHES
        )
        found[variant.label] = next(look for look in spare if look not in found.values())
    return {variant.label: found[variant.label] for variant in shown}


def distinct(number: int) -> Look:
    """Return the colour, marker and dashes of the line of this number; the first 28 differ."""
    count = len(PALETTE)
    return {
        "color": PALETTE[number % count],
        "marker": MARKERS[number % count],
        "linestyle": DASHES[number // count % len(DASHES)],
    }


def panels(count: int, height: float = 2.5) -> tuple[Figure, list[Axes]]:
    """Return a figure of `count` panels, two to a row where the format has room, and their axes.

    `height` is that of a panel, in inches where it is a column wide.
    """
    columns = 1 if current().is_narrow else min(count, 2)
    fig, axes = grid(ceil(count / columns), columns, height)
    for unused in axes.flat[count:]:
        unused.remove()
    return fig, list(axes.flat[:count])


def grid(
    rows: int, columns: int, height: float, width: float | None = None, **shared: Any
) -> tuple[Figure, np.ndarray]:
    """Return a figure of rows x columns panels and their axes, in that shape.

    A panel is `width` (None: a column) by `height` inches, where a column has its usual width.
    """
    scale = current().column / COLUMN
    size = ((width or COLUMN) * columns * scale, height * rows * min(1.0, scale))
    fig, axes = plt.subplots(rows, columns, figsize=size, squeeze=False, **shared)
    return fig, axes


def setting_title(setting: Setting, seeds: list[int]) -> str:
    """Return a panel's title: "batch 16, laptop scale, 2–3 seeds"."""
    low, high = min(seeds), max(seeds)
    many = f"{low}" if low == high else f"{low}–{high}"
    seeds_text = f"{many} seed{'s' if high > 1 else ''}"
    title = f"batch {setting.batch}, {setting.scale} scale, {seeds_text}"
    return f"{title}\n{setting.other}" if setting.other else title


def throughput_title(row: pd.Series) -> str:
    """Return the title of a panel with a row of `throughput`, with its clock: "simulated (measured
    costs), laptop scale, 8 ranks"."""
    kind, comma, costs = row["clock"].partition(", ")
    how = costs if comma else f"{kind} clock" if kind != row["source"] else ""
    source = f"{row['source']} ({how})" if how else row["source"]
    return f"{source}, {row['scale']} scale, {row['ranks']} ranks"


BY_SIZE = ("#000000", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00")
"""Colours of micro-batch sizes, the smallest first."""


def size_colours(sizes: Iterable[int]) -> dict[int, str]:
    """Return a colour for each size of micro-batches."""
    return dict(zip(sorted(set(sizes)), cycle(BY_SIZE), strict=False))


def counts_axis(ax: Axes, counts: Iterable[int]) -> None:
    """Make the horizontal axis one of micro-batches of an update, with a tick at each of
    `counts`."""
    ax.xaxis.set_major_locator(FixedLocator(sorted(set(counts))))
    ax.set_xlabel("micro-batches of an update, m or a")


def throughput_panels(
    made: pd.DataFrame, keys: list[str], height: float
) -> tuple[Figure, list[tuple[Axes, pd.DataFrame]]]:
    """Return a figure with a titled panel for each group of rows of `throughput` that share `keys`,
    and the axes and the rows of each panel. The horizontal axis counts micro-batches."""
    groups = [group for _, group in made.groupby(keys)]
    fig, axes = panels(len(groups), height)
    for ax, group in zip(axes, groups, strict=True):
        counts_axis(ax, group["m"])
        ax.set_title(throughput_title(group.iloc[0]))
    return fig, list(zip(axes, groups, strict=True))


def rates(ax: Axes, rows: pd.DataFrame, beside: float = 0.0, **look: Any) -> None:
    """Draw tokens/s/device of rows of `throughput`, their intervals, and × where out of memory.

    `beside` moves the marks aside, so that intervals do not hide each other: -1 to 1.
    """
    rows = rows.sort_values("m")
    rate = rows["rate"] / rows["ranks"]
    low, high = ax.xaxis.get_majorticklocs()[[0, -1]]
    places = rows["m"] + 0.012 * beside * (high - low)
    ax.errorbar(
        places, rate, yerr=rate * rows["doubt"].fillna(0), markersize=4, capsize=2, linewidth=1,
        **look,
    )  # fmt: skip
    for m in rows.loc[rows["rate"].isna(), "m"]:  # an empty line would break the layout
        ax.plot(m, 0, "x", color=look["color"], clip_on=False)


def legend_columns(count: int) -> int:
    """Return how many of `count` entries of a legend stand beside each other."""
    return min(count, 3) if current().is_narrow else count


def size_legend(fig: Figure, colours: dict[int, str], others: Sequence[Line2D]) -> None:
    """Draw one legend above all panels: sizes of micro-batches by colour, then `others`."""
    sizes = [
        Line2D([], [], color=colour, linewidth=2, label=f"micro-batch of {size}")
        for size, colour in colours.items()
    ]
    handles = [*sizes, *others]
    columns = ceil(len(handles) / ceil(len(handles) / 4)) if fig.get_figwidth() > COLUMN else 2
    fig.legend(handles=handles, loc="outside upper center", ncols=columns, columnspacing=1.2)


def legend(fig: Figure, shown: dict[str, Look]) -> None:
    """Draw one legend above all panels, of what `looks` returned."""
    handles = [Line2D([], [], **look, linewidth=2) for look in shown.values()]
    fig.legend(
        handles,
        list(shown),
        loc="outside upper center",
        ncols=ceil(len(shown) / ceil(len(shown) / 5)) if fig.get_figwidth() > COLUMN else 2,
        handlelength=2.4,
        columnspacing=1.2,
    )


def caption(fig: Figure, *sentences: str) -> None:
    """Give the figure a caption below its panels; an empty sentence is left out."""
    fig.supxlabel("\n".join(filter(None, sentences)), fontsize=6.5, color=GREY)


BREAK = "Two strokes mark an axis that does not start at 0."


def finish(fig: Figure) -> str:
    """Mark the axes that do not start at 0, and return the caption, which stays in the image if
    the format says so."""
    cut = [(ax, axis) for ax in fig.axes for axis in "xy" if _is_cut(ax, axis)]
    for ax, axis in cut:
        _mark_break(ax, axis)
    said = [*fig.get_supxlabel().splitlines(), *([BREAK] if cut else [])]
    below = fig.supxlabel("")
    below.set_in_layout(current().caption)
    if current().caption:
        width = int(20 * fig.get_figwidth())  # characters of this size to an inch
        below.set_text("\n".join(line for sentence in said for line in wrap(sentence, width)))
    return " ".join(said)


def _is_cut(ax: Axes, axis: str) -> bool:
    """Return whether an axis of measured quantities begins above 0."""
    spine, scale = ("left", ax.get_yscale()) if axis == "y" else ("bottom", ax.get_xscale())
    low = min(ax.get_ylim() if axis == "y" else ax.get_xlim())
    measured = axis == "y" or ax.xaxis.get_gid() == MEASURED
    return measured and scale == "linear" and low > 0 and ax.spines[spine].get_visible()


MEASURED = "measured"
"""The mark of horizontal axes that `finish` looks at; most of them are scales of a setting."""


def _mark_break(ax: Axes, axis: str) -> None:
    places = (0.025, 0.05)
    x, y = ((0, 0), places) if axis == "y" else (places, (0, 0))
    stroke = [(-1, -0.5), (1, 0.5)] if axis == "y" else [(-0.5, -1), (0.5, 1)]
    ax.plot(
        x, y, linestyle="none", marker=stroke, markersize=5, color=INK, markeredgewidth=0.6,
        transform=ax.transAxes, clip_on=False, scalex=False, scaley=False,
    )  # fmt: skip


def sentence(words: str) -> str:
    """Return words as a sentence; no words stay none."""
    return f"{words[0].upper()}{words[1:]}." if words else ""


def partial_note(partial: str) -> str:
    """Return the warning that a figure is drawn from partial data, if it is."""
    return f"Partial data: drawn from {partial}." if partial else ""


def tokens_axis(ax: Axes, most: float, token: str = "token") -> float:
    """Label the axis of tokens in thousands, millions or billions; return that unit."""
    unit, name = next(
        (pair for pair in ((1e9, "billions"), (1e6, "millions")) if most >= pair[0]),
        (1e3, "thousands"),
    )
    ax.set_xlabel(f"training {token}s ({name})")
    return unit


def byte_note(made: Sequence[Cell]) -> str:
    """Return the remark that perplexities are per byte, if they are."""
    return "Perplexity is per byte." if any(cell.token == "byte" for cell in made) else ""


def time_unit(most: float) -> tuple[float, str]:
    """Return a unit in seconds, and its name, for times of at most `most` seconds."""
    if most >= 3 * 3600:
        return 3600.0, "hours"
    return (60.0, "minutes") if most >= 600 else (1.0, "seconds")


def time_label(clock: str, name: str) -> str:
    """Return the label of an axis of time, in two lines: its unit and its clock."""
    return f"training time ({name})\n{clock_name(clock)}"


def clock_name(clock: str) -> str:
    """Return "wall clock" or "simulated clock, measured costs"."""
    kind, comma, costs = clock.partition(", ")
    return f"{kind} clock{comma}{costs}"


def rate_label(clock: str) -> str:
    """Return the label of an axis of throughput; the title of its panel names the clock."""
    return f"tokens/{'unit of cost' if clock == GIVEN_COSTS else 's'}/device"


def memory_unit(most: float) -> tuple[int, str]:
    """Return a unit in bytes, and its name, for sizes of at most `most` bytes."""
    units = ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))
    return next((pair for pair in units if most >= pair[0]), (1, "bytes"))


def mapped_note(shown: Sequence[Timed]) -> str:
    """Name the flushes that were mapped to their micro-batch count, if any were."""
    names = sorted(
        {f"{it.label} from m={it.cell.variant.accumulation}" for it in shown if it.mapped}
    )
    many = f"Mapped by steady-state throughput, not trained: {', '.join(names)}."
    return many if names else ""


def perplexity_axis(ax: Axes) -> None:
    """Make the vertical axis a logarithmic one of validation perplexity, with round ticks."""
    ax.set_yscale("log")
    low, high = ax.get_ylim()
    gap = np.log(high / low) / MOST_TICKS
    ticks: list[float] = []
    for tick in (digit * 10.0**power for power in range(-1, 7) for digit in ROUND):
        if low <= tick <= high and (not ticks or np.log(tick / ticks[-1]) >= gap):
            ticks.append(tick)
    if len(ticks) < 3:  # a narrow range: no such numbers in it
        ticks = [tick for tick in MaxNLocator(5).tick_values(low, high) if low <= tick <= high]
    ax.yaxis.set_major_locator(FixedLocator(ticks))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.4g}"))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.set_ylabel("validation perplexity")

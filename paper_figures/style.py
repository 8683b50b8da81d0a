"""The one visual style: text at 8 pt in 3.3-inch columns, colours for the colour-blind."""

from math import ceil
from textwrap import wrap

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from analysis import Variant

COLUMN = 3.3
"""Width of a column of the paper, inches; a figure is one or two columns wide."""

INK = "#222222"
GREY = "#6f6f6f"
"""Grey of annotations."""

FLUSH = "#000000"
BY_ACCUMULATION = {  # Okabe and Ito's palette; an `a` keeps its colour in every figure
    1: "#CC79A7",
    2: "#E69F00",
    4: "#D55E00",
    8: "#0072B2",
    16: "#009E73",
    32: "#56B4E9",
}

RC = {
    "figure.dpi": 200,
    "savefig.dpi": 200,
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
plt.rcParams.update(RC)


def colour(variant: Variant) -> str:
    """A variant's colour in every figure."""
    return BY_ACCUMULATION.get(variant.accumulation, GREY) if variant.asynchronous else FLUSH


def panels(count: int, height: float = 2.5, **options) -> tuple[Figure, list[Axes]]:
    """A figure of `count` panels, each a column wide and two to a row, and their axes."""
    columns = min(count, 2)
    rows = ceil(count / columns)
    fig, grid = plt.subplots(
        rows, columns, figsize=(COLUMN * columns, height * rows), squeeze=False, **options
    )
    axes = list(grid.flat)
    for unused in axes[count:]:
        unused.remove()
    return fig, axes[:count]


def setting_title(setting: tuple[str, str, int], seeds: list[int]) -> str:
    """A panel's title: "batch 16, laptop scale, 2–3 seeds"."""
    scale, _, batch = setting
    low, high = min(seeds), max(seeds)
    many = f"{low}" if low == high else f"{low}–{high}"
    return f"batch {batch}, {scale} scale, {many} seed{'s' if high > 1 else ''}"


def legend(fig: Figure, variants: list[Variant]) -> None:
    """One legend above all panels, flush first."""
    found = {(one.order, one.label): one for one in variants}
    shown = [found[key] for key in sorted(found)]
    handles = [Line2D([], [], color=colour(one), linewidth=2) for one in shown]
    fig.legend(
        handles,
        [one.label for one in shown],
        loc="outside upper center",
        ncols=len(shown) if fig.get_figwidth() > COLUMN else 2,
        handlelength=1.2,
        columnspacing=1.2,
    )


def footnote(fig: Figure, *sentences: str) -> None:
    """What a reader must know, below the panels; an empty sentence is left out."""
    said = [sentence for sentence in sentences if sentence]
    if said:
        width = int(20 * fig.get_figwidth())  # characters of this size to an inch
        lines = [line for sentence in said for line in wrap(sentence, width)]
        fig.supxlabel("\n".join(lines), fontsize=6.5, color=GREY)


def partial_note(partial: str) -> str:
    """The warning that a figure is drawn from partial data, if it is."""
    return f"Partial data: drawn from {partial}." if partial else ""


def tokens_axis(ax: Axes, most: float) -> float:
    """Labels the axis of tokens in thousands, millions or billions; returns that unit."""
    unit, name = next(
        (pair for pair in ((1e9, "billions"), (1e6, "millions")) if most >= pair[0]),
        (1e3, "thousands"),
    )
    ax.set_xlabel(f"training tokens ({name})")
    return unit

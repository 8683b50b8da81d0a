"""Bars for the figures of studies: a row for each cell, a panel for each number."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure

from analysis import Cell
from paper_figures import style


def bars(made: Sequence[Cell], rows: pd.DataFrame, columns: dict[str, str]) -> Figure:
    """Draw a panel for each column of `rows`, which maps to the label of its axis; with ± where the
    table has it. The rows are those of `made`, in order."""
    colours = {variant: style.PALETTE[k] for k, variant in enumerate(rows["variant"].unique())}
    labels = [", ".join(filter(None, (cell.variant.label, cell.other))) for cell in made]
    fig, axes = style.panels(len(columns), height=0.8 + 0.17 * len(rows))
    for ax, (column, label) in zip(axes, columns.items(), strict=True):
        spread = rows.get(f"{column} ±")
        places = range(len(rows))
        if spread is not None:
            for place, value, doubt, variant in zip(
                places, rows[column], spread, rows["variant"], strict=True
            ):
                ax.errorbar(value, place, xerr=doubt, fmt="D", color=colours[variant], ms=3.5,
                            capsize=2)  # fmt: skip
            ax.xaxis.set_gid(style.MEASURED)
        else:
            ax.barh(places, rows[column], 0.65, color=[colours[it] for it in rows["variant"]])
        ax.set_ylim(len(rows) - 0.5, -0.5)
        place = ax.get_subplotspec()
        is_left = place is not None and place.is_first_col()
        ax.set_yticks(places, labels if is_left else [""] * len(rows), fontsize=6)
        ax.grid(axis="y", visible=False)
        ax.set_xlabel(label)
    return fig

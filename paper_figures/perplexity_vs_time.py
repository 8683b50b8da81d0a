"""Validation perplexity against time of training, and PACI's speed-up over the best flush."""

import sys

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis import Cell, Frames, by_setting, cells
from analysis.q2.speedup import BEST, speed_ups
from analysis.q2.thresholds import timed, times_to
from paper_figures import style
from paper_figures.command import main

EXPERIMENT = "q2"


def draw(frames: Frames) -> Figure:
    made, left_out = timed(cells(frames, EXPERIMENT))
    settings = by_setting(made)
    fig, axes = style.panels(len(settings), height=3.2)
    for ax, (setting, group) in zip(axes, settings.items(), strict=True):
        curves = {cell: _curve(cell) for cell in group}
        unit, name = style.time_unit(pd.concat(curves.values())["seconds"].max())
        for cell, curve in curves.items():
            line = style.line(cell.variant)
            seconds, mean, std = curve["seconds"] / unit, curve["mean"], curve["std"]
            ax.plot(seconds, mean, **line)
            band = {"color": line["color"], "alpha": 0.15, "linewidth": 0}
            ax.fill_between(seconds, mean - std, mean + std, **band)
        _arrows(ax, group, unit)
        style.perplexity_axis(ax)
        ax.set_xlim(left=0)
        ax.set_title(style.setting_title(setting, [cell.seeds for cell in group]))
        ax.set_xlabel(style.time_label(setting.clock, name))
    style.legend(fig, [cell.variant for cell in made])
    style.footnote(
        fig,
        "Mean and ± 1 std over seeds. Arrows: from the best flush's time to PACI's at the lowest "
        "perplexity that PACI and every flush reach, and the mean of the seeds' ratios.",
        style.byte_note(made),
        style.sentence(left_out),
        style.partial_note(frames.of(EXPERIMENT).partial),
    )
    return fig


def _curve(cell: Cell) -> pd.DataFrame:
    """By evaluation, over seeds: mean time, and mean and standard deviation of the perplexity."""
    trained = [log[log["update"] > 0].set_index("update") for log in cell.evaluations.values()]
    seconds = pd.concat([log["seconds"] for log in trained], axis=1, join="inner")
    found = pd.concat([log["perplexity"] for log in trained], axis=1, join="inner")
    return pd.DataFrame(
        {
            "seconds": seconds.mean(axis=1),
            "mean": found.mean(axis=1, skipna=False),
            "std": found.std(axis=1, ddof=1, skipna=False),
        }
    )


def _arrows(ax: Axes, group: list[Cell], unit: float) -> None:
    """Below the curves, one for each PACI variant in its colour, from the time of the best flush to
    its own, with dotted lines that lead down from where they reach the perplexity."""
    found = [it for it in speed_ups(group, []) if it.against == BEST and not it.why]
    ax.set_yscale("log")
    low, high = ax.get_ylim()
    step = (high / low) ** 0.09  # as a factor: the axis is logarithmic
    for row, it in enumerate(found, start=1):
        place, colour = low / step**row, style.colour(it.paci.variant)
        paci, flush = (times_to(cell, it.perplexity).mean() / unit for cell in (it.paci, it.flush))
        for time in (paci, flush):
            ax.plot([time] * 2, [place, it.perplexity], ":", color=colour, linewidth=0.8)
        arrow = {"arrowstyle": "-|>", "color": colour, "linewidth": 1, "shrinkA": 0, "shrinkB": 0}
        ax.annotate("", (paci, place), (flush, place), arrowprops=arrow)
        ax.annotate(
            f"{it.mean_and_std[0]:.2f}× at {it.perplexity:.3g}",
            (max(paci, flush), place),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            fontsize=7,
            color=colour,
        )
    ax.set_ylim(low / step ** (len(found) + 1) if found else low, high)


if __name__ == "__main__":
    sys.exit(main(["perplexity_vs_time"]))

"""Figure 1: validation perplexity against time of training, and PACI's speed-up over the best
flush."""

import sys

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis import Cell, Frames, by_setting
from analysis.q2.speedup import contests, ratio
from analysis.q2.thresholds import PAPERS_WAY, Thresholds
from analysis.q2.timing import Timed, Timings
from paper_figures import style
from paper_figures.command import main

NEEDS = "training"


def draw(frames: Frames, thresholds: Thresholds = PAPERS_WAY) -> Figure:
    timings = Timings.of_paper(frames, thresholds)
    settings = by_setting(timings.made)
    fig, axes = style.panels(len(settings), height=3.2)
    shown = [it for group in settings.values() for it in timings.everything(group)]
    looks = style.looks(it.variant for it in shown)
    for ax, (setting, group) in zip(axes, settings.items(), strict=True):
        lines = {it: _curve(it) for it in timings.everything(group)}
        unit, name = style.time_unit(pd.concat(lines.values())["seconds"].max())
        for it, curve in lines.items():
            look = looks[it.variant.label]
            seconds, mean, std = curve["seconds"] / unit, curve["mean"], curve["std"]
            ax.plot(seconds, mean, **look)
            band = {"color": look["color"], "alpha": 0.15, "linewidth": 0}
            ax.fill_between(seconds, mean - std, mean + std, **band)
        _arrows(ax, group, timings, unit, looks)
        style.perplexity_axis(ax)
        ax.set_xlim(left=0)
        ax.set_title(style.setting_title(setting, [cell.seeds for cell in group]))
        ax.set_xlabel(style.time_label(setting.clock, name))
    style.legend(fig, looks)
    style.caption(
        fig,
        "Mean and ± 1 std over seeds. An arrow leads from the time at which the first flush "
        "reaches the lowest threshold to PACI's; its number is the mean over seeds of their ratio.",
        style.mapped_note(shown),
        style.byte_note(timings.made),
        style.sentence(timings.left_out),
        style.partial_note(frames.of(NEEDS).partial),
    )
    return fig


def _curve(it: Timed) -> pd.DataFrame:
    """Return mean time, and mean and standard deviation of the perplexity over seeds, by
    evaluation."""
    logs = it.cell.evaluations.values()
    trained = [log[log["update"] > 0].set_index("update") for log in logs]
    seconds = pd.concat([log["seconds"] for log in trained], axis=1, join="inner")
    found = pd.concat([log["perplexity"] for log in trained], axis=1, join="inner")
    return pd.DataFrame(
        {
            "seconds": seconds.mean(axis=1) * it.pace,
            "mean": found.mean(axis=1, skipna=False),
            "std": found.std(axis=1, ddof=1, skipna=False),
        }
    )


def _arrows(
    ax: Axes, group: list[Cell], timings: Timings, unit: float, looks: dict[str, style.Look]
) -> None:
    """Draw, below the curves, an arrow for each PACI variant in its colour, from the time of the
    best flush to its own, with dotted lines that lead down from where they reach the perplexity."""
    ax.set_yscale("log")
    low, high = ax.get_ylim()
    step = (high / low) ** 0.09  # as a factor: the axis is logarithmic
    row = 0
    for contest in contests(group, timings):
        for perplexity in timings.thresholds.of(group)[-1:]:
            flush = contest.first_to(perplexity)
            gain = ratio(flush, contest.paci, perplexity).mean(skipna=False)
            if pd.isna(gain):
                continue
            row += 1
            place, colour = low / step**row, looks[contest.paci.label]["color"]
            ends = [it.time_to(perplexity).mean() / unit for it in (contest.paci, flush)]
            for time in ends:
                ax.plot([time] * 2, [place, perplexity], ":", color=colour, linewidth=0.8)
            arrow = {"arrowstyle": "-|>", "color": colour, "lw": 1, "shrinkA": 0, "shrinkB": 0}
            ax.annotate("", (ends[0], place), (ends[1], place), arrowprops=arrow)
            ax.annotate(
                f"{gain:.2f}× at {perplexity:.3g}",
                (max(ends), place),
                xytext=(4, 0),
                textcoords="offset points",
                va="center",
                fontsize=7,
                color=colour,
            )
    ax.set_ylim(low / step ** (row + 1) if row else low, high)


if __name__ == "__main__":
    sys.exit(main(["figure_1_perplexity_vs_hours"]))

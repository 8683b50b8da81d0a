"""Clipping of gradients at a learning rate where training without it has spikes."""

import sys

import pandas as pd
from matplotlib.figure import Figure

from analysis import Frames, by_setting
from analysis.statistics import smoothed
from analysis.study import SMOOTHED, numbers, study
from paper_figures import style
from paper_figures.command import main

NEEDS = "training"


def table(frames: Frames) -> pd.DataFrame:
    rows = pd.DataFrame([numbers(cell) for cell in study(frames, "clipping")])
    return rows[[*rows.columns[: rows.columns.get_loc("largest rise") + 1]]]


def note(_: pd.DataFrame) -> str:
    return (
        f"Largest rise: of the training loss, smoothed over {SMOOTHED} updates, above its lowest "
        "value so far, mean over seeds. The global norm needs all stages' gradients at once, so "
        "only a schedule that flushes can clip to it; stage and running are norms of a stage alone."
    )


def draw(frames: Frames) -> Figure:
    made = study(frames, "clipping")
    settings = by_setting(made)
    looks = style.looks(cell.variant for cell in made)
    fig, axes = style.panels(len(settings), height=2.0)
    for ax, (setting, group) in zip(axes, settings.items(), strict=True):
        unit = style.tokens_axis(ax, max(cell.tokens.max() for cell in group), group[0].token)
        for cell in group:
            curve = smoothed(cell.losses, SMOOTHED)
            tokens = cell.tokens.reindex(curve.index) / unit
            ax.plot(tokens, curve["mean"], **looks[cell.variant.label])
        ax.set_xlim(left=0)
        ax.set_title(setting.other)
        ax.set_ylabel(f"training loss (nats per {group[0].token})")
    low = min(ax.get_ylim()[0] for ax in axes)
    high = max(ax.get_ylim()[1] for ax in axes)
    for ax in axes:
        ax.set_ylim(low, high)
    style.legend(fig, looks)
    style.caption(
        fig,
        f"Mean over seeds, smoothed over {SMOOTHED} updates. All panels have one scale.",
        style.partial_note(frames.of(NEEDS).partial),
    )
    return fig


if __name__ == "__main__":
    sys.exit(main(["study_clipping"]))

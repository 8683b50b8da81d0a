"""Figure 5: training loss against tokens, mean over seeds ± one across-seed standard deviation."""

import sys

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis import Cell, Frames, by_setting, of_paper, planned
from analysis.statistics import smoothed
from paper_figures import style
from paper_figures.command import main

NEEDS = "training"
WINDOW = 0.01  # of the updates
END = 0.1  # of the tokens, enlarged in the inset


INSET = (0.46, 0.4, 0.52, 0.58)  # left, bottom, width and height in a panel


def draw(frames: Frames) -> Figure:
    return curves(of_paper(planned(frames)), frames)


def curves(made: list[Cell], frames: Frames) -> Figure:
    """Draw the training loss of cells, a panel for each setting."""
    settings = by_setting(made)
    looks = style.looks(cell.variant for cell in made)
    fig, axes = style.panels(len(settings))
    windows = set()
    for ax, (setting, group) in zip(axes, settings.items(), strict=True):
        inset = ax.inset_axes(INSET)
        unit = style.tokens_axis(ax, max(cell.tokens.max() for cell in group), group[0].token)
        for cell in group:
            look = looks[cell.variant.label]
            windows.add(_curve(ax, cell, unit, look))
            _curve(inset, cell, unit, look, band=False)  # bands would hide the means
        _zoom(inset, group)
        ax.set_xlim(left=0)
        if _is_covered(ax):
            inset.remove()
        ax.set_title(style.setting_title(setting, [cell.seeds for cell in group]))
        ax.set_ylabel(f"training loss (nats per {group[0].token})")
    style.legend(fig, looks)
    style.caption(
        fig,
        f"Mean and ± 1 std over seeds{_smoothing(windows)}. "
        f"Inset: means over the last {END:.0%}, Δmax up to 2.",
        style.partial_note(frames.of(NEEDS).partial),
    )
    return fig


def _curve(ax: Axes, cell: Cell, unit: float, look: style.Look, band: bool = True) -> int:
    window = max(1, round(WINDOW * len(cell.losses)))
    curve = smoothed(cell.losses, window)
    tokens = cell.tokens.reindex(curve.index) / unit
    # At most about a thousand points: a vector file of every update would be unusable.
    every = slice(None, None, max(1, len(curve) // 1000))
    tokens, mean, std = tokens[every], curve["mean"][every], curve["std"][every]
    ax.plot(tokens, mean, **look)
    if band:
        ax.fill_between(tokens, mean - std, mean + std, color=look["color"], alpha=0.2, linewidth=0)
    return window


def _zoom(inset: Axes, group: list[Cell]) -> None:
    """Show the end of training, at the height of flush and of variants of Δmax up to 2."""
    end = max(line.get_xdata().max() for line in inset.lines)
    inset.set_xlim((1 - END) * end, end)
    inset.tick_params(labelsize=6)
    inset.patch.set_alpha(0.9)
    close = [cell.variant.max_drift <= 2 for cell in group]
    lines = [line for line, it in zip(inset.lines, close, strict=True) if it] or inset.lines
    tails = [line.get_ydata()[line.get_xdata() >= (1 - END) * end] for line in lines]
    heights = np.concatenate(tails)
    heights = heights[np.isfinite(heights)]
    if heights.size:
        margin = 0.15 * (heights.max() - heights.min()) + 1e-3
        inset.set_ylim(heights.min() - margin, heights.max() + margin)


def _is_covered(ax: Axes) -> bool:
    """Return whether the inset would cover a curve."""
    left, bottom, *_ = INSET
    (first, last), (low, high) = ax.get_xlim(), ax.get_ylim()
    x, y = first + left * (last - first), low + bottom * (high - low)
    return any(
        (line.get_ydata()[line.get_xdata() >= x] > y).any()  # type: ignore[index, operator]
        for line in ax.lines
    )


def _smoothing(windows: set[int]) -> str:
    """Say over how many updates the curves are smoothed, if they are."""
    if max(windows) == 1:
        return ""
    span = "–".join(str(value) for value in sorted({min(windows), max(windows)}))
    return f", smoothed over {span} updates"


if __name__ == "__main__":
    sys.exit(main(["figure_5_training_loss"]))

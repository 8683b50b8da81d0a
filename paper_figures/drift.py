"""Measured drift of the weights at every stage, against its bound ⌈(N-1-i+slack)/a⌉."""

import sys

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from analysis import CannotAnswer, Cell, Frames, planned
from analysis.manifest import counted
from analysis.q1.drift import drift_histogram, largest_drift, mean_movement
from paper_figures import style
from paper_figures.command import main

NEEDS = "training"
LEGIBLE_STAGES = 12  # with more, the cells are too narrow for a number
LUMINANCE = (0.299, 0.587, 0.114)  # of red, green and blue, to tell dark cells from light ones


def table(frames: Frames) -> pd.DataFrame:
    """Return, per variant and stage, over its batches and seeds, the largest drift, its bound
    (versions) and the mean relative movement of the weights between forward and backward (per
    cent)."""
    rows = []
    for (scale, clock), group in _by_variant(frames):
        largest, movement = largest_drift(group), mean_movement(group)
        variant = group[0].variant
        for stage in range(variant.stages):
            rows.append(
                {
                    "scale": scale,
                    "clock": clock,
                    "batches": _batches(group),
                    "variant": variant.label,
                    "stage": stage,
                    "largest drift": largest.astype(object).get(stage),
                    "bound": variant.drift_bound(stage),
                    "mean movement (%)": 100 * movement.get(stage, float("nan")),
                }
            )
    return pd.DataFrame(rows)


def draw(frames: Frames) -> Figure:
    groups = _by_variant(frames)
    fig, axes = style.panels(len(groups), height=1.7)
    for ax, ((scale, _), group) in zip(axes, groups, strict=True):
        variant = group[0].variant
        shares = drift_histogram(group)
        shares = shares.div(shares.sum(axis=1), axis=0).reindex(range(variant.stages))
        bounds = [variant.drift_bound(stage) for stage in range(variant.stages)]
        top = max(1, *bounds, shares.columns.max())
        shares = shares.reindex(columns=range(top + 1), fill_value=0.0)
        ramp = LinearSegmentedColormap.from_list("share", ["#ffffff", style.colour(variant)])
        ax.pcolormesh(
            np.arange(variant.stages + 1) - 0.5,
            np.arange(top + 2) - 0.5,
            shares.T,
            cmap=ramp,
            vmin=0,
            vmax=1,
            edgecolor="white",
            linewidth=0.8,
        )
        if variant.stages <= LEGIBLE_STAGES:
            _print_shares(ax, shares, ramp)
        for stage, bound in enumerate(bounds):
            ax.plot([stage - 0.42, stage + 0.42], [bound + 0.5] * 2, color=style.INK, linewidth=1.6)
        ax.set_ylim(-0.5, top + 0.75)
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        ax.yaxis.set_major_locator(MaxNLocator(4, integer=True))
        ax.grid(visible=False)
        ax.set_title(f"{variant.label}, {scale} scale")
        ax.set_xlabel("stage")
        ax.set_ylabel("drift Δ (versions)")
    runs = sum(cell.seeds for _, group in groups for cell in group)
    style.caption(
        fig,
        f"Cells: share of a stage's micro-batches, %, of {counted(runs, 'run')} with batches of "
        f"{_batches([cell for _, group in groups for cell in group])}. "
        "Bars: bound ⌈(N-1-i+slack)/a⌉.",
        style.partial_note(frames.of(NEEDS).partial),
    )
    return fig


def _print_shares(ax: Axes, shares: pd.DataFrame, ramp: Colormap) -> None:
    for (stage, drift), share in shares.stack().items():
        if share >= 0.005:
            ink = "white" if np.dot(ramp(share)[:3], LUMINANCE) < 0.5 else style.INK
            ax.text(stage, drift, f"{share:.0%}"[:-1], color=ink, size=6, ha="center", va="center")


def _batches(group: list[Cell]) -> str:
    return ", ".join(str(batch) for batch in sorted({cell.batch for cell in group}))


def _by_variant(frames: Frames) -> list[tuple[tuple[str, str], list[Cell]]]:
    """Group cells by variant over its batch sizes, which do not change the order of actions."""
    groups: dict[tuple, list[Cell]] = {}
    for cell in planned(frames):
        if cell.stages["drift"].map(bool).any():
            groups.setdefault((cell.scale, cell.clock, cell.variant), []).append(cell)
    if not groups:
        raise CannotAnswer("no completed training run logged its drift")
    ordered = sorted(groups, key=lambda key: (*key[:2], key[2].order))
    return [(key[:2], groups[key]) for key in ordered]


if __name__ == "__main__":
    sys.exit(main(["drift"]))

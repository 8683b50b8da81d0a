"""Gradients clipped in three ways, at a learning rate that training without it does not bear."""

import sys

import pandas as pd
from matplotlib.figure import Figure

from analysis import Cell, Frames
from analysis.statistics import mean_and_std
from analysis.studies import BEFORE, choice, largest_rise, study
from paper_figures import style
from paper_figures.command import main

NEEDS = "training"
KEY = "optimizer.clip"
CLIPS = ("none", "stage", "running", "global")


def table(frames: Frames) -> pd.DataFrame:
    """Return, per method and kind of clipping, the final loss, the runs that diverged and the
    largest rise of the loss."""
    rows = []
    for cell in _cells(frames):
        loss, spread = mean_and_std(cell.final_losses)
        rows.append(
            {"scale": cell.scale, "batch": cell.batch, "method": cell.variant.label}
            | {"clip": choice(cell, KEY), "learning rate": float(choice(cell, "optimizer.lr"))}
            | {"seeds": cell.seeds, "diverged": cell.seeds - len(cell.completed)}
            | {"final loss": loss, "±": spread}
            | {"largest rise": mean_and_std(largest_rise(cell.losses))[0]}
        )
    return pd.DataFrame(rows)


def note(_: pd.DataFrame) -> str:
    return (
        "Learning rate: the peak at the scale's reference batch. Largest rise: the most that an "
        f"update's training loss exceeds the lowest of the {BEFORE} updates before it, mean over "
        "seeds; smaller batches make every loss vary more, so that only rows of one method "
        "compare. A seed that diverged makes a mean undefined."
    )


def draw(frames: Frames) -> Figure:
    """Draw the training loss under each kind of clipping, a panel for each method."""
    made = _cells(frames)
    groups: dict[tuple, list[Cell]] = {}
    for cell in made:
        groups.setdefault((cell.batch, cell.variant), []).append(cell)
    fig, axes = style.panels(len(groups), height=2.0)
    shown = {}
    for ax, ((batch, variant), group) in zip(axes, groups.items(), strict=True):
        for cell in group:
            clip = choice(cell, KEY)
            look = style.distinct(CLIPS.index(clip)) | {"marker": ""}
            shown[clip] = look
            unit = style.tokens_axis(ax, cell.tokens.max(), cell.token)
            for seed in cell.binned:
                ax.plot(cell.binned.index / unit, cell.binned[seed], linewidth=0.9, **look)
        late = pd.concat([cell.losses.iloc[len(cell.losses) // 10 :] for cell in group], axis=1)
        low, high = late.min(axis=None), late.max(axis=None)
        ax.set_ylim(low - 0.1, high + 0.1)
        ax.set_ylabel(f"training loss (nats per {group[0].token})")
        ax.set_title(f"{variant.label}, batch {batch}")
    order = {clip: shown[clip] for clip in CLIPS if clip in shown}
    style.legend(fig, {f"clip={clip}": look for clip, look in order.items()})
    rate = choice(made[0], "optimizer.lr")
    style.caption(
        fig,
        f"A line for each seed; learning rate {rate} at the reference batch. The first tenth of "
        "the training may lie above the axis.",
        style.partial_note(frames.of(NEEDS).partial),
    )
    return fig


def _cells(frames: Frames) -> list[Cell]:
    made = study(frames, "clipping")
    return sorted(made, key=lambda it: (-it.batch, it.variant, CLIPS.index(choice(it, KEY))))


if __name__ == "__main__":
    sys.exit(main(["clipping"]))

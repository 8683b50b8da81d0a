"""Precisions compared: the loss, the weights that backwards really see, copies and memory."""

import sys

import pandas as pd
from matplotlib.figure import Figure

from analysis import CannotAnswer, Cell, Frames
from analysis.statistics import mean_and_std
from analysis.studies import PARTS, choice, copied, drift, fullest, paired, study, with_reference
from paper_figures import style
from paper_figures.command import main

NEEDS = "training"
KEY = "precision"
PRECISIONS = ("float32", "bfloat16-autocast", "bfloat16")
COLOURS = dict(zip(PARTS, ("#222222", "#D55E00", "#0072B2", "#56B4E9", "#E69F00"), strict=True))


def table(frames: Frames) -> pd.DataFrame:
    """Return, per method and precision, the final loss, its difference from float32, the drift and
    the weights that backwards see, and the memory of the fullest stage."""
    rows = []
    for cell, reference in _pairs(frames):
        loss, spread = mean_and_std(cell.final_losses)
        held = fullest(cell) / 2**20
        rows.append(
            {"scale": cell.scale, "batch": cell.batch, "method": cell.variant.label}
            | {"precision": _precision(cell), "seeds": cell.seeds}
            | {"final loss": loss, "±": spread}
            | {"over float32's": mean_and_std(paired(cell, reference))[0]}
            | {"drift (versions)": drift(cell), "weights copied (%)": 100 * copied(cell)}
            | {"backwards see": seen(cell)}
            | {f"{part} (MiB)": size for part, size in held.items()}
        )
    return pd.DataFrame(rows)


def seen(cell: Cell) -> str:
    """Return which weights the backwards of a cell really see."""
    if cell.variant.is_flush or cell.variant.weights == "stashed":
        return "those of the forward"
    return "those of the forward, in effect" if copied(cell) > 0.5 else "the newest"


def note(_: pd.DataFrame) -> str:
    return (
        "Drift counts versions between a micro-batch's forward and backward. Under autocast it is "
        "that of stashed weights in effect: the forward casts each weight of a matrix product, and "
        "its graph keeps the cast for the backward, so that the backward sees the old weight "
        "whatever the version by then. Weights copied: their share, over all stages, that graphs "
        "keep copies of. Copies: bytes of old weights beyond the one that every stage has. Memory "
        "is that of the fullest stage; each part is at its own peak."
    )


def draw(frames: Frames) -> Figure:
    """Draw live less stashed weights in each precision, and the memory of PACI's fullest stage."""
    made = [cell for cell, _ in _pairs(frames)]
    if not made:
        raise CannotAnswer("no completed run has one in float32 beside it")
    fig, (losses, memory) = style.panels(2, height=2.3)
    names = [name for name in PRECISIONS if any(_precision(cell) == name for cell in made)]
    for place, name in enumerate(names):
        for live, stashed in _live_and_stashed(made, name):
            gaps = paired(live, stashed)
            losses.plot([place] * len(gaps), gaps, "o", color=style.colour(live.variant),
                        markersize=4, fillstyle="none")  # fmt: skip
            losses.plot(place, gaps.mean(), "_", color=style.INK, markersize=12)
        live_ones = [it for it in made if it.variant.is_paci and _precision(it) == name]
        for cell in live_ones[:1]:
            reached = 0.0
            for part, size in (fullest(cell) / 2**20).items():
                label = part if place == 0 else None
                memory.bar(place, size, 0.6, reached, color=COLOURS[part], label=label)
                reached += size
    losses.axhline(0, color=style.INK, linewidth=0.6)
    losses.set_ylabel(f"final loss, live less stashed\n(nats per {made[0].token})")
    memory.set_ylabel("PACI's fullest stage (MiB)")
    for ax in (losses, memory):
        ax.set_xticks(range(len(names)), [name.replace("-", "\n") for name in names])
        ax.set_xlim(-0.6, len(names) - 0.4)
        ax.grid(axis="x", visible=False)
    fig.legend(*memory.get_legend_handles_labels(), loc="outside upper center",
               ncols=style.legend_columns(len(PARTS)), handlelength=1.0)  # fmt: skip
    style.caption(
        fig,
        "Left: circles are seeds, dashes their mean. Under autocast the drift is that of stashed "
        "weights in effect: graphs keep casts of the weights of their forward, and live weights "
        "train as stashed ones do. Right: peaks of each part.",
        style.partial_note(frames.of(NEEDS).partial),
    )
    return fig


def _pairs(frames: Frames) -> list[tuple[Cell, Cell]]:
    found = with_reference(study(frames, "precision"), KEY, "float32")
    return sorted(found, key=lambda it: (it[0].batch, it[0].variant, _order(it[0])))


def _live_and_stashed(made: list[Cell], precision: str) -> list[tuple[Cell, Cell]]:
    of = [cell for cell in made if _precision(cell) == precision]
    return [
        (live, other) for live in of for other in of
        if live.variant.is_paci and other.variant.weights == "stashed"
        and (live.variant.accumulation, live.batch) == (other.variant.accumulation, other.batch)
    ]  # fmt: skip


def _precision(cell: Cell) -> str:
    return choice(cell, KEY)


def _order(cell: Cell) -> int:
    return PRECISIONS.index(_precision(cell))


if __name__ == "__main__":
    sys.exit(main(["precision"]))

"""Recomputation of activations with live and with stashed weights: the loss, memory and time."""

import sys

import pandas as pd
from matplotlib.figure import Figure

from analysis import CannotAnswer, Cell, Frames
from analysis.statistics import mean_and_std
from analysis.studies import choice, fullest, paired, study, units, with_reference
from paper_figures import style
from paper_figures.command import main

NEEDS = "training"
KEY = "recompute"


def table(frames: Frames) -> pd.DataFrame:
    """Return, per method with and without recomputation, the final loss and its difference from the
    same method without, the activations of the fullest stage and the time of an update."""
    rows = []
    for cell, without in _pairs(frames):
        loss, spread = mean_and_std(cell.final_losses)
        rows.append(
            {"scale": cell.scale, "clock": cell.clock, "batch": cell.batch}
            | {"method": cell.variant.label, "recompute": choice(cell, KEY), "seeds": cell.seeds}
            | {"final loss": loss, "±": spread}
            | {"over none's": mean_and_std(paired(cell, without))[0]}
            | {"activations (MiB)": _activations(cell) / 2**20}
            | {"copies (MiB)": fullest(cell)["copies"] / 2**20}
            | {"time of an update (units)": units(cell), "over none's time": _slower(cell, without)}
        )
    return pd.DataFrame(rows)


def note(_: pd.DataFrame) -> str:
    return (
        "With recompute=stage a forward keeps its input only and the backward runs it again: on "
        "the newest weights where they are live, on those of the forward where they are stashed. "
        "A difference of 0 with stashed weights means that training is the same to the last bit. "
        "The time is that of the simulated clock in steady state, on which a backward takes a "
        "forward longer."
    )


def draw(frames: Frames) -> Figure:
    """Draw the difference in loss, and memory and time over those without recomputation."""
    pairs = [(cell, without) for cell, without in _pairs(frames) if cell is not without]
    fig, (losses, costs) = style.panels(2, height=2.2)
    for place, (cell, without) in enumerate(pairs):
        gaps = paired(cell, without)
        colour = style.colour(cell.variant)
        losses.plot([place] * len(gaps), gaps, "o", color=colour, markersize=4, fillstyle="none")
        losses.plot(place, gaps.mean(), "_", color=style.INK, markersize=12)
        ratios = (_activations(cell) / _activations(without), _slower(cell, without))
        for side, ratio, (name, shade) in zip((-0.2, 0.2), ratios, PARTS.items(), strict=True):
            costs.bar(place + side, ratio, 0.36, color=shade, label=None if place else name)
    losses.axhline(0, color=style.INK, linewidth=0.6)
    costs.axhline(1, color=style.INK, linewidth=0.6)
    losses.set_ylabel(f"final loss over that without\n(nats per {pairs[0][0].token})")
    costs.set_ylabel("× without recomputation")
    for ax in (losses, costs):
        ax.set_xticks(range(len(pairs)), [cell.variant.label for cell, _ in pairs])
        ax.set_xlim(-0.6, len(pairs) - 0.4)
        ax.grid(axis="x", visible=False)
    fig.legend(*costs.get_legend_handles_labels(), loc="outside upper center", ncols=2)
    style.caption(
        fig,
        "Left: circles are seeds, dashes their mean; 0 is training without recomputation. Right: "
        f"activations of the fullest stage, and time of an update ({pairs[0][0].clock} clock).",
        style.partial_note(frames.of(NEEDS).partial),
    )
    return fig


PARTS = {"activations": "#E69F00", "time": "#56B4E9"}


def _pairs(frames: Frames) -> list[tuple[Cell, Cell]]:
    found = list(with_reference(study(frames, "recompute"), KEY, "none"))
    if all(cell is without for cell, without in found):
        raise CannotAnswer("no completed run recomputes that has one without beside it")
    return sorted(found, key=lambda it: (it[0].batch, it[0].variant, choice(it[0], KEY)))


def _activations(cell: Cell) -> float:
    return float(cell.stages["activation_bytes"].max())


def _slower(cell: Cell, without: Cell) -> float:
    return units(cell) / units(without)


if __name__ == "__main__":
    sys.exit(main(["recompute"]))

"""Which optimizer bears late gradients: each method at the best learning rate of each optimizer."""

import sys

import pandas as pd
from matplotlib.figure import Figure

from analysis import CannotAnswer, Frames
from analysis.horizon import gap, lost
from analysis.statistics import mean_and_interval, mean_and_std
from analysis.studies import study
from analysis.tuning import Pair, best, rate
from paper_figures import style
from paper_figures.command import main

NEEDS = "training"


def table(frames: Frames) -> pd.DataFrame:
    rows = []
    for key, held in best(study(frames, "optimizers")).items():
        flush = next((cell for variant, cell in held.items() if variant.is_flush), None)
        for variant in sorted(held):
            cell = held[variant]
            mean, std = mean_and_std(cell.final_losses)
            row = {**key._asdict(), "variant": variant.label, "lr": rate(cell)}
            row |= {"seeds": cell.seeds, "final loss": mean, "final loss ±": std}
            if flush is not None and cell is not flush:
                pair = Pair(cell, flush)
                row["gap"], row["gap ±"] = mean_and_interval(gap(pair))
                row["E"], row["E ±"] = mean_and_interval(1 - lost(pair))
            rows.append(row)
    if not rows:
        raise CannotAnswer("every run of experiment=optimizers diverged")
    return pd.DataFrame(rows)


def note(_: pd.DataFrame) -> str:
    return (
        "Each method at the learning rate of the grid that gives it the lowest final training "
        "loss, ± one standard deviation over seeds. Gap: to flush with the same optimizer, nats "
        "per token; E: update efficiency at the end; ± half of the 95 % interval of both."
    )


def draw(frames: Frames) -> Figure:
    rows = table(frames)
    optimizers = list(dict.fromkeys(rows["optimizer"]))
    variants = list(dict.fromkeys(rows["variant"]))
    fig, axes = style.panels(2, height=2.2)
    for ax, column, label in zip(
        axes, ("final loss", "E"), ("final training loss", "update efficiency E"), strict=True
    ):
        for number, variant in enumerate(variants):
            mine = rows[rows["variant"] == variant]
            if column not in mine or mine[column].isna().all():
                continue
            places = [optimizers.index(it) + 0.12 * number - 0.18 for it in mine["optimizer"]]
            look = style.distinct(number) | {"linestyle": ""}
            ax.errorbar(places, mine[column], yerr=mine[f"{column} ±"], capsize=2, ms=3.5,
                        label=variant, **look)  # fmt: skip
        ax.set_xticks(range(len(optimizers)), optimizers)
        ax.set_ylabel(label)
    axes[0].legend(loc="best", fontsize=6)
    style.caption(
        fig,
        "Each method at its best learning rate.",
        style.partial_note(frames.of(NEEDS).partial),
    )
    return fig


if __name__ == "__main__":
    sys.exit(main(["optimizers"]))

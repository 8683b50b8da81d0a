"""The stability map: final losses at each learning rate and drift, and where training diverges."""

import sys

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from analysis import Frames
from analysis.studies import study
from analysis.tuning import loss, rate, trained
from paper_figures import style
from paper_figures.command import main

NEEDS = "training"


def table(frames: Frames) -> pd.DataFrame:
    rows = [
        {
            **trained(cell)._asdict(),
            "variant": cell.variant.label,
            "Δmax": cell.variant.max_drift,
            "lr": rate(cell),
            "seeds": cell.seeds,
            "diverged": int(cell.final_losses.isna().sum()),
            "final loss": loss(cell),
        }
        for cell in study(frames, "rates")
    ]
    return pd.DataFrame(rows).sort_values(["Δmax", "variant", "lr"], kind="stable")


def note(_: pd.DataFrame) -> str:
    return (
        "Final loss: of training, nats per token, mean over seeds; undefined where a seed "
        "diverged. Δmax is the bound on the drift of the first stage."
    )


def draw(frames: Frames) -> Figure:
    rows = table(frames)
    names = {(it.Δmax, it.variant): None for it in rows.itertuples()}
    labels = [f"{name}\n(Δmax {drift})" for drift, name in names]
    rates = sorted(rows["lr"].unique())
    losses = rows.pivot_table(
        index=["Δmax", "variant"], columns="lr", values="final loss", dropna=False
    )
    values = losses.reindex(index=list(names), columns=rates).to_numpy(float)
    counted = {(it.variant, it.lr): it.diverged for it in rows.itertuples()}
    fig, (ax,) = style.panels(1, height=0.9 + 0.3 * len(labels))
    image = ax.imshow(values, cmap="viridis_r", aspect="auto")
    middle = (np.nanmin(values) + np.nanmax(values)) / 2 if np.isfinite(values).any() else 0
    for row, (_, name) in enumerate(names):
        for column, lr in enumerate(rates):
            value, lost = values[row, column], counted.get((name, lr))
            text = "" if lost is None else "diverged" if lost else f"{value:.2f}"
            dark = np.isfinite(value) and value < middle
            ax.text(column, row, text, ha="center", va="center", fontsize=6,
                    color="white" if dark else style.INK)  # fmt: skip
    ax.set_xticks(range(len(rates)), [f"{lr:g}" for lr in rates])
    ax.set_yticks(range(len(labels)), labels, fontsize=6)
    ax.grid(visible=False)
    ax.set_xlabel("peak learning rate")
    fig.colorbar(image, ax=ax, label="final training loss")
    style.caption(fig, "Mean over seeds.", style.partial_note(frames.of(NEEDS).partial))
    return fig


if __name__ == "__main__":
    sys.exit(main(["rates"]))

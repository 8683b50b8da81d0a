"""Update efficiency: how many updates of flush an update of each method is worth, in the course of
training, beside what the paper's tables imply."""

import sys

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from analysis import CannotAnswer, Cell, Frames, Setting, by_setting, planned
from analysis.efficiency import at_share, flush_of, from_losses, implied
from analysis.statistics import mean_and_interval
from paper_figures import style
from paper_figures.command import main
from paper_figures.published import published

NEEDS = "training"
SHARES = (0.4, 0.6, 0.8, 1.0)


def table(frames: Frames) -> pd.DataFrame:
    """Return E ± half of its 95 % interval for each setting, method and share of the training; then
    the points that the paper's tables imply."""
    rows = []
    for setting, worth in _worth(frames).items():
        for cell, efficiency in worth:
            for share in SHARES:
                mean, half = mean_and_interval(at_share(efficiency, share))
                rows.append(
                    setting.columns
                    | {"variant": cell.variant.label, "Δmax": cell.variant.max_drift}
                    | {"share of training": f"{share:.0%}", "E": mean, "±": half}
                )
    for it in implied(published):
        rows.append(
            {"scale": "paper", "clock": "Tables 4 and 6", "batch": it.batch, "variant": it.method}
            | {"share of training": f"{it.share:.0%}", "E": it.efficiency}
        )
    return pd.DataFrame(rows)


def note(_: pd.DataFrame) -> str:
    return (
        "E is the updates that flush needs to a training loss over the updates that the method "
        "needs. Losses are read from the falling curve that is nearest to the means of 40 bins, "
        "each seed against flush's run of the same seed, and E is averaged over the tenth of the "
        "training before the share named; ± is half of the 95 % interval over seeds. Nothing is "
        "extrapolated. For the paper it is the matched speed-up of Table 6 over the ratio of total "
        "runtimes of Table 4."
    )


def draw(frames: Frames) -> Figure:
    worth = _worth(frames)
    fig, axes = style.panels(len(worth))
    looks = style.looks(cell.variant for found in worth.values() for cell, _ in found)
    for ax, (setting, found) in zip(axes, worth.items(), strict=True):
        for cell, efficiency in found:
            line = looks[cell.variant.label]
            mean = efficiency.mean(axis=1)
            half = efficiency.apply(lambda row: mean_and_interval(row)[1], axis=1)
            ax.plot(mean.index, mean, **line)
            ax.fill_between(
                mean.index, mean - half, mean + half, color=line["color"], alpha=0.15, linewidth=0
            )
        for it in implied(published):
            ax.plot(it.share, it.efficiency, "o", color=style.GREY, markersize=3, fillstyle="none")
        ax.axhline(1, color=style.INK, linewidth=0.6)
        ax.set(xlim=(0, 1), ylim=(0, 1.2), xlabel="share of training", ylabel="update efficiency E")
        ax.set_title(style.setting_title(setting, [cell.seeds for cell, _ in found]))
    style.legend(fig, looks)
    axes[0].legend(
        handles=[
            Line2D([], [], marker="o", fillstyle="none", color=style.GREY, linestyle="",
                   markersize=3, label="implied by the paper's Tables 4 and 6")
        ],
        loc="lower right",
    )  # fmt: skip
    style.caption(
        fig,
        "Mean over seeds, with the 95 % interval.",
        style.partial_note(frames.of(NEEDS).partial),
    )
    return fig


def _worth(frames: Frames) -> dict[Setting, list[tuple[Cell, pd.DataFrame]]]:
    """Return each method with its E, by setting; CannotAnswer if none can be compared with
    flush."""
    found: dict[Setting, list[tuple[Cell, pd.DataFrame]]] = {}
    for setting, group in by_setting(planned(frames)).items():
        for cell in group:
            flush = flush_of(cell, group)
            if flush is None or cell.variant.is_flush:
                continue
            efficiency = from_losses(cell, flush)
            if efficiency.notna().any(axis=None):
                found.setdefault(setting, []).append((cell, efficiency))
    if not found:
        raise CannotAnswer("no method is trained beside flush at the same setting")
    return found


if __name__ == "__main__":
    sys.exit(main(["update_efficiency"]))

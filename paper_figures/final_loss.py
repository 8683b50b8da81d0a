"""Final training loss (mean over the last 5 % of the updates) and run-to-run variability."""

import sys

import pandas as pd
from matplotlib.figure import Figure

from analysis import Cell, Frames, by_setting, cells
from analysis.counterparts import published_batch, published_loss
from analysis.statistics import FINAL_FRACTION, final_losses, mean_and_std, rms_of_std
from paper_figures import style
from paper_figures.command import main
from paper_figures.published import published

EXPERIMENT = "q1"


def table(frames: Frames) -> pd.DataFrame:
    """Per variant and batch: losses in their unit, spreads as across-seed std (ddof=1)."""
    made, reference = cells(frames, EXPERIMENT), published(EXPERIMENT)
    rows = []
    for cell in made:
        final = final_losses(cell.losses)
        loss, loss_std = mean_and_std(final)
        perplexity, perplexity_std = mean_and_std(_last_perplexity(cell))
        theirs = published_batch(cell.batch, made, cell.scale, reference)
        rows.append(
            cell.setting._asdict()
            | {
                "variant": cell.variant.label,
                "seeds": cell.seeds,
                "diverged": int(final.isna().sum()),
                "unit": f"nats per {cell.token}",
                "final loss": loss,
                "final loss ±": loss_std,
                "RMS of std": rms_of_std(cell.losses),
                "perplexity": perplexity,
                "perplexity ±": perplexity_std,
                "paper's final loss": published_loss(cell, theirs, reference),
                "paper's batch": str(theirs or "–"),
            }
        )
    return pd.DataFrame(rows)


def draw(frames: Frames) -> Figure:
    made = cells(frames, EXPERIMENT)
    settings = by_setting(made)
    most = max(len(group) for group in settings.values())
    fig, axes = style.panels(len(settings), height=0.9 + 0.32 * most)
    for ax, (setting, group) in zip(axes, settings.items(), strict=True):
        for row, cell in enumerate(group):
            final = final_losses(cell.losses)
            mean, std = mean_and_std(final)
            colour = style.colour(cell.variant)
            ax.errorbar(mean, row, xerr=std, color=colour, capsize=2.5, elinewidth=1)
            ax.plot(final, [row + 0.28] * len(final), "o", color=colour, alpha=0.5, ms=3, mew=0)
            ax.plot(mean, row, "D", color=colour, ms=4)
            if not cell.variant.asynchronous:
                ax.axvline(mean, color=colour, linewidth=0.7, linestyle=":")
        ax.set_yticks(range(len(group)), [cell.variant.label for cell in group])
        ax.set_ylim(len(group) - 0.5, -0.5)
        ax.grid(axis="y", visible=False)
        ax.set_xlabel(f"final training loss (nats per {group[0].token})")
        ax.set_title(style.setting_title(setting, [cell.seeds for cell in group]))
    style.footnote(
        fig,
        f"Mean over the last {FINAL_FRACTION:.0%} of the updates: seeds (dots), their mean and "
        "± 1 std.",
        style.partial_note(frames.of(EXPERIMENT).partial),
    )
    return fig


def _last_perplexity(cell: Cell) -> pd.Series:
    if cell.perplexities.empty:
        return pd.Series([float("nan")])
    return cell.perplexities.iloc[-1]


if __name__ == "__main__":
    sys.exit(main(["final_loss"]))

"""Table 3: final training loss (mean over the last 5 % of the updates) and run-to-run
variability."""

import sys

import pandas as pd
from matplotlib.figure import Figure

from analysis import Cell, Frames, by_setting, of_paper, planned
from analysis.counterparts import papers_batch, papers_row
from analysis.statistics import FINAL_FRACTION, mean_and_std, rms_of_std
from paper_figures import style
from paper_figures.command import main
from paper_figures.published import published

NEEDS = "training"


def table(frames: Frames) -> pd.DataFrame:
    """Return, per variant and batch, final loss ± across-seed std (ddof=1), and the RMS of that
    std over bins of equal tokens; the paper's beside ours."""
    return stability(of_paper(planned(frames)))


def stability(made: list[Cell]) -> pd.DataFrame:
    """Return the rows of these cells."""
    reference = published("table_3")
    rows = []
    for cell in made:
        loss, std = mean_and_std(cell.final_losses)
        batch = papers_batch(cell, made, reference)
        name = cell.variant.label if cell.variant.asynchronous else cell.variant.name
        theirs = papers_row(reference, batch=batch, method=name)
        rows.append(
            cell.setting.columns
            | {
                "variant": cell.variant.label,
                "seeds": cell.seeds,
                "diverged": int(cell.final_losses.isna().sum()),
                "unit": f"nats per {cell.token}",
                "final loss": loss,
                "final loss ±": std,
                "RMS of std": rms_of_std(cell.binned),
                "bins": len(cell.binned),
                "paper's batch": batch,
                "paper's final loss": theirs.get("loss"),
                "paper's final loss ±": theirs.get("loss_std"),
                "paper's RMS of std": theirs.get("rms_std"),
            }
        )
    return pd.DataFrame(rows).astype({"paper's batch": object})


def note(made: pd.DataFrame) -> str:
    return (
        "RMS of std: root mean square, over bins of equal tokens, of the across-seed standard "
        "deviation of the training loss. There are as many bins as in the paper, or one for each "
        "update if those are fewer. As in the paper, runs see the same text in the same order "
        "whatever their seed; runs without data.order_seed do not, and their spread includes that."
    )


def draw(frames: Frames) -> Figure:
    return draw_cells(of_paper(planned(frames)), frames)


def draw_cells(made: list[Cell], frames: Frames) -> Figure:
    """Draw the final losses of cells, a panel for each setting."""
    settings = by_setting(made)
    most = max(len(group) for group in settings.values())
    fig, axes = style.panels(len(settings), height=0.9 + 0.32 * most)
    for ax, (setting, group) in zip(axes, settings.items(), strict=True):
        for row, cell in enumerate(group):
            _row(ax, row, cell)
        ax.set_yticks(range(len(group)), [cell.variant.label for cell in group])
        ax.set_ylim(len(group) - 0.5, -0.5)
        ax.grid(axis="y", visible=False)
        ax.set_xlabel(f"final training loss (nats per {group[0].token})")
        ax.xaxis.set_gid(style.MEASURED)
        ax.set_title(style.setting_title(setting, [cell.seeds for cell in group]))
    style.caption(
        fig,
        f"Mean over the last {FINAL_FRACTION:.0%} of the updates: seeds (dots), their mean and "
        "± 1 std.",
        style.partial_note(frames.of(NEEDS).partial),
    )
    return fig


def _row(ax, row: int, cell: Cell) -> None:
    mean, std = mean_and_std(cell.final_losses)
    colour = style.colour(cell.variant)
    ax.errorbar(mean, row, xerr=std, color=colour, capsize=2.5, elinewidth=1)
    seeds = [row + 0.28] * cell.seeds
    ax.plot(cell.final_losses, seeds, "o", color=colour, alpha=0.5, ms=3, mew=0)
    ax.plot(mean, row, "D", color=colour, ms=4)
    if not cell.variant.asynchronous:
        ax.axvline(mean, color=colour, linewidth=0.7, linestyle=":")


if __name__ == "__main__":
    sys.exit(main(["table_3_stability"]))

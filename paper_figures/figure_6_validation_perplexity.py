"""Figure 6: validation perplexity against tokens, mean over seeds ± one across-seed standard
deviation."""

import sys

from matplotlib.figure import Figure

from analysis import CannotAnswer, Cell, Frames, by_setting, of_paper, planned
from paper_figures import style
from paper_figures.command import main

NEEDS = "training"


def draw(frames: Frames) -> Figure:
    return curves(of_paper(planned(frames)), frames)


def curves(made: list[Cell], frames: Frames) -> Figure:
    """Draw the validation perplexity of cells, a panel for each setting."""
    made = [cell for cell in made if not cell.perplexities.empty]
    if not made:
        raise CannotAnswer("no completed training run logged a validation perplexity")
    settings = by_setting(made)
    looks = style.looks(cell.variant for cell in made)
    fig, axes = style.panels(len(settings))
    for ax, (setting, group) in zip(axes, settings.items(), strict=True):
        unit = style.tokens_axis(ax, max(cell.tokens.max() for cell in group), group[0].token)
        for cell in group:
            curves = cell.perplexities[cell.perplexities.index > 0]  # untrained, all are alike
            tokens = cell.tokens.reindex(curves.index) / unit
            mean = curves.mean(axis=1, skipna=False)
            std = curves.std(axis=1, ddof=1, skipna=False)
            line = looks[cell.variant.label]
            ax.plot(tokens, mean, **line, marker="o", markersize=2.5)
            ax.fill_between(
                tokens, mean - std, mean + std, color=line["color"], alpha=0.2, linewidth=0
            )
        style.perplexity_axis(ax)
        ax.set_xlim(left=0)
        ax.set_title(style.setting_title(setting, [cell.seeds for cell in group]))
    style.legend(fig, looks)
    style.caption(
        fig,
        f"Mean and ± 1 std over seeds. {style.byte_note(made)}".rstrip(),
        style.partial_note(frames.of(NEEDS).partial),
    )
    return fig


if __name__ == "__main__":
    sys.exit(main(["figure_6_validation_perplexity"]))

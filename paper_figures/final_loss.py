"""Final losses, drift and movement of the weights of every training run, whatever its method."""

import sys

import pandas as pd
from matplotlib.figure import Figure

from analysis import Cell, Frames, cells
from analysis.q1.drift import largest_drift, mean_movement
from analysis.statistics import mean_and_std
from paper_figures.command import main
from paper_figures.table_3_stability import draw_cells, stability

NEEDS = "training"


def table(frames: Frames) -> pd.DataFrame:
    """Return, per variant, batch and setting, the columns of Table 3 without the paper's, the last
    validation perplexity, the largest drift and the mean movement of stage 0's weights."""
    made = cells(frames)
    rows = stability(made)
    rows = rows.drop(columns=[name for name in rows if name.startswith("paper's")])
    return rows.assign(**pd.DataFrame([_beside(cell) for cell in made], index=rows.index))


def draw(frames: Frames) -> Figure:
    return draw_cells(cells(frames), frames)


def _beside(cell: Cell) -> dict[str, float]:
    evaluated = not cell.perplexities.empty
    perplexity, std = mean_and_std(cell.perplexities.iloc[-1]) if evaluated else (None, None)
    return {
        "validation perplexity": perplexity,
        "validation perplexity ±": std,
        "largest drift": largest_drift([cell]).max(),
        "movement of stage 0 (%)": 100 * mean_movement([cell]).get(0, float("nan")),
    }


if __name__ == "__main__":
    sys.exit(main(["final_loss"]))

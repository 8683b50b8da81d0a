"""Training loss against tokens of every training run, whatever its method."""

import sys

from matplotlib.figure import Figure

from analysis import CannotAnswer, Frames, cells, planned
from paper_figures.command import main
from paper_figures.figure_5_training_loss import curves

NEEDS = "training"


def draw(frames: Frames) -> Figure:
    made = cells(frames)
    if len(made) == len([cell for cell in planned(frames) if cell.variant.in_paper]):
        raise CannotAnswer("Figure 5 shows all training runs that there are")
    return curves(made, frames)


if __name__ == "__main__":
    sys.exit(main(["training_loss"]))

"""Precision: the loss, the share of weights that a backward sees as its forward did, and memory."""

import sys

import pandas as pd
from matplotlib.figure import Figure

from analysis import Frames
from analysis.study import numbers, study
from paper_figures import style
from paper_figures.command import main
from paper_figures.study import bars

NEEDS = "training"


def table(frames: Frames) -> pd.DataFrame:
    rows = pd.DataFrame([numbers(cell) for cell in study(frames, "precision")])
    return rows.drop(columns=["largest rise", "time"])


def note(_: pd.DataFrame) -> str:
    return (
        "Copied: the share of the weights of which graphs keep a copy. Under autocast a linear "
        "layer's backward sees the weights of its forward, whatever drift is counted: its live "
        "weights are stashed in effect. With bfloat16 weights and float32 masters there is one "
        "copy and the drift is real."
    )


def draw(frames: Frames) -> Figure:
    made = study(frames, "precision")
    fig = bars(
        made,
        table(frames),
        {
            "final loss": f"final training loss (nats per {made[0].token})",
            "copied (%)": "weights copied by graphs (%)",
            "activations (MiB)": "activations, fullest stage (MiB)",
            "weight copies (MiB)": "copies of weights, fullest stage (MiB)",
        },
    )
    style.caption(
        fig,
        "Mean and ± 1 std over seeds. Under autocast the backward of a linear layer sees the copy "
        "of its weights that its forward made.",
        style.partial_note(frames.of(NEEDS).partial),
    )
    return fig


if __name__ == "__main__":
    sys.exit(main(["study_precision"]))
